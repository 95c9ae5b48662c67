"""A run over MPI that went on from its checkpoint is one that was not interrupted, bit for bit."""

import tempfile
from pathlib import Path

import bench
import numpy as np
import pytest
import torch
from networks import dense
from onlooker import Onlooker

from sundsbo_mpi.agent import Agent, Position
from sundsbo_mpi.algorithms import Horizon, method
from sundsbo_mpi.algorithms.sending import sending
from sundsbo_mpi.checkpoint import About, Folder, Manifest, Moment, Saver
from sundsbo_mpi.checkpoint.resuming import candidates, load
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.composition.compressors import COMPRESSORS
from sundsbo_mpi.errors import AgreedError
from sundsbo_mpi.ranks.control import Control
from sundsbo_mpi.running.observing import spent, take_up
from sundsbo_mpi.topology import Weights

ITERATIONS = 9
CONFIG = {
    "run": {},
    "topology": {},
    "task": {"name": "quadratic"},
    "algorithm": {"name": "any"},
    "output": {},
}


class Saving(Onlooker):
    """Keeps checkpoints of the agent, or the one after ``only`` so many iterations."""

    def __init__(self, agent, saver, only=None):
        super().__init__(saves=lambda done: done == only)
        self._agent, self._saver, self._only = agent, saver, only

    def save(self, at):
        super().save(at)
        if self._only not in (None, at.done):
            return 0.0
        numbers = range(self._agent.tally.agents)
        return self._saver.save(Moment(at, spent(self._agent, numbers, (1, 2))))


@pytest.fixture
def folder(comm):
    """One folder for all ranks, as on a cluster."""
    held = tempfile.TemporaryDirectory() if comm.rank == 0 else None
    yield Path(comm.bcast(held.name if held else None))
    comm.Barrier()
    if held:
        held.cleanup()


@pytest.fixture
def connected(comm):
    """Make this rank's agent of a method over a transport; closed when the test ends."""
    opened = []

    def agent(name, options, transport="p2p"):
        chosen = method(name).options(**bench.lively(name, **options))
        horizon = Horizon(comm.size, ITERATIONS)
        algorithm = sending(
            method(name).build(chosen, horizon), chosen, agents=comm.size, seed=bench.SEED
        )
        clock, tally = Clock(), Tally(comm)
        weights = (np.eye(comm.size) + dense("erdos-renyi", comm.size)) / 2
        gossip = Gossip(comm, Weights(weights, "test"), clock, Wires(transport, 2**16))
        tasks = bench.quadratics(comm.size, task=bench.Merged, noise=0.2)
        control = Control(tally)
        made = Agent(
            tasks[comm.rank], algorithm, gossip, tally, control, clock, ITERATIONS, ITERATIONS
        )
        opened.append(made)
        return made

    yield agent
    for made in opened:
        made.close()


def saver(comm, folder):
    about = About(comm.size, list(range(comm.size)), CONFIG, "", "")
    manifest = Manifest(0, about, "run.h5", [1] * comm.size, [])
    return Saver(Tally(comm), Folder(folder), lambda: manifest, 0, print)


def counts(agent):
    found = spent(agent, range(agent.tally.agents), (0, 0))
    return found.rounds, found.messages, found.words, found.control, found.bytes_to


def check(comm, folder, connected, name, options, *, done, transports=("p2p", "p2p")):
    """Run through, and to a checkpoint after ``done`` iterations and on from it: the same."""
    whole = connected(name, options, transports[0])
    observer = Saving(whole, saver(comm, folder), done)
    expected = whole.run(observer).w
    assert [at.done for at in observer.saved] == sorted({0, done, ITERATIONS})
    found = candidates(folder)
    moment, said = load(whole, found, bench.CPU)
    assert said == []
    other = connected(name, options, transports[1])
    take_up(other, moment.spent, range(comm.size))
    seen = Onlooker()
    w = other.run(seen, moment.at).w
    assert list(w) == list(expected)
    assert all(torch.equal(w[v], expected[v]) for v in w)
    assert seen.evaluated == [ITERATIONS]
    assert counts(other) == counts(whole)


@pytest.mark.parametrize(("name", "variant"), bench.VARIANTS + bench.OTHER_VARIANTS)
def test_every_method_and_estimator_goes_on(comm, folder, connected, name, variant):
    done = 1 + sum(map(ord, name + str(variant))) % (ITERATIONS - 1)
    check(comm, folder, connected, name, variant, done=done)


@pytest.mark.parametrize(
    "options",
    [*({"compressor": name} for name in COMPRESSORS), {"wire": "bf16"}, {"gossip_steps": 2}],
    ids=str,
)
def test_every_form_of_messages_goes_on(comm, folder, connected, options):
    check(comm, folder, connected, "sun-dsbo-gt", options, done=5)


def test_replicas_that_one_agent_has_lost_are_missed_by_all(comm, folder, connected):
    one = connected("sun-dsbo-gt", {"compressor": "quantiser"})
    at = Position(5, *one.algorithm.start(one.task))
    if comm.rank == comm.size - 1:
        feedback = at.state.estimate._replace(replicas=at.state.estimate.replicas[:1])
        at = at._replace(state=at.state._replace(estimate=feedback))
    saver(comm, folder).save(Moment(at, spent(one, range(comm.size), (0, 0))))
    said = f"agent-{comm.size - 1:05}.h5' does not fit .*replicas is a tuple of 1, expected"
    with pytest.raises(AgreedError, match=said):
        load(one, candidates(folder), bench.CPU)


@pytest.mark.parametrize("transports", [("shared", "p2p"), ("neighbor", "shared")], ids=str)
def test_it_goes_on_over_another_transport(comm, folder, connected, transports):
    options = {"estimator": "storm"}
    check(comm, folder, connected, "sun-dsbo-ed", options, done=4, transports=transports)


def test_a_wish_of_one_agent_is_a_checkpoint_of_all(comm, folder, connected):
    one = connected("sun-dsbo-gt", {})
    observer = Saving(one, saver(comm, folder))
    if comm.rank == comm.size - 1:
        one.control._save_seconds = 0.0
    one.run(observer)
    saved = [at.done for at in observer.saved]
    assert comm.allgather(saved) == [saved] * comm.size
    assert saved[:2] == [0, 2]
    assert saved[-1] == ITERATIONS

"""Coordinates of x that one agent's data touch alone: not sent, and yet moved as if averaged."""

import re

import bench
import numpy as np
import pytest
import torch
from lockstep import Lockstep
from together import complaints, together

from sundsbo_mpi.algorithms.base import MethodOptions
from sundsbo_mpi.algorithms.sending import sending
from sundsbo_mpi.errors import AgreedError, UsageError
from sundsbo_mpi.measuring import metrics
from sundsbo_mpi.running.inspection import inspect_private

AGENTS, OWN, D_Y = 4, 3, 6
SIZES = {"x": AGENTS * OWN, "y": D_Y}
STEP = 0.05
EVERYBODY = np.full((AGENTS, AGENTS), 1 / AGENTS)


class Weighing:
    """f_i = |y - t_i|^2 / 2 and g_i = sum over the agent's own j of s(x_j) (a_j'y - b_j)^2 / 2
    + |y|^2 / 2, s the sigmoid: one weight for each sample, like hyper-cleaning.
    """

    def __init__(self, agent):
        rng = np.random.default_rng([bench.SEED, agent])
        self.agent, self.sizes = agent, SIZES
        self.private = slice(agent * OWN, (agent + 1) * OWN)
        self.A, self.b, self.t = (
            torch.from_numpy(rng.standard_normal(shape)) for shape in ((OWN, D_Y), OWN, D_Y)
        )

    def start(self):
        return torch.linspace(-1, 1, SIZES["x"], dtype=torch.float64), torch.ones(D_Y).double()

    def sample(self, k, draw=0):
        return None

    def upper(self, x, y, batch):
        return (y - self.t).square().sum() / 2

    def lower(self, x, y, batch):
        residual = self.A @ y - self.b
        return x[self.private].sigmoid() @ residual.square() / 2 + y @ y / 2


def tasks():
    return [Weighing(agent) for agent in range(AGENTS)]


def run(name, W, iterations, **options):
    steps = {f"step_{v}": STEP for v in ("x", "y", "theta", "z")}
    own = {k: s for k, s in steps.items() if hasattr(bench.method(name).options, k)}
    algorithm = sending(
        bench.build(name, AGENTS, **own), MethodOptions(**options), agents=AGENTS, seed=0
    )
    return Lockstep(algorithm, tasks(), W).run(iterations)


def whole(x):
    """Return every coordinate of x from its owner."""
    return np.concatenate([row[agent * OWN : (agent + 1) * OWN] for agent, row in enumerate(x)])


@pytest.mark.parametrize("name", ["sun-dsbo-se", "sun-dsbo-gt", "sparkle-gt", "d-soba"])
def test_with_exact_averaging_nothing_changes_but_the_bytes(name):
    sent, kept = (run(name, EVERYBODY, 30, private=private) for private in (False, True))
    np.testing.assert_allclose(whole(kept.rows("x")), sent.rows("x")[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(kept.rows("y"), sent.rows("y"), rtol=0, atol=1e-13)
    moved = np.abs(sent.rows("x")[0] - tasks()[0].start()[0].numpy())
    assert moved.min() > 1e-5
    copies = 2 if "gt" in name else 1
    assert sent.bytes - kept.bytes == 30 * 8 * SIZES["x"] * copies


@pytest.mark.parametrize("name", ["sun-dsbo-dgd", "sun-dsbo-extra", "sun-dsbo-ed", "ma-dsbo"])
def test_on_any_network_it_is_a_step_of_one_nth(name):
    W = (np.eye(AGENTS) + bench.ring(AGENTS, 0.5)) / 2
    kept = run(name, W, 6, private=True)
    before = kept.rows("x")
    kept.iterate()
    for agent, state in enumerate(kept.states):
        want = before[agent] - STEP / AGENTS * state.D_hat["x"].numpy()
        np.testing.assert_array_equal(kept.rows("x")[agent], want)
        foreign = np.delete(kept.rows("x")[agent] - tasks()[0].start()[0].numpy(), _own(agent))
        assert not foreign.any()
    assert float(sum(defect["x"][0] for defect in kept.defects()).abs().max()) < 1e-15


def _own(agent):
    return np.arange(agent * OWN, (agent + 1) * OWN)


def test_it_goes_with_compression():
    kept = run("sun-dsbo-gt", bench.ring(AGENTS, 0.5), 3, private=True, compressor="quantiser")
    of_y = 2 + 3 * 1
    assert kept.bytes == 3 * 2 * 2 * of_y


def test_what_is_measured_takes_every_coordinate_from_its_owner():
    rows = torch.arange(float(AGENTS * SIZES["x"])).reshape(AGENTS, -1)

    def work(tally):
        w = {"x": rows[tally.agent], "y": torch.full((2,), float(tally.agent))}
        own = tasks()[tally.agent].private
        w_bar = metrics.average(tally, w, own)
        return w_bar, metrics.consensus(tally, w, w_bar, own)

    for w_bar, consensus in together(AGENTS, work):
        assert list(w_bar) == list(consensus) == ["x", "y"]
        np.testing.assert_array_equal(w_bar["x"].numpy(), whole(rows.numpy()))
        assert w_bar["y"].tolist() == [1.5, 1.5]
        assert consensus == {"x": 0.0, "y": 2.5}


class Overlapping(Weighing):
    """Agent 1 claims what is agent 0's."""

    def __init__(self, agent):
        super().__init__(agent)
        self.private = slice(0, OWN) if agent == 1 else self.private


class Meddling(Weighing):
    """Agent 2 looks at all weights."""

    def lower(self, x, y, batch):
        return super().lower(x, y, batch) + (x @ x if self.agent == 2 else 0.0)


class Silent(Weighing):
    """Declares nothing."""

    def __init__(self, agent):
        super().__init__(agent)
        del self.private


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (Overlapping, "each coordinate in one of them"),
        (Meddling, r"lower\(\) of the task depends on coordinates of x outside the agent's own"),
        (Silent, "'private' of the task is None"),
    ],
)
def test_a_wrong_declaration_is_refused_on_all_agents(task, sentence):
    def work(tally):
        inspect_private(tally, task(tally.agent))

    together(AGENTS, lambda tally: inspect_private(tally, Weighing(tally.agent)))
    for said in complaints(AGENTS, work, AgreedError):
        assert re.search(sentence, said)


@pytest.mark.parametrize("name", ["gossip-dsbo", "dsbo"])
def test_methods_that_mix_matrices_are_refused(name):
    """Before there is a task: with an x of one number a matrix is as long as y."""
    with pytest.raises(UsageError, match="mixes matrices of derivatives"):
        sending(bench.build(name), MethodOptions(private=True), agents=1, seed=0)


@pytest.mark.parametrize("name", ["d-psgd", "gnsd"])
def test_single_level_methods_are_refused(name):
    with pytest.raises(UsageError, match="no bilevel method that moves x by itself"):
        run(name, EVERYBODY, 1, private=True)

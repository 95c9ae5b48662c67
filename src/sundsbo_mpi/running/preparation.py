"""What is found out before anything is built: whether the request can be met, and with what.

``prepare`` is collective and raises ``AgreedError``; the rest is what rank 0 does in it.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.safety import is_safe
from sundsbo_mpi.checkpoint import About
from sundsbo_mpi.checkpoint.resuming import Resumption, candidates
from sundsbo_mpi.comm import node
from sundsbo_mpi.comm.agreement import agree, deal, jointly, on_root
from sundsbo_mpi.comm.seating import seat
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports.exchange import Connection
from sundsbo_mpi.config.likeness import differing_weights
from sundsbo_mpi.config.methods import build_algorithm, network, suited
from sundsbo_mpi.config.resolving import Config, Request, resolve
from sundsbo_mpi.data_notes import noted
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.ranks.job import agree_on
from sundsbo_mpi.runfile import default_path
from sundsbo_mpi.runfile.naming import check_writable
from sundsbo_mpi.running.dividing import divided
from sundsbo_mpi.running.enduring import require_endurable
from sundsbo_mpi.running.resumption import judged, stored_settings
from sundsbo_mpi.tasks import load_task
from sundsbo_mpi.topology import Mixing
from sundsbo_mpi.tracing import check_trace
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.comm.survivors import Survivors


MOST_ROWS = 1_000_000
"""Of a run file; of one agent they take 224 MB."""


@dataclass(frozen=True)
class Prepared:
    """What rank 0 found out before anything was built; broadcast to all."""

    config: Config
    node_ids: tuple[str, ...]
    """The topology file's name of every agent."""
    weights: Mixing
    """What the run mixes with: the file's matrix or matrices W, or (I + W)/2."""
    notes: tuple[str, ...]
    about: About
    """What its checkpoints say of it."""
    resumption: Resumption | None = None
    resumed_from: str | None = None
    """The folder of the checkpoints that it goes on from."""
    transport: str = ""
    """What the messages travel over, once the agents are connected."""

    def left(self, here: Survivors) -> Prepared:
        """Return the same for those who are left of the agents."""
        if here.agents == tuple(range(self.about.agents)):
            return self
        from sundsbo_mpi.topology.survivors import remaining

        fits = partial(is_safe, build_algorithm(self.config, self.about.agents)[0])
        weights, bridges = remaining(self.weights, here.agents, fits)
        said = [f"agents {i} and {j} are linked now" for i, j in bridges]
        about = replace(self.about, numbers=list(here.agents))
        return replace(self, about=about, weights=weights, notes=tuple(said))

    def noting(self, *sentences: str) -> Prepared:
        """Return the same with more notes."""
        return replace(self, notes=(*self.notes, *sentences))

    def connected(self, network: Connection) -> Prepared:
        """Return the same with what is known of the links."""
        noted = self.noting(f"transport: {network.description}", *network.notes)
        return replace(noted, transport=network.description)


def prepare(request: Request, comm: MPI.Intracomm) -> tuple[Prepared, Any, MPI.Intracomm]:
    """Check everything that can be checked without building anything, and take one's seat.

    Returns what rank 0 prepared, this agent's shard where the task divides its data, and the
    communicator whose rank i is agent i.
    """
    tally = Tally(comm)
    agree_on(tally, request)
    prepared = on_root(tally, lambda: _read(request, tally.agents))
    jointly(tally, lambda: load_task(prepared.config.task["name"]))
    source = {"the task's file (SHA-256)": _source(prepared.config)}
    agree(tally, source, "use the same file on all nodes")
    if prepared.about.whole:
        nodes, place = node.local(comm).nodes, prepared.config.topology.place
        comm, said = seat(comm, prepared.weights, nodes, place=place)
        prepared = prepared.noting(*([said] if said else []))
    shard, notes = _own_shard(Tally(comm), prepared)
    return prepared.noting(*notes), shard, comm


def _read(request: Request, ranks: int) -> Prepared:
    found = candidates(Path(request.resume)) if request.resume else ()
    config = resolve(request, stored_settings(request, found, ranks))
    loaded = network(config.topology)
    agents = found[0].manifest.about.agents if found else ranks
    if loaded.weights.agents != agents:
        few = f"the checkpoint has {agents}" if found else f"{number_of(agents, 'rank')} started"
        remedy = "" if found else f"use mpirun -n {loaded.weights.agents}, or "
        raise UsageError(
            f"{config.topology.file} has {number_of(loaded.weights.agents, 'agent')} but {few}: "
            f"{remedy}take another topology file."
        )
    weights, remarks = suited(config, loaded.weights)
    numbers = found[0].manifest.about.numbers if found else list(range(agents))
    about = About(agents, numbers, config.as_dict(), weights.sha256, _source(config))
    require_endurable(config)
    _require_few_rows(config)
    resumption, said = judged(request, config, about, found)
    if resumption is None or resumption.run_file is None:
        _check_output(config)
    check_trace(config.output.trace, config.output.overwrite)
    said += differing_weights(request.like, weights.sha256)
    notes = (*loaded.notes, *remarks, *said)
    return Prepared(config, loaded.node_ids, weights, notes, about, resumption, request.resume)


def _require_few_rows(config: Config) -> None:
    """Refuse more evaluations than a run file keeps room for, which it does from its beginning."""
    run = config.run
    rows = 1 + -(-run.iterations // run.eval_every)
    if rows > MOST_ROWS:
        raise UsageError(
            f"{run.iterations} iterations evaluated every {run.eval_every} make {rows:,} rows of "
            f"the run file, expected at most {MOST_ROWS:,}: evaluate less often with --eval-every."
        )


def _check_output(config: Config) -> None:
    output = config.output.file or default_path(
        config.task["name"], config.algorithm["name"], datetime.now().astimezone()
    )
    check_writable(Path(output), config.output.overwrite)


def _own_shard(tally: Tally, prepared: Prepared) -> tuple[Any, list[str]]:
    """Return this agent's shard, None where the task has none, and what is odd about the data."""
    if getattr(load_task(prepared.config.task["name"]), "shards", None) is None:
        return None, []
    with noted() as notes:
        about = prepared.about
        shard = deal(tally, lambda: divided(prepared.config, about.agents, about.numbers))
    return shard, tally.tell(notes)


def _source(config: Config) -> str:
    """Return the SHA-256 of the file that defines the task, which may differ between nodes."""
    file = sys.modules[load_task(config.task["name"]).__module__].__file__
    content = Path(file).read_bytes() if file else b""
    return hashlib.sha256(content).hexdigest()

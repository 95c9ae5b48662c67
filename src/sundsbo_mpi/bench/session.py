"""A whole bench on one rank, from the request to the tables and the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from rich.console import Console

from sundsbo_mpi.bench.cases import DIRECT, HOST, STAGED, Ground
from sundsbo_mpi.bench.file import write_bench
from sundsbo_mpi.bench.fitting import (
    LARGEST_CHECKED,
    check,
    checked_messages,
    fit_links,
    unchecked,
)
from sundsbo_mpi.bench.measuring import measure_iterations, measure_pairs, measure_series
from sundsbo_mpi.bench.model import load
from sundsbo_mpi.bench.parts import ALL, parts
from sundsbo_mpi.bench.record import Bench, Sent, model_of
from sundsbo_mpi.bench.report import render_bench
from sundsbo_mpi.bench.surroundings import about, ranks
from sundsbo_mpi.comm import node
from sundsbo_mpi.comm.agreement import jointly, on_root
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.errors import AgreedError, UsageError
from sundsbo_mpi.heap import prepare_heap
from sundsbo_mpi.ranks.job import agree_on, do_together
from sundsbo_mpi.runfile.naming import check_writable
from sundsbo_mpi.texttable import console, size
from sundsbo_mpi.topology import BUILDERS, Mixing, Reading, read_weights
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from sundsbo_mpi.algorithms.messages import Sizes

CHANGES = "the weights change: measured with those of iteration 0"
BY_NAME = Reading()
NO_DEVICE = (
    "--gpu-direct is for messages in the memory of GPUs, but not every rank has one: leave it out, "
    "or start the ranks where each can use a GPU (--device cuda lets them share)."
)
TOO_LARGE = (
    f"not checked are {{}}: with this --payload they send more than {size(LARGEST_CHECKED)} to "
    "a neighbour in an iteration, or cannot run; a smaller one shows them too"
)
ALONE = "one rank has no neighbours: only memcpy, the weighted mix and allreduce are measured"


@dataclass(frozen=True)
class Request:
    """What the user asked for; the same on all ranks.

    ``sizes`` in bytes, multiples of four; ``payload`` has the lengths of x and y of the iterations
    that are checked.
    """

    sizes: tuple[int, ...]
    payload: Sizes
    topology: str | None = None
    reading: Reading = BY_NAME
    repeats: int = 20
    device: str = "auto"
    gpu_direct: bool = False
    output: str | None = None
    overwrite: bool = False


def bench(request: Request) -> None:
    """Measure on all ranks, print the tables and write the file; collective over COMM_WORLD.

    Raises:
        AgreedError: the request cannot be met.
    """
    do_together(lambda comm: _bench(request, node.local(comm), Tally(comm)))


def _bench(request: Request, here: node.Local, tally: Tally) -> None:
    agree_on(tally, request)
    weights, notes = on_root(tally, lambda: _read(request, tally.agents))
    ground, more = _ground(request, here, tally)
    log = Console(stderr=True, quiet=not tally.is_root, highlight=False, soft_wrap=True)
    for note in (*notes, *more):
        log.print(f"note: {note}", markup=False)
    result = _measure(request, ground, weights)
    for note in ground.carried.notes:
        log.print(f"note: {note}", markup=False)

    def finish() -> None:
        assert result is not None
        if len(result.edges) and (names := unchecked(result.methods)):
            log.print(f"note: {TOO_LARGE.format(', '.join(names))}", markup=False)
        console(launched=True).print(render_bench(result))
        if request.output:
            write_bench(Path(request.output), result, request.overwrite)
            log.print(f"wrote {request.output}", markup=False)

    on_root(tally, finish)


def _read(request: Request, agents: int) -> tuple[Mixing, tuple[str, ...]]:
    if request.output:
        check_writable(Path(request.output), request.overwrite)
    if request.topology is None:
        return BUILDERS["ring"](agents), (ALONE,) if agents == 1 else ()
    loaded = read_weights(request.topology, request.reading)
    weights = loaded.weights
    if weights.agents != agents:
        raise UsageError(
            f"{request.topology} has {number_of(weights.agents, 'agent')} but "
            f"{number_of(agents, 'rank')} started: use mpirun -n {weights.agents}, or leave "
            "--topology out for a ring of the ranks."
        )
    said = (ALONE,) if agents == 1 else () if weights.steady else (CHANGES,)
    return weights, (*loaded.notes, *said)


def _ground(request: Request, here: node.Local, tally: Tally) -> tuple[Ground, list[str]]:
    """Choose this rank's buffers, and say what the user must know; collective."""
    device, notes = jointly(tally, lambda: node.choose_device(request.device, here))
    node.cap_threads(here)
    prepare_heap()  # as in a run
    devices = {HOST: torch.device("cpu")}
    if all(tally.everyone(device.type == "cuda")):
        devices |= dict.fromkeys((STAGED, DIRECT) if request.gpu_direct else (STAGED,), device)
    elif request.gpu_direct:
        raise AgreedError(NO_DEVICE)
    said = [*notes, *node.crowd_notes(here)]
    return Ground(here, tally, devices, request.repeats), said


def _measure(request: Request, ground: Ground, weights: Mixing) -> Bench | None:
    """Return, on rank 0, all that was measured and what follows from it; collective."""
    nodes = np.array(ground.local.nodes)
    networks = parts(weights, nodes)
    edges = networks[ALL].edges()
    series = measure_series(ground, networks, request.sizes)
    pairs = measure_pairs(ground, edges, request.sizes)
    messages = checked_messages(request.payload) if len(edges) else {}
    measured = measure_iterations(ground, networks[ALL], list(messages))
    where = ranks(ground)
    if series is None or pairs is None or where is None:
        return None
    sizes = np.array(request.sizes)
    links = fit_links(series, sizes, {n: load(part.edges(), nodes) for n, part in networks.items()})
    models = {key: model_of(fits, nodes) for key, fits in links.items()}
    return Bench(
        attributes=about(weights, request.repeats, request.payload, ground.carried.routes()),
        sizes=sizes,
        ranks=where,
        edges=edges,
        pairs=pairs,
        series=series,
        links=links,
        methods=tuple(Sent.of(sent, names) for sent, names in messages.items()),
        checks=check(models, measured or {}, load(edges, nodes), list(messages)),
    )

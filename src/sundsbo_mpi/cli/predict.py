"""``sundsbo-mpi predict``: what an iteration would cost elsewhere, from the file of a bench."""

from __future__ import annotations

import inspect
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.flags import set_option, task_option
from sundsbo_mpi.cli.integers import PAYLOAD, PAYLOAD_TEXT, Integers, payload_option
from sundsbo_mpi.cli.reading import reading_options
from sundsbo_mpi.errors import UsageError, printable, unknown
from sundsbo_mpi.options import require_integer, require_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sundsbo_mpi.algorithms.messages import Sizes
    from sundsbo_mpi.bench.model import Model
    from sundsbo_mpi.bench.prediction import Asked, Placed, Prediction
    from sundsbo_mpi.bench.record import Bench
    from sundsbo_mpi.topology import Mixing, Reading

    Agents = tuple[int, ...] | None


@click.command()
@click.option(
    "--topology",
    required=True,
    metavar="FILE|NAME",
    type=click.Path(),
    help="Weights, or with --agents a kind.",
)
@reading_options
@click.option(
    "--agents",
    type=Integers("100,1000"),
    metavar="N,...",
    help="Make the topology NAME for so many agents.",
)
@click.option(
    "--model", required=True, metavar="BENCH.h5", type=click.Path(), help="From bench --output."
)
@payload_option(help=f"Lengths of x and y; else {PAYLOAD_TEXT}.")
@task_option(help="Whose x and y are sent.")
@set_option(help="Of the task or algorithm.")
@click.option("--dtype", default="float32", show_default=True, metavar="float32|float64")
@click.option("--algorithm", "methods", multiple=True, metavar="NAME", help="Else all methods.")
@click.option("--transport", default="auto", show_default=True, metavar="NAME")
@click.option("--buffers", default="host", show_default=True, metavar="host|device|direct")
@click.option("--ranks-per-node", type=int, metavar="R", help="Else as many as in the bench.")
@click.option(
    "--gradient-seconds",
    type=float,
    default=0.0,
    show_default=True,
    metavar="S",
    help="What an agent computes in an iteration.",
)
@click.option(
    "--csv",
    "csv_file",
    metavar="FILE.csv",
    type=click.Path(path_type=Path),
    help="Write the numbers there too.",
)
def command(
    topology: str, agents: Agents, reading: Reading, csv_file: Path | None, **how: Any
) -> None:
    """Predict the cost of an iteration on networks that are not at hand.

    \b
    sundsbo-mpi predict --topology ring.npz --model here.h5
    sundsbo-mpi predict --topology ring --agents 64 --model here.h5 --ranks-per-node 64 \\
        --set algorithm.compressor=quantiser
    sundsbo-mpi predict --topology torus --agents 100,1000,10000 --model nodes.h5 \\
        --gradient-seconds 0.003 --algorithm sun-dsbo-gt

    An agent pays alpha + beta bytes for each of its neighbours and rounds, with alpha and beta of
    the class of the link, to the same or to another node, as 'sundsbo-mpi bench' has fitted them on
    one node or several; where more ranks share a node than there, they share what it can move.
    Agents are put on nodes in their order. An iteration takes what the slowest agent needs to
    compute and then to exchange: overlap and the work of compressing are left out. Methods have
    their own default options but for --set. Only the sizes of a --task need torch. Notes tell where
    the bench says little about what is asked, and why.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.bench.prediction import Prediction, placed
    from sundsbo_mpi.bench.tabulating import render_predictions
    from sundsbo_mpi.cli.doubts import doubts
    from sundsbo_mpi.csvfile import check_csv, write_csv
    from sundsbo_mpi.texttable import console

    if csv_file is not None:
        check_csv(csv_file)
    own = [text for text in how["sets"] if text.strip().startswith("algorithm.")]
    asked = _asked(how, own)
    way = (how["transport"], how["buffers"])
    bench = _measured(how["model"], *way)
    model = bench.model(*way)
    ranks_per_node = how["ranks_per_node"] or model.ranks_per_node
    networks = (placed(W, ranks_per_node) for W in _networks(topology, agents, reading))
    found, refused = _predicted(model, networks, asked, all_needed=bool(how["methods"]))
    _note(doubts(how["model"], bench, way, found))
    if csv_file is not None:
        write_csv(csv_file, list(map(asdict, found)), [field.name for field in fields(Prediction)])
    console().print(render_predictions(found, refused, own))


def _note(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        click.echo(f"note: {printable(sentence)}", err=True)


def _predicted(
    model: Model,
    networks: Iterable[Placed],
    asked: Callable[[int], Asked],
    *,
    all_needed: bool,
) -> tuple[list[Prediction], dict[str, str]]:
    """Return the predictions, and why methods have none, by their names.

    Raises:
        UsageError: all are needed and one cannot run so, or none can.
    """
    from sundsbo_mpi.bench.prediction import Refused, predict, require_measured

    found: list[Prediction] = []
    refused = {}
    for network in networks:
        require_measured(model, network)
        for one in predict(model, network, asked(network.agents)):
            if isinstance(one, Refused):
                refused[one.method] = one.reason
            else:
                found.append(one)
    if refused and (all_needed or not found):
        raise UsageError(next(iter(refused.values())))
    return found, refused


def _asked(how: Mapping[str, Any], own: Sequence[str]) -> Callable[[int], Asked]:
    """Return what is asked about a network of so many agents.

    Raises:
        UsageError: a flag is out of range, names what there is not, or contradicts another.
    """
    from sundsbo_mpi.bench.prediction import Asked, senders
    from sundsbo_mpi.config.settings import assignments

    require_number("--gradient-seconds", how["gradient_seconds"], 0)
    if how["ranks_per_node"] is not None:
        require_integer("--ranks-per-node", how["ranks_per_node"], 1)
    methods, options = senders(how["methods"]), assignments(own).get("algorithm", {})
    sizes = _sizes(how, tuple(text for text in how["sets"] if text not in own))
    return lambda agents: Asked(methods, sizes(agents), how["gradient_seconds"], options)


def _sizes(how: Mapping[str, Any], of_task: tuple[str, ...]) -> Callable[[int], Sizes]:
    from sundsbo_mpi.algorithms.messages import Sizes

    size = _itemsize(how["dtype"])
    if not how["task"]:
        if of_task:
            raise UsageError(
                f"--set {of_task[0]} is for the options of a --task, which was not named: name it, "
                "or leave the setting out."
            )
        x, y = how["payload"] or PAYLOAD
        return lambda _: Sizes(x, y, size)
    if how["payload"]:
        raise UsageError("got --task and --payload: the task has its own sizes, leave one out.")

    def of_agents(agents: int) -> Sizes:
        from sundsbo_mpi.bench.task_sizes import task_sizes

        return task_sizes(how["task"], of_task, agents, size)

    return of_agents


def _itemsize(dtype: str) -> int:
    import numpy as np

    from sundsbo_mpi.config.tables import DTYPES

    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    return np.dtype(dtype).itemsize


def _measured(path: str, transport: str, buffers: str) -> Bench:
    """Return the bench of a file, which knows this transport.

    Raises:
        UsageError: the file cannot be read, or lacks the transport.
    """
    from sundsbo_mpi.bench.file import read_bench

    bench = read_bench(path)
    if not bench.links:
        raise UsageError(
            f"'{path}' has no costs of links: it was measured on one rank; start the bench with "
            "mpirun -n N, N at least 2."
        )
    if (transport, buffers) not in bench.links:
        known = {" with --buffers ".join(names) for names in bench.links}
        raise unknown("measured transport", f"{transport} with --buffers {buffers}", known)
    return bench


def _networks(topology: str, agents: Agents, reading: Reading) -> Iterator[Mixing]:
    """Read the weights, or make them for each number of agents."""
    from sundsbo_mpi.topology import builder_of, read_weights

    if agents is None:
        loaded = read_weights(topology, reading)
        _note(loaded.notes)
        yield loaded.weights
        return
    build = builder_of(topology, "topology to make for --agents (a file has its own number)")
    needed = [p for p in inspect.signature(build).parameters.values() if p.default is p.empty]
    if len(needed) > 1:  # beside the number of agents
        raise UsageError(
            f"the topology {topology} has options that must be given: write it to a file with "
            f"'sundsbo-mpi topology {topology}', and give the file without --agents."
        )
    for number in agents:
        yield build(number)

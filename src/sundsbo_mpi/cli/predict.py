"""``sundsbo-mpi predict``: what an iteration would cost elsewhere, from the file of a bench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.flags import set_option, task_option
from sundsbo_mpi.cli.integers import PAYLOAD, PAYLOAD_TEXT, Integers, payload_option
from sundsbo_mpi.cli.reading import reading_options
from sundsbo_mpi.errors import UsageError, printable, unknown
from sundsbo_mpi.options import require_integer, require_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
    their own default options but for --set. Notes tell where the bench says little about this.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.bench.doubts import doubts
    from sundsbo_mpi.bench.tabulating import render_predictions, write_predictions
    from sundsbo_mpi.csvfile import check_csv
    from sundsbo_mpi.texttable import console

    if csv_file is not None:
        check_csv(csv_file)
    own = [text for text in how["sets"] if text.strip().startswith("algorithm.")]
    of_task = tuple(text for text in how["sets"] if text not in own)
    sizes = _sizes(how["task"], of_task, how["payload"], how["dtype"])
    asked = _asked(how["methods"], own, sizes, how["gradient_seconds"])
    way = (how["transport"], how["buffers"])
    bench, model = _measured(how["model"], *way)
    weights = _networks(topology, agents, reading)
    networks = _on_nodes(weights, how["ranks_per_node"], model.ranks_per_node)
    found, refused = _predicted(model, networks, asked, all_needed=bool(how["methods"]))
    _note(doubts(how["model"], bench, way, found))
    if csv_file is not None:
        write_predictions(csv_file, found)
    console().print(render_predictions(found, refused, own))


def _on_nodes(weights: Iterable[Mixing], asked: int | None, measured: int) -> Iterator[Placed]:
    """Put agents on nodes, so many to each as asked, or as the bench had."""
    from sundsbo_mpi.bench.prediction import placed

    if asked is not None:
        require_integer("--ranks-per-node", asked, 1)
    return (placed(W, asked or measured) for W in weights)


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


def _asked(
    names: Sequence[str], own: Sequence[str], sizes: Callable[[int], Sizes], gradient: float
) -> Callable[[int], Asked]:
    """Return what is asked about a network of so many agents.

    Raises:
        UsageError: a flag is out of range, or names what there is not.
    """
    from sundsbo_mpi.bench.prediction import Asked, senders
    from sundsbo_mpi.config.settings import assignments

    require_number("--gradient-seconds", gradient, 0)
    methods, options = senders(names), assignments(own).get("algorithm", {})
    return lambda agents: Asked(methods, sizes(agents), gradient, options)


def _sizes(
    task: str | None, of_task: tuple[str, ...], payload: Sequence[int] | None, dtype: str
) -> Callable[[int], Sizes]:
    """Return the sizes of what so many agents send.

    Raises:
        UsageError: a flag names what there is not, or contradicts another.
    """
    from sundsbo_mpi.algorithms.messages import Sizes

    size = _itemsize(dtype)
    if not task:
        if of_task:
            raise UsageError(
                f"--set {of_task[0]} is for the options of a --task, which was not named: name it, "
                "or leave the setting out."
            )
        x, y = payload or PAYLOAD
        return lambda _: Sizes(x, y, size)
    if payload:
        raise UsageError("got --task and --payload: the task has its own sizes, leave one out.")

    def of_agents(agents: int) -> Sizes:
        from sundsbo_mpi.bench.task_sizes import task_sizes

        return task_sizes(task, of_task, agents, size)

    return of_agents


def _itemsize(dtype: str) -> int:
    import numpy as np

    from sundsbo_mpi.config.tables import DTYPES

    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    return np.dtype(dtype).itemsize


def _measured(path: str, transport: str, buffers: str) -> tuple[Bench, Model]:
    """Return the bench of a file, and what it knows of this transport.

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
    return bench, bench.model(transport, buffers)


def _networks(topology: str, agents: Agents, reading: Reading) -> Iterator[Mixing]:
    """Read the weights, or make them for each number of agents."""
    from sundsbo_mpi.bench.networks import made
    from sundsbo_mpi.topology import read_weights

    if agents is not None:
        return made(topology, agents, reading)
    loaded = read_weights(topology, reading)
    _note(loaded.notes)
    return iter((loaded.weights,))

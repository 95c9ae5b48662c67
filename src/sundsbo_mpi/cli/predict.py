"""``sundsbo-mpi predict``: what an iteration would cost elsewhere, from the file of a bench."""

from __future__ import annotations

import inspect
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.bench import PAYLOAD, integers, lengths
from sundsbo_mpi.cli.reading import reading_options
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.options import require_integer, require_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sundsbo_mpi.bench.messages import Sizes
    from sundsbo_mpi.bench.model import Model
    from sundsbo_mpi.bench.prediction import Prediction, Refused
    from sundsbo_mpi.topology import Mixing, Reading

ITEMSIZES = {"float32": 4, "float64": 8}


@click.command()
@click.option(
    "--topology",
    required=True,
    metavar="FILE|NAME",
    type=click.Path(),
    help="Weights, or with --agents a kind.",
)
@reading_options
@click.option("--agents", metavar="N,...", help="Make the topology NAME for so many agents.")
@click.option(
    "--model", required=True, metavar="BENCH.h5", type=click.Path(), help="From bench --output."
)
@click.option("--payload", metavar="D_X,D_Y", help=f"Lengths of x and y; else {PAYLOAD}.")
@click.option("--task", metavar="NAME|FILE.py:CLASS", help="Whose x and y are sent.")
@click.option(
    "--set", "sets", multiple=True, metavar="TABLE.KEY=VALUE", help="Of the task or algorithm."
)
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
    topology: str, agents: str | None, reading: Reading, csv_file: Path | None, **how: Any
) -> None:
    """Predict the cost of an iteration on networks that are not at hand.

    \b
    sundsbo-mpi predict --topology torus --agents 100,1000,10000 --model here.h5
    sundsbo-mpi predict --topology W.npz --model here.h5 --ranks-per-node 64 \\
        --gradient-seconds 0.003 --algorithm sun-dsbo-gt
    sundsbo-mpi predict --topology ring --agents 64 --model here.h5 \\
        --set algorithm.compressor=quantiser

    An agent pays alpha + beta bytes for each of its neighbours and rounds, with alpha and beta of
    the class of the link, to the same or to another node, as 'sundsbo-mpi bench' has fitted them;
    where more ranks share a node than in the bench, they share what it can move. Agents are put on
    nodes in their order. An iteration takes what the slowest agent needs to compute and then to
    exchange: overlap and the work of compressing are left out. Methods have their own default
    options but for --set. Neither MPI nor torch is needed, but for the sizes of a --task.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.bench.prediction import Prediction
    from sundsbo_mpi.bench.tabulating import render_predictions
    from sundsbo_mpi.csvfile import check_csv, write_csv
    from sundsbo_mpi.texttable import console

    _check(how)
    if csv_file is not None:
        check_csv(csv_file)
    model = _model(how["model"], how["transport"], how["buffers"])
    found, refused = [], {}
    for one in _predictions(model, _networks(topology, agents, reading), how):
        if isinstance(one, Prediction):
            found.append(one)
        else:
            refused[one.method] = one.reason
    if refused and (how["named"] or not found):
        raise UsageError(next(iter(refused.values())))
    if csv_file is not None:
        columns = [field.name for field in fields(Prediction)]
        write_csv(csv_file, list(map(asdict, found)), columns)
    console().print(render_predictions(found, refused, how["own"]))


def _check(how: dict[str, Any]) -> None:
    """Refuse what is out of range, and name the methods."""
    from sundsbo_mpi.algorithms import method
    from sundsbo_mpi.bench.prediction import decentralised

    require_number("--gradient-seconds", how["gradient_seconds"], 0)
    if how["ranks_per_node"] is not None:
        require_integer("--ranks-per-node", how["ranks_per_node"], 1)
    if how["dtype"] not in ITEMSIZES:
        raise unknown("dtype", how["dtype"], ITEMSIZES)
    if how["task"] and how["payload"]:
        raise UsageError("got --task and --payload: the task has its own sizes, leave one out.")
    how["own"] = tuple(text for text in how["sets"] if text.strip().startswith("algorithm."))
    how["sets"] = tuple(text for text in how["sets"] if text not in how["own"])
    if how["sets"] and not how["task"]:
        raise UsageError(
            f"--set {how['sets'][0]} is for the options of a --task, which was not named: name it, "
            "or leave the setting out."
        )
    how["named"] = bool(how["methods"])
    for name in how["methods"]:
        method(name)
    sending = decentralised()
    if silent := [name for name in how["methods"] if name not in sending]:
        raise UsageError(f"{silent[0]} sends nothing: name a decentralised method.")
    how["methods"] = how["methods"] or sending


def _predictions(
    model: Model, networks: Iterable[Mixing], how: Mapping[str, Any]
) -> Iterator[Prediction | Refused]:
    from sundsbo_mpi.bench.prediction import Asked, placed, predict, require_measured
    from sundsbo_mpi.config.settings import assignments

    options = assignments(how["own"]).get("algorithm", {})
    for weights in networks:
        network = placed(weights, how["ranks_per_node"] or model.ranks_per_node)
        require_measured(model, network)
        sizes = _sizes(how, weights.agents)
        asked = Asked(how["methods"], sizes, how["gradient_seconds"], options)
        yield from predict(model, network, asked)


def _model(path: str, transport: str, buffers: str) -> Model:
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
    return bench.model(transport, buffers)


def _networks(topology: str, agents: str | None, reading: Reading) -> Iterator[Mixing]:
    """Read the weights, or make them for each number of agents."""
    from sundsbo_mpi.topology import BUILDERS, SEQUENCES, read_weights

    if agents is None:
        loaded = read_weights(topology, reading)
        for note in loaded.notes:
            click.echo(note, err=True)
        yield loaded.weights
        return
    known = BUILDERS | SEQUENCES
    if topology not in known:
        raise unknown("topology to make for --agents (a file has its own number)", topology, known)
    needed = [
        p for p in inspect.signature(known[topology]).parameters.values() if p.default is p.empty
    ]
    if len(needed) > 1:  # beside the number of agents
        raise UsageError(
            f"the topology {topology} has options that must be given: write it to a file with "
            f"'sundsbo-mpi topology {topology}', and give the file without --agents."
        )
    for number in integers("--agents", agents):
        yield known[topology](number)


def _sizes(how: Mapping[str, Any], agents: int) -> Sizes:
    from sundsbo_mpi.bench.messages import Sizes

    itemsize = ITEMSIZES[how["dtype"]]
    if how["task"]:
        from sundsbo_mpi.bench.task_sizes import task_sizes

        return Sizes(*task_sizes(how["task"], how["sets"], agents), itemsize)
    return Sizes(*lengths(how["payload"] or PAYLOAD), itemsize)

"""``sundsbo-mpi topology``: write, convert, check and draw weight matrices.

There is one subcommand for every function of ``topologies``; its parameters are the options.
"""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import click

from sundsbo_mpi.cli.integers import Integers
from sundsbo_mpi.cli.named import Named
from sundsbo_mpi.cli.reading import reading_options
from sundsbo_mpi.topology import (
    RULES,
    SEQUENCES,
    Mixing,
    Reading,
    read_weights,
    reweighted,
    topologies,
    write_weights,
)
from sundsbo_mpi.topology.graphs import BY_DEGREES

if TYPE_CHECKING:
    from collections.abc import Callable

    from sundsbo_mpi.topology import Loaded

EXAMPLES = {"N": "4", "NUMBER": "0.5", "I,J,...": "1,3"}
"""A value of every kind that an option of a builder may have."""


def _number(text: str) -> float:
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"got '{text}', expected a number such as 0.5 or 1/3.") from None


@click.group(name="topology", cls=Named, kind="topology")
def command() -> None:
    """Write, convert, check and draw the weights with which agents average.

    \b
    sundsbo-mpi topology ring --agents 10 --self-weight 0.5 -o ring.npz
    sundsbo-mpi topology check ring.npz
    sundsbo-mpi topology draw ring.npz -o ring.png

    A file of the name given with -o is replaced.
    """  # noqa: D301  (click takes the character \b, not a backslash)


@command.command()
@click.argument("file", type=click.Path())
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=click.Path(),
    help=".npz .npy .txt .csv .mtx (.gz)",
)
@click.option(
    "--rule",
    metavar="|".join(RULES),
    help="Give the edges new weights: 'fastest' are those with the smallest rho.",
)
@reading_options
def convert(file: str, output: str, rule: str | None, reading: Reading) -> None:
    """Write a file in another format.

    \b
    sundsbo-mpi topology convert campus.graphml -o W.npz
    sundsbo-mpi topology convert W.npz --rule fastest -o fastest.npz

    A graph gets weights on the way, and with --rule a matrix gets others.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    # With a rule the file's own weights are not those that are written.
    loaded = _load(file, reading, unsaid=BY_DEGREES if rule else None)
    weights = loaded.weights if rule is None else reweighted(loaded.weights, rule)
    named = loaded.node_ids != tuple(map(str, range(weights.agents)))
    write_weights(weights, output, loaded.node_ids if named else ())
    _wrote(output, weights)


@command.command()
@click.argument("file", type=click.Path())
@reading_options
def check(file: str, reading: Reading) -> None:
    """Print what matters of the weights in a file.

    \b
    sundsbo-mpi topology check ring.npz

    Weights that are not fit for gossip are refused with exit status 2.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from rich import box
    from rich.table import Table

    from sundsbo_mpi.cli.weight_facts import facts
    from sundsbo_mpi.texttable import console

    loaded = _load(file, reading)
    title = loaded.weights.description
    table = Table(box=box.SIMPLE_HEAD, show_header=False, pad_edge=False, title=title)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for fact, value in facts(loaded.weights).items():
        table.add_row(fact, value)
    console().print(table, markup=False)


@command.command()
@click.argument("file", type=click.Path())
@click.option(
    "-o", "--output", required=True, metavar="FILE", type=click.Path(), help=".png, .pdf or .svg"
)
@reading_options
def draw(file: str, output: str, reading: Reading) -> None:
    """Draw the graph of a file.

    \b
    sundsbo-mpi topology draw ring.npz -o ring.png

    Edges are as wide as their weights, which are averages where these change.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.pictures.topology import draw_weights

    loaded = _load(file, reading)
    draw_weights(loaded.weights, output)
    _wrote(output, loaded.weights)


def _load(file: str, reading: Reading, unsaid: str | None = None) -> Loaded:
    loaded = read_weights(file, reading)
    for note in loaded.notes:
        if unsaid is None or unsaid not in note:
            click.echo(note, err=True)
    return loaded


def _wrote(output: str, weights: Mixing) -> None:
    click.echo(f"wrote {output}: {weights.name}, n = {weights.agents}, rho = {weights.rho_text}")


def _builder_command(name: str, build: Callable[..., Mixing]) -> click.Command:
    """Make the subcommand of a builder from its signature and docstring."""
    suffixes = ".npz (.gz)" if name in SEQUENCES else ".npz .npy .txt .csv .mtx (.gz)"
    hints = get_type_hints(build, include_extras=True)
    parameters = list(inspect.signature(build).parameters.values())[1:]

    def write(agents: int, lazy: bool, output: str, **options: Any) -> None:
        weights = build(agents, lazy=lazy, **options)
        write_weights(weights, output)
        _wrote(output, weights)

    fixed = [
        click.Option(["--agents"], type=int, required=True, metavar="N", help="Number of agents."),
        click.Option(["--lazy"], is_flag=True, help="Write (I + W)/2 instead of W."),
        click.Option(
            ["-o", "--output"], required=True, metavar="FILE", type=click.Path(), help=suffixes
        ),
    ]
    own = [_option(p, hints[p.name]) for p in parameters if p.name != "lazy"]
    text = inspect.getdoc(build) or name
    needed = "".join(f"{o.opts[0]} {EXAMPLES[o.metavar or '']} " for o in own if o.required)
    example = f"sundsbo-mpi topology {name} --agents 16 {needed}-o {name}.npz"
    return click.Command(
        name,
        callback=write,
        params=[fixed[0], *own, *fixed[1:]],
        help=f"{text}\n\n\b\n{example}",
        short_help=text.splitlines()[0],
    )


def _option(parameter: inspect.Parameter, hint: Any) -> click.Option:
    """Make the option of a builder's parameter, annotated as Annotated[type, help]."""
    kind, text = get_args(hint)
    types: dict[Any, tuple[Any, str]] = {
        int: (int, "N"),
        float: (_number, "NUMBER"),
        tuple[int, ...]: (Integers("1,3"), "I,J,..."),
    }
    reader, metavar = types[kind if kind in types else get_args(kind)[0]]
    option: dict[str, Any] = {"type": reader, "metavar": metavar, "help": text}
    if parameter.default is inspect.Parameter.empty:
        option["required"] = True
    else:
        option |= {"default": parameter.default, "show_default": parameter.default is not None}
    return click.Option(["--" + parameter.name.replace("_", "-")], **option)


for _name, _build in topologies().items():
    command.add_command(_builder_command(_name, _build))

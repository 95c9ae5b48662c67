"""The Sphinx directive ``registry``: a table of what the program's own tables hold.

It is asked of the code whenever the documentation is built, and so cannot be older than the code.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_type_hints

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sphinx.application import Sphinx

Rows = list[tuple[str, ...]]
D = 100_000
"""Numbers of a vector whose bytes are told."""


class Registry(SphinxDirective):
    """``registry:: NAME`` is the table of that name in ``TABLES``; `text` in a cell is code."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {}

    def run(self) -> list[nodes.Node]:
        """Make the table."""
        if self.arguments[0] not in TABLES:
            raise self.error(f"no registry '{self.arguments[0]}', known are {', '.join(TABLES)}")
        heading, *rows = TABLES[self.arguments[0]]()
        return [_table(heading, rows)]


def _table(heading: Sequence[str], rows: Rows) -> nodes.table:
    group = nodes.tgroup(cols=len(heading))
    group += [nodes.colspec(colwidth=1) for _ in heading]
    group += nodes.thead("", _row(heading))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["registry"])


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", _paragraph(cell)) for cell in cells))


def _paragraph(text: str) -> nodes.paragraph:
    made = nodes.paragraph()
    for place, part in enumerate(text.split("`")):
        if part:
            made += nodes.literal(part, part) if place % 2 else _raised(part)
    return made


def _raised(text: str) -> list[nodes.Node]:
    """Return a text in which what stands as ^k or ^{k+1} is raised."""
    made: list[nodes.Node] = []
    for place, part in enumerate(re.split(r"\^(\{[^}]*\}|\w)", text)):
        plain = part.strip("{}") if place % 2 else part
        made.append(nodes.superscript(plain, plain) if place % 2 else nodes.Text(plain))
    return made


def _said(documented: object, paragraphs: int = 1) -> str:
    """Return the first paragraphs of a docstring as one line."""
    text = inspect.getdoc(documented) or ""
    return " ".join(" ".join(text.split("\n\n")[:paragraphs]).split()).replace("``", "`")


def _code(value: object) -> str:
    return f"`{value}`"


def methods() -> Rows:
    """Every method, with its price."""
    from sundsbo_mpi.algorithms import METHODS, by_default

    rows: Rows = [("method", "lower level", "gradients", "oracles", "rounds", "vectors", "W")]
    for name, entry in METHODS.items():
        built = by_default(entry)
        price = (_code(name), entry.convexity, entry.heterogeneity, _oracles(built.oracles))
        rows.append((*price, str(built.rounds), str(built.vectors), _weights(built.lambda_min)))
    return rows


def method_lines() -> Rows:
    """Every method's own words and options."""
    from sundsbo_mpi.algorithms import METHODS
    from sundsbo_mpi.algorithms.base import MethodOptions

    shared = {field.name for field in fields(MethodOptions)}
    rows: Rows = [("method", "what it does", "own options, with defaults")]
    for name, entry in METHODS.items():
        own = [f for f in fields(entry.options) if f.name not in shared]
        options = ", ".join(f"`{f.name}={_default(f.default)}`" for f in own)
        rows.append((_code(name), _said(entry.build), options))
    return rows


def techniques() -> Rows:
    """Every technique, with its recursion and price."""
    from sundsbo_mpi.composition.techniques import TECHNIQUES

    rows: Rows = [("technique", "recursion", "rounds", "vectors", "W")]
    for name, made in TECHNIQUES.items():
        price = (str(made.rounds), str(made.vectors), _weights(made.lambda_min))
        rows.append((_code(name), _said(made.step, 2), *price))
    return rows


def estimators() -> Rows:
    """Every estimator."""
    from sundsbo_mpi.composition.estimators import ESTIMATORS

    rows: Rows = [("estimator", "rule", "directions per iteration")]
    rows += [
        (_code(name), _said(build), str(build({}).evaluations))
        for name, build in ESTIMATORS.items()
    ]
    return rows


def compressors() -> Rows:
    """Every compressor and 16-bit format, with the bytes of a vector."""
    from sundsbo_mpi.composition.compressors import COMPRESSORS, Coarseness
    from sundsbo_mpi.composition.rounding import WIRE_BYTES, WIRE_DTYPES

    rows: Rows = [("setting", "message", "options", f"bytes of {D:,} numbers", "EXTRA and ED")]
    rows.append(("(none)", "the numbers of the run's dtype, float32", "", f"{4 * D:,}", "yes"))
    for name in WIRE_DTYPES:
        size = f"{WIRE_BYTES * D:,}"
        rows.append((_code(f"algorithm.wire={name}"), "16 bits a number", "", size, "yes"))
    for name, offer in COMPRESSORS.items():
        options = [f"`{o}={getattr(Coarseness, o):g}`" for o in offer.options]
        told = ", ".join([*options, f"`gamma_c={offer.gamma_c:g}`"])
        size = f"{offer.build(Coarseness()).size(D):,}"
        setting = _code(f"algorithm.compressor={name}")
        rows.append((setting, _said(offer.build), told, size, "yes" if offer.dense else "no"))
    return rows


def topologies() -> Rows:
    """Every graph and sequence that the command makes, with its options."""
    from sundsbo_mpi.topology import BUILDERS, SEQUENCES

    rows: Rows = [("`sundsbo-mpi topology` …", "weights", "options")]
    for name, build in (BUILDERS | SEQUENCES).items():
        hints = get_type_hints(build, include_extras=True)
        names = [n for n in list(inspect.signature(build).parameters)[1:] if n in hints]
        told = "; ".join(
            f"`--{n.replace('_', '-')}` {get_args(hints[n])[1].rstrip('.')}"
            for n in names
            if n != "lazy"
        )
        rows.append((_code(name), _said(build), told))
    return rows


def transports() -> Rows:
    """Every transport."""
    from sundsbo_mpi.comm.transports import TRANSPORTS

    rows: Rows = [("`--transport` …", "what messages travel over")]
    rows += [(_code(name), transport.about) for name, transport in TRANSPORTS.items()]
    return rows


def tasks() -> Rows:
    """Every built-in task with its options."""
    from sundsbo_mpi.config.settings import parameters
    from sundsbo_mpi.tasks import TASKS, load_task

    rows: Rows = [("`--task` …", "problem", "options (`--set task.…`), with defaults")]
    for name, (_, description) in TASKS.items():
        options = parameters("task", load_task(name))
        told = ", ".join(f"`{option}={_default(value)}`" for option, value in options.items())
        rows.append((_code(name), description, told))
    return rows


def presets() -> Rows:
    """Every preset: its task, and how many settings of each table it has."""
    from sundsbo_mpi.config.settings import preset
    from sundsbo_mpi.config.settings import presets as names

    rows: Rows = [("`--preset` …", "task", "sets")]
    for name in names():
        tables = preset(name)
        told = ", ".join(f"`{table}` ({len(keys)})" for table, keys in tables.items())
        rows.append((_code(name), str(tables.get("task", {}).get("name", "")), told))
    return rows


def settings() -> Rows:
    """The settings of the tables run, topology and output, with their flags."""
    from sundsbo_mpi.cli.run import command
    from sundsbo_mpi.config.settings import FLAGS
    from sundsbo_mpi.config.tables import OutputOptions, RunOptions, TopologyOptions

    shown = {param.name: param for param in command.params}
    by_setting = {setting: flag for flag, setting in FLAGS.items()}
    rows: Rows = [("setting", "flag", "default", "meaning")]
    tables = {"run": RunOptions, "topology": TopologyOptions, "output": OutputOptions}
    for table, options in tables.items():
        for field in fields(options):
            param = shown.get(by_setting.get((table, field.name), ""))
            if param is None:
                param = shown.get({"format": "form"}.get(field.name, field.name))
            flag = _code(param.opts[0]) if param else ""
            about = getattr(param, "help", "") or _attribute(options, field.name)
            if (choices := getattr(param, "metavar", None) or "").islower():
                about += f" One of {', '.join(map(_code, choices.split('|')))}."
            setting = _code(f"{table}.{field.name}")
            rows.append((setting, flag, f"`{_default(field.default)}`", about))
    return rows


def _attribute(owner: type, name: str) -> str:
    """Return the docstring below an attribute in the source of its class."""
    lines = ModuleAnalyzer.for_module(owner.__module__).find_attr_docs()
    return " ".join(lines.get((owner.__name__, name), [])).replace("``", "`").strip()


def _oracles(price: Any) -> str:
    names = {"f": "∇f", "g": "∇g", "hvp": "Hessian-vector", "jvp": "Jacobian-vector"}
    calls = [(count, names[name]) for name, count in price._asdict().items() if count]
    return ", ".join(f"{count} {name}" for count, name in calls)


def _weights(lambda_min: float) -> str:
    if lambda_min == -math.inf:
        return "any"
    from sundsbo_mpi.algorithms.safety import bound_text

    return "symmetric" if lambda_min == -1 else f"symmetric, λₙ > {bound_text(lambda_min)}"


def _default(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


TABLES: Mapping[str, Callable[[], Rows]] = {
    "methods": methods,
    "method-lines": method_lines,
    "techniques": techniques,
    "estimators": estimators,
    "compressors": compressors,
    "topologies": topologies,
    "transports": transports,
    "tasks": tasks,
    "presets": presets,
    "settings": settings,
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("registry", Registry)
    return {"parallel_read_safe": True}

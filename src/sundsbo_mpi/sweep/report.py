"""What a sweep leaves: its table as text, Markdown and CSV, and the best setting to run with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.campaign.tables import Table, markdown, rich_table, spread_text
from sundsbo_mpi.config.toml_text import comment, document, value_text
from sundsbo_mpi.csvfile import write_csv
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.sweep.reading import OWNED
from sundsbo_mpi.sweep.stages import at_the_end
from sundsbo_mpi.texttable import DASH

if TYPE_CHECKING:
    from rich.console import Console

    from sundsbo_mpi.sweep.ranking import Result
    from sundsbo_mpi.sweep.reading import Sweep

BEST = "best.toml"


def report(
    results: Sequence[Result], sweep: Sweep, directory: Path, command: str, console: Console
) -> None:
    """Print the table, and write ``table.md``, ``table.csv`` and ``best.toml``.

    Args:
        results: The best first.
        sweep: What was asked for.
        directory: Of the files.
        command: What was called.
        console: Where the table is printed.

    Raises:
        UsageError: no setting has all its runs, then nothing is written; or a file cannot be.
    """
    table = _table(results, sweep)
    console.print(rich_table(table))
    best = results[0]
    if best.trouble:
        raise UsageError(
            f"no setting has all its runs, so nothing was written in '{directory}': "
            f"{best.trouble}; mend that, and give the same command again, without --collect."
        )
    notes = [
        f"the best {name} is the last of its values on that side: others beyond may be better"
        for name in at_the_end(sweep, best.trial.settings)
    ]
    page = markdown(f"Sweep: {sweep.options.metric}", [f"`{command}`", *_sentences(notes)], [table])
    (directory / "table.md").write_text(page, encoding="utf-8")
    write_csv(directory / "table.csv", [_row(place, r) for place, r in enumerate(results, 1)])
    (directory / BEST).write_text(_best(best, sweep, command), encoding="utf-8")
    for note in notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"wrote {directory}/table.md, table.csv and {BEST}", markup=False)


def _sentences(notes: Sequence[str]) -> list[str]:
    return [f"{note[0].upper()}{note[1:]}." for note in notes]


def _table(results: Sequence[Result], sweep: Sweep) -> Table:
    metric, names = sweep.options.metric, list(sweep.axes)
    tables = {name.partition(".")[0] for name in names}
    shown = [name.partition(".")[2] if len(tables) == 1 else name for name in names]
    header = ["rank", "stage", *shown, metric, "agents' own models", "seeds"]
    header += ["does not count"] if (troubled := any(r.trouble for r in results)) else []
    rows = tuple(
        (
            DASH if result.trouble else str(place),
            str(result.trial.stage + 1),
            *(_shown(result.trial.settings[name]) for name in names),
            spread_text(result.metric),
            spread_text(result.local),
            str(result.metric.size),
            *([result.trouble] if troubled else []),
        )
        for place, result in enumerate(results, 1)
    )
    return Table(f"{metric}, mean ± standard deviation over seeds", tuple(header), rows, words=0)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else value_text(value)


def _row(place: int, result: Result) -> dict[str, Any]:
    """Return a line of the CSV file."""
    settings = {name: _shown(value) for name, value in result.trial.settings.items()}
    return {
        "rank": None if result.trouble else place,
        "stage": result.trial.stage + 1,
        **settings,
        "mean": result.metric.mean,
        "std": result.metric.std,
        "local_mean": result.local.mean,
        "seeds": result.metric.size,
        "trouble": result.trouble,
    }


def _best(best: Result, sweep: Sweep, command: str) -> str:
    """Return the best setting as a configuration file, with a seed of the user's choice."""
    reached = f"{sweep.options.metric} {spread_text(best.metric)}"
    header = [
        f"{reached} over {best.metric.size} seeds, the best",
        "of the settings tried by",
        f"  sundsbo-mpi {command}",
    ]
    return "\n".join(map(comment, header)) + "\n\n" + document(_without_own(best.trial.wanted))


def _without_own(wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    kept = {
        table: {k: v for k, v in of.items() if f"{table}.{k}" not in (*OWNED, "run.seed")}
        for table, of in wanted.items()
    }
    return {table: values for table, values in kept.items() if values}

"""From finished runs to the comparison: printed, and written as Markdown, CSV and pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.campaign.tables import Table, markdown, rich_table
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.reproduce.comparison import entries
from sundsbo_mpi.reproduce.curves import draw
from sundsbo_mpi.reproduce.paper import experiment
from sundsbo_mpi.reproduce.results import Cell, collect
from sundsbo_mpi.reproduce.speedup import averages_table, claims_table
from sundsbo_mpi.reproduce.tables import missing_table, tables
from sundsbo_mpi.reproduce.writing import write_entries

if TYPE_CHECKING:
    from rich.console import Console

    from sundsbo_mpi.reproduce.paper import Label
    from sundsbo_mpi.reproduce.plan import Job

HOW_TO_READ = (
    "Differences are ours minus the paper's, and in brackets in units of the paper's standard "
    "deviation. Equal seeds mean equal splits of the data, so methods are compared pairwise."
)


def report(
    label: Label,
    planned: Mapping[str, Sequence[Job]],
    console: Console,
    folder: Path,
    remark: str = "",
) -> None:
    """Compare what is there, print it, and write it into ``folder``.

    Args:
        label: What is reproduced.
        planned: The runs of each of its experiments.
        console: Where the tables are printed.
        folder: Of the files; made if need be.
        remark: What was asked for other than the paper's.

    Raises:
        UsageError: no run is finished, then nothing is written; or a picture cannot be drawn.
    """
    cells = {name: collect(of) for name, of in planned.items()}
    shown = _tables(label, cells)
    shown = [table for table in shown if table.rows]
    for table in shown:
        console.print(rich_table(table))
    if not any(cell.runs for found in cells.values() for cell in found):
        raise UsageError(_nothing(label, [job.log for of in planned.values() for job in of]))
    folder.mkdir(parents=True, exist_ok=True)
    compared = [e for name, found in cells.items() for e in entries(experiment(name), found)]
    write_entries(folder / "table.csv", compared)
    pictures = [name for name, found in cells.items() if _drawn(folder, name, found)]
    links = [f"![{name}](curves-{name}.png)" for name in pictures]
    how = "" if label.kind == "theorem" else HOW_TO_READ
    texts = (_said(label), remark, how, *links)
    page = markdown(f"{label.name}: {label.caption}", texts, shown)
    (folder / "table.md").write_text(page, encoding="utf-8")
    console.print(f"wrote {folder}/table.md, table.csv and {len(pictures)} pictures", markup=False)


def _nothing(label: Label, logs: Sequence[Path]) -> str:
    log = next((f" (see '{log}')" for log in logs if log.exists()), "")
    return (
        f"no run of {label.name} is finished, so nothing was written: mend what is said above"
        f"{log}, and start the runs without --collect."
    )


def folder_of(label: Label, directory: Path, *, tuned: bool) -> Path:
    """Return where the comparison of a label is written."""
    name = re.sub(r"[^A-Za-z0-9-]+", "-", label.name)
    return directory / (f"{name}-tuned" if tuned else name)


def _tables(label: Label, cells: Mapping[str, Sequence[Cell]]) -> list[Table]:
    if label.kind == "theorem":
        everything = [cell for found in cells.values() for cell in found]
        return [claims_table(cells), averages_table(cells), missing_table(everything)]
    return [table for name, found in cells.items() for table in tables(experiment(name), found)]


def _drawn(folder: Path, name: str, cells: Sequence[Cell]) -> bool:
    return draw(experiment(name), cells, folder / f"curves-{name}.png")


def _said(label: Label) -> str:
    return f"The paper says: {label.says}." if label.says else ""

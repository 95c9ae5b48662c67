"""The files to be compared: all runs or all benches, none of them twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import h5py

from sundsbo_mpi.bench.file import read_bench
from sundsbo_mpi.bench.record import Bench
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import RunData, read_run
from sundsbo_mpi.runfile.opening import DAMAGED, format_of
from sundsbo_mpi.runfile.schema import BENCH_FORMAT, FORMAT

Content = TypeVar("Content")


@dataclass(frozen=True)
class NamedBench:
    """A bench and where it was read; ``number`` counts the benches from 1."""

    number: int
    path: Path
    bench: Bench


def are_benches(paths: Sequence[str]) -> bool:
    """Say whether the files are those of benches; those that cannot be read count as either.

    Raises:
        UsageError: There are runs as well as benches.
    """
    formats = [_format(path) for path in paths]
    if BENCH_FORMAT in formats and FORMAT in formats:
        bench, run = paths[formats.index(BENCH_FORMAT)], paths[formats.index(FORMAT)]
        raise UsageError(
            f"'{bench}' is the file of a bench and '{run}' that of a run: give runs only or "
            "benches only."
        )
    return BENCH_FORMAT in formats


def read_runs(paths: Sequence[str]) -> tuple[list[RunData], list[str]]:
    """Read run files; a run that is given twice counts once, with a remark.

    Raises:
        UsageError: Some cannot be read: one line for each of them.
    """
    runs = _each(read_run, paths)
    # Two runs of one second differ at least in the digits of their times.
    marks = [(sorted(run.attributes.items()), run.elapsed_s.tolist()) for run in runs]
    kept, remarks = _once(paths, [mark if mark[1] else None for mark in marks])
    return [runs[place] for place in kept], remarks


def read_benches(paths: Sequence[str]) -> tuple[list[NamedBench], list[str]]:
    """Read the files of benches; a bench that is given twice counts once, with a remark.

    Raises:
        UsageError: Some cannot be read: one line for each of them.
    """
    benches = _each(read_bench, paths)
    marks = [
        (sorted(b.attributes.items()), [(k, s.slowest.tolist()) for k, s in b.series.items()])
        for b in benches
    ]
    kept, remarks = _once(paths, marks)
    return [NamedBench(n, Path(paths[p]), benches[p]) for n, p in enumerate(kept, 1)], remarks


def _format(path: str) -> str | None:
    try:
        with h5py.File(path, "r", locking=False) as file:
            return format_of(file)
    except DAMAGED:
        return None


def _each(read: Callable[[str], Content], paths: Sequence[str]) -> list[Content]:
    found, troubles = [], []
    for path in paths:
        try:
            found.append(read(path))
        except UsageError as error:
            troubles.append(str(error))
    if troubles:
        raise UsageError("\n".join(troubles))
    return found


def _once(paths: Sequence[str], marks: Sequence[object]) -> tuple[list[int], list[str]]:
    """Return the places of the files that are no copies, and what to say of the others.

    Files are the same if they lie at the same place or bear the same mark other than None.
    """
    kept: list[int] = []
    remarks = []
    for place, (path, mark) in enumerate(zip(paths, marks, strict=True)):
        for other in kept:
            if Path(path).resolve() == Path(paths[other]).resolve() or (
                mark is not None and mark == marks[other]
            ):
                remarks.append(f"'{path}' holds the same as '{paths[other]}': it counts once.")
                break
        else:
            kept.append(place)
    return kept, remarks

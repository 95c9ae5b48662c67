"""Numbers for other programs, as a file of comma-separated values."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sundsbo_mpi.errors import UsageError, reason


def check_csv(path: Path) -> None:
    """Refuse a name that does not end in .csv, such as that of a run file.

    Raises:
        UsageError: It does not.
    """
    if path.suffix.lower() != ".csv":
        raise UsageError(
            f"cannot write '{path}': its suffix is '{path.suffix}', expected .csv; change the name."
        )


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Write all digits of rows that may lack some of the columns; an existing file is replaced.

    What is not known, and NaN, stays empty.

    Args:
        path: Where to write.
        rows: Values by column.
        columns: Those that are there whatever the rows hold.

    Raises:
        UsageError: The file cannot be written.
    """
    header = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    _write(path, header, ([row.get(name) for name in header] for row in rows))


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length, as ``write_csv`` writes rows.

    Raises:
        UsageError: The file cannot be written.
    """
    _write(path, list(columns), zip(*columns.values(), strict=True))


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(map(_plain, row) for row in rows)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {reason(error)}; choose another name.") from error


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value

"""What a check says of one member of a task."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import sundsbo_mpi
from sundsbo_mpi.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

OURS = Path(sundsbo_mpi.__file__).parent


class Verdict(StrEnum):
    """How a check ended."""

    PASS = "pass"
    REMARK = "remark"
    """It works, and something about it is worth knowing."""
    FAIL = "FAIL"
    ABSENT = "-"
    """There is nothing to check."""
    SKIPPED = ""
    """It was not checked, since what it needs has failed."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    what: str
    """The member, or the property, that was looked at."""
    verdict: Verdict
    said: str = ""
    """One sentence where it failed; else what was measured, if anything."""
    trace: str = ""
    """The traceback of the task's own code, where that has raised."""


Said = tuple[Verdict, str]


def passed(said: str = "") -> Said:
    """Say that all is well."""
    return Verdict.PASS, said


def remark(said: str) -> Said:
    """Say that something is worth knowing."""
    return Verdict.REMARK, said


def absent(said: str) -> Said:
    """Say that there is nothing to check."""
    return Verdict.ABSENT, said


def found(what: str, check: Callable[[], Said]) -> Finding:
    """Do a check; whatever it raises makes it fail."""
    try:
        return Finding(what, *check())
    except UsageError as error:
        return Finding(what, Verdict.FAIL, str(error))
    except Exception as error:
        reason = " ".join(str(error).split())
        raised = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        said = f"raised {printable(raised)}; the traceback is below, mend what it points at."
        return Finding(what, Verdict.FAIL, said, _trace(error))


def _trace(error: Exception) -> str:
    """Write the traceback from where it enters code that is not the program's own."""
    step: TracebackType | None = error.__traceback__
    while step is not None and _is_ours(step):
        step = step.tb_next
    return "".join(traceback.format_exception(type(error), error, step or error.__traceback__))


def _is_ours(step: TracebackType) -> bool:
    return OURS in Path(step.tb_frame.f_code.co_filename).parents

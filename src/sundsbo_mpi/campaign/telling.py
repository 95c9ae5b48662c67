"""What is said where a campaign cannot go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import UsageError, reason

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = "interrupted: finished runs are kept, the same command goes on with the others"


@contextmanager
def telling(directory: Path, console: Console) -> Iterator[None]:
    """Say what an interruption leaves, and that a place cannot be written.

    Raises:
        UsageError: it cannot.
    """
    try:
        yield
    except KeyboardInterrupt:
        console.print(INTERRUPTED)
        raise
    except OSError as error:
        raise UsageError(
            f"cannot use '{error.filename or directory}': {reason(error)}; choose "
            "another directory with --out."
        ) from None

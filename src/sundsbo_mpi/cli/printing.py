"""What ``--print-config`` prints: every setting, and where it is from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sundsbo_mpi.comm.launcher import find_launcher

if TYPE_CHECKING:
    from sundsbo_mpi.config.resolving import Request
    from sundsbo_mpi.config.settings import Layer


def print_settings(request: Request) -> None:
    """Print the configuration that a request makes; rank 0 speaks for all.

    Raises:
        UsageError: a file, table, key or value is not what it should be.
    """
    from sundsbo_mpi.config.resolving import resolved
    from sundsbo_mpi.config.toml_text import document

    found = resolved(request, _stored(request))
    if find_launcher().rank == 0:
        click.echo(document(found.config.as_dict(), found.origins()), nl=False)


def _stored(request: Request) -> Layer | None:
    """Return the settings of the run to go on with, however many ranks were started."""
    if not request.resume:
        return None
    from sundsbo_mpi.checkpoint.resuming import candidates
    from sundsbo_mpi.running.resumption import stored_settings

    found = candidates(Path(request.resume))
    return stored_settings(request, found, len(found[0].manifest.about.numbers))

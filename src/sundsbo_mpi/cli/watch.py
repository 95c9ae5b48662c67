"""``sundsbo-mpi watch``: a run while it goes on, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sundsbo_mpi.options import require_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from sundsbo_mpi.runfile import RunData

DID_NOT_FINISH = 1


@click.command()
@click.argument("run", metavar="RUN.h5", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Show the run as it is, and end.")
@click.option(
    "--patience",
    metavar="SECONDS",
    type=float,
    default=3600.0,
    show_default=True,
    help="How long to wait for the file, or for the next evaluation in it.",
)
def command(run: Path, once: bool, patience: float) -> int:
    """Show how a run goes on: progress, metrics, consensus, cost, the slowest agent, events.

    \b
    sundsbo-mpi watch run.h5
    sundsbo-mpi watch --once run.h5
    sundsbo-mpi watch run.h5 | tee -a log.txt

    Waits for a file that is not there yet, and ends with the run: with status 0 if it finished, 1
    if it failed or was interrupted.  One that was interrupted and keeps checkpoints is waited for:
    its job may come again.  One that was killed, or ended by an error on another rank than 0,
    cannot say so: it is given up after --patience.  Through a pipe there is a line for every
    evaluation.  The run does not notice.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.following.live_view import view
    from sundsbo_mpi.following.watching import follow
    from sundsbo_mpi.runfile import read_run
    from sundsbo_mpi.texttable import console

    require_number("--patience", patience, 0.0)
    screen = console()
    if once:
        screen.print(view(read_run(run)))
        return 0
    looks = follow(run, patience)
    last = _live(screen, run, looks) if screen.is_terminal else _by_lines(screen, run, looks)
    return 0 if last is None or last.status == "finished" else DID_NOT_FINISH


def _live(screen: Console, path: Path, looks: Iterable[RunData | None]) -> RunData | None:
    """Show each look in place of the one before."""
    from rich.live import Live
    from rich.text import Text

    from sundsbo_mpi.following.live_view import view

    last = None
    with Live(console=screen, auto_refresh=False) as live:
        for last in looks:
            live.update(Text(_waiting(path)) if last is None else view(last), refresh=True)
    return last


def _by_lines(screen: Console, path: Path, looks: Iterable[RunData | None]) -> RunData | None:
    """Print every evaluation and event that is new, without colours."""
    from sundsbo_mpi.following.live_view import line
    from sundsbo_mpi.following.watching import may_go_on
    from sundsbo_mpi.summary import facts, status

    def say(sentence: str) -> None:
        screen.print(sentence, markup=False, soft_wrap=True)

    rows, events, waits, stopped, last = 0, 0, False, False, None
    for run in looks:
        if run is None:
            if not waits:
                say(_waiting(path))
            waits = True
            continue
        if last is None:
            about = facts(run)
            say(f"{about['algorithm']} on {about['task']}, {about['agents']}, {about['topology']}")
        for event in run.events[events:]:
            say(f"iteration {event.iteration}, {event.time}: {event.sentence}")
        if run.rows and run.rows != rows:
            say(line(run))
        if run.status == "interrupted" and may_go_on(run) and not stopped:
            say("interrupted: it goes on from its checkpoint once its job comes again")
        stopped = run.status == "interrupted"
        rows, events, last = run.rows, len(run.events), run
    if last is not None:
        say(status(last))
    return last


def _waiting(path: Path) -> str:
    return f"waiting for '{path}' ..."

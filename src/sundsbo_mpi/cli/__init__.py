"""The command ``sundsbo-mpi``: which subcommands there are, and how a run ends badly.

Subcommands are imported when they are called, so that ``--help`` needs neither MPI nor torch.
"""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click

from sundsbo_mpi import __version__
from sundsbo_mpi.comm.launcher import launcher_rank
from sundsbo_mpi.errors import AgreedError, DivergedError, UsageError, unknown

COMMANDS = {
    "run": "Run a decentralised method; each MPI rank is one agent (the default command).",
    "topology": "Make, convert, check and draw weight matrices.",
    "show": "Summarise a run: finished, still running, or killed.",
    "plot": "Draw runs against iterations, seconds and bytes.",
    "list": "List algorithms, techniques, tasks, topologies and presets.",
}
USAGE_STATUS, DIVERGED_STATUS, INTERRUPTED_STATUS = 2, 3, 130


class Lazy(click.Group):
    """A group whose commands live in modules of the same name; ``run`` may be left out."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            raise unknown("command", cmd_name, COMMANDS)
        command: click.Command = importlib.import_module(f"sundsbo_mpi.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` in front of flags that are not the group's own."""
        if args and args[0].startswith("-") and args[0] not in ("--help", "--version"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Lazy, context_settings={"help_option_names": ["--help"]})
@click.version_option(__version__, prog_name="sundsbo-mpi")
def sundsbo_mpi() -> None:
    """Decentralised stochastic bilevel optimisation: every MPI rank is one agent.

    \b
    sundsbo-mpi topology ring --agents 10 --self-weight 0.5 -o ring.npz
    mpirun -n 10 sundsbo-mpi --topology ring.npz

    'run' is the default command: its flags may follow sundsbo-mpi directly.
    """  # noqa: D301  (click takes the character \b, not a backslash)


def main() -> None:
    """Run the command line; 2 for a request that cannot be met, 3 for a run that diverged."""
    try:
        status = sundsbo_mpi.main(standalone_mode=False)
    except click.ClickException as error:
        _complain(error.format_message())
        _leave(USAGE_STATUS, together=False)
    except UsageError as error:
        _complain(str(error))
        _leave(USAGE_STATUS, together=isinstance(error, AgreedError))
    except DivergedError as error:
        _complain(str(error))
        _leave(DIVERGED_STATUS, together=True)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED_STATUS)
    sys.exit(status if isinstance(status, int) else 0)


def _complain(sentence: str) -> None:
    """Print one sentence, once."""
    if launcher_rank() == 0:
        print(f"sundsbo-mpi: {sentence}", file=sys.stderr, flush=True)


def _leave(status: int, together: bool) -> NoReturn:
    """Exit with ``status``.

    Ranks that leave before MPI runs are not waited for: a launcher ends the job at the first
    non-zero exit, perhaps before rank 0 has printed its sentence, so only rank 0 gives the status.
    """
    sys.exit(status if together or launcher_rank() == 0 else 0)

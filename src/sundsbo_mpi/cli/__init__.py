"""The command ``sundsbo-mpi``: which subcommands there are, and how a run ends badly.

Subcommands are imported when they are called, so that ``--help`` needs neither MPI nor torch.
"""

from __future__ import annotations

import importlib
import sys
import time
from io import TextIOWrapper
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from sundsbo_mpi import __version__
from sundsbo_mpi.comm.launcher import HYDRA, find_launcher
from sundsbo_mpi.errors import AgreedError, DivergedError, UsageError, printable, unknown

COMMANDS = {
    "run": "Run a decentralised method; each MPI rank is one agent (the default command).",
    "resume": "Go on with a run from its newest checkpoint.",
    "launch": "Write a batch script for a cluster, whose job goes on until the run is done.",
    "task": "Begin a task of your own, and test it before a job is queued.",
    "topology": "Make, convert, check and draw weight matrices.",
    "show": "Summarise a run: finished, still running, or killed.",
    "watch": "Show how a run goes on, live.",
    "repair": "Keep what is whole in a damaged run file.",
    "plot": "Draw runs against iterations, seconds and bytes.",
    "report": "Write a run as a page for the browser.",
    "export": "Write runs as CSV, as Parquet or for TensorBoard.",
    "compare": "Put runs, or benches, from one or several clusters beside one another.",
    "bench": "Measure what exchanges between neighbours cost on these ranks.",
    "predict": "Predict the cost of an iteration on networks that are not at hand.",
    "data": "Find, check and fetch data sets.",
    "sweep": "Try settings beside one another and rank them on validation data.",
    "reproduce": "Make the paper's tables and figures again and compare.",
    "list": "List what there is to choose from, or the options of a method or task.",
}
USAGE_STATUS, DIVERGED_STATUS, INTERRUPTED_STATUS = 2, 3, 130
PATIENCE_SECONDS = 5
"""How long a rank that cannot meet the others leaves the word to rank 0."""


class Lazy(click.Group):
    """A group whose commands live in modules of the same name; ``run`` may be left out."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of COMMANDS."""
        return [*COMMANDS]  # the name of the builtin is taken here by the command list

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None for an unknown one while a shell asks for completions."""
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:
                return None
            raise unknown("command", cmd_name, COMMANDS)
        command: click.Command = importlib.import_module(f"sundsbo_mpi.cli.{cmd_name}").command
        command.name = cmd_name  # not that of the function, which is the same in all modules
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` in front of flags that are not the group's own."""
        alone = not args and not ctx.resilient_parsing
        if alone or (args and args[0].startswith("-") and args[0] not in ("--help", "--version")):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands without importing them, or the flags of ``run`` and the group."""
        if not incomplete.startswith("-"):
            found = {name: text for name, text in COMMANDS.items() if name.startswith(incomplete)}
            return [CompletionItem(name, help=text) for name, text in found.items()]
        run = self.get_command(ctx, "run")
        assert run is not None
        flags = run.shell_complete(click.Context(run, parent=ctx), incomplete)
        return [*flags, *super().shell_complete(ctx, incomplete)]


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
    if isinstance(sys.stdout, TextIOWrapper):
        # As on the standard error: names of files need not be text, nor a terminal know all of it.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = sundsbo_mpi.main(standalone_mode=False)
    except click.ClickException as error:
        _refuse(_with_advice(error))
    except AgreedError as error:
        _leave_together(str(error), USAGE_STATUS)
    except DivergedError as error:
        _leave_together(str(error), DIVERGED_STATUS)
    except UsageError as error:
        _refuse(str(error))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED_STATUS)
    except Exception as error:
        if "mpi4py" in sys.modules:
            # Other ranks may be waiting for this one.
            importlib.import_module("sundsbo_mpi.comm.ending").abort(error)
        raise
    sys.exit(status if isinstance(status, int) else 0)


def _with_advice(error: click.ClickException) -> str:
    """Return what click has to say, and, where it offers no other name, who knows more."""
    said, context = error.format_message(), getattr(error, "ctx", None)
    if context is None or said.endswith("?"):
        return said
    return f"{said.rstrip('.')}; see '{context.command_path} --help'."


def _leave_together(sentence: str, status: int) -> NoReturn:
    """Exit where all ranks do; MPI's end keeps the others until rank 0 has spoken."""
    if find_launcher().rank == 0:
        _say(sentence)
    sys.exit(status)


def _refuse(sentence: str) -> NoReturn:
    """Exit before the ranks have met; where they can meet, exit with all of them."""
    launcher = find_launcher()
    if launcher.size != 1:
        try:
            importlib.import_module("sundsbo_mpi.ranks.job").meet_all(sentence)
        except AgreedError as error:
            _leave_together(str(error), USAGE_STATUS)
        except UsageError as error:  # there is no MPI to meet over
            sentence = str(error)
    if launcher.rank != 0:
        # Usually all ranks are in the same trouble: rank 0 speaks for them.  Hydra waits for every
        # rank; others end the job at the first exit that is not zero, which must not come before
        # rank 0 has spoken.  A rank that is still there after a while is alone with its trouble.
        if launcher.name == HYDRA:
            sys.exit(USAGE_STATUS)
        time.sleep(PATIENCE_SECONDS)
        sentence = f"[rank {launcher.rank}] {sentence}"
    _say(sentence)
    sys.exit(USAGE_STATUS)


def _say(sentence: str) -> None:
    # Names of files and what they hold may be anything, also what steers a terminal.
    plain = "\n".join(map(printable, sentence.split("\n")))
    print(f"sundsbo-mpi: {plain}", file=sys.stderr, flush=True)

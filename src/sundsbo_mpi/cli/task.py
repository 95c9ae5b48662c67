"""``sundsbo-mpi task``: begin a task of one's own, and test it before a job is queued."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sundsbo_mpi.cli.flags import set_option
from sundsbo_mpi.cli.named import Named
from sundsbo_mpi.errors import UsageError, printable, reason
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sundsbo_mpi.taskcheck import Finding

FAILED_STATUS = 2


@click.group(name="task", cls=Named, kind="command of task")
def command() -> None:
    """Begin a task of your own, and test it before a job is queued.

    \b
    sundsbo-mpi task new ridge
    sundsbo-mpi task check ridge.py:Ridge
    mpirun -n 4 sundsbo-mpi --topology ring.npz --task ridge.py:Ridge
    """  # noqa: D301  (click takes the character \b, not a backslash)


@command.command()
@click.argument("name")
def new(name: str) -> None:
    """Write a small task that runs, with comments, to NAME.py.

    \b
    sundsbo-mpi task new ridge          writes ridge.py with the class Ridge
    sundsbo-mpi task new my/own_task    writes my/own_task.py with the class OwnTask

    A file that exists is never replaced.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from importlib import resources

    path = Path(name).with_suffix(".py") if name.endswith(".py") else Path(f"{name}.py")
    class_name = _class_name(path.stem)
    template = resources.files("sundsbo_mpi") / "templates" / "task.txt"
    text = template.read_text(encoding="utf-8").replace("Template", class_name)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"'{path}' exists already: choose another name.") from None
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {reason(error)}; choose another place.") from None
    click.echo(f"wrote {path}; test it with: sundsbo-mpi task check {path}:{class_name}")


def _class_name(stem: str) -> str:
    """Return the name of the class in a file: OwnTask in own_task.py."""
    words = re.split(r"[-_]+", stem)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name):
        raise UsageError(
            f"'{printable(stem)}' gives no name for a class: take letters, digits, _ and -, and "
            "begin with a letter, as in my_task."
        )
    return name


@command.command()
@click.argument("task", metavar="FILE.py:CLASS")
@click.option("--agents", type=int, default=4, show_default=True, metavar="N", help="How many.")
@set_option(help="Any setting; may be repeated.")
def check(task: str, agents: int, sets: tuple[str, ...]) -> int:
    """Test a task: the forms of what it returns, its gradients, its batches, what it costs.

    \b
    sundsbo-mpi task check ridge.py:Ridge
    sundsbo-mpi task check ridge.py:Ridge --agents 10 --set task.noise=1
    sundsbo-mpi task check hyper-cleaning --set task.dataset=digits

    All agents are built in this process, without MPI, on the CPU.  The exit status is 2 if anything
    fails.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.taskcheck import Verdict, check_task

    findings = check_task(task, agents, sets)
    _print(f"{task}, {number_of(agents, 'agent')}", findings)
    failed = any(finding.verdict is Verdict.FAIL for finding in findings)
    return FAILED_STATUS if failed else 0


def _print(title: str, findings: Sequence[Finding]) -> None:
    from collections import Counter

    from sundsbo_mpi.taskcheck import Verdict
    from sundsbo_mpi.texttable import console, table

    screen = console()
    skipped: dict[str, list[str]] = {}
    for finding in findings:
        if finding.verdict is Verdict.SKIPPED:
            skipped.setdefault(finding.said, []).append(finding.what)
    rows = [(f.what, str(f.verdict), f.said) for f in findings if f.verdict is not Verdict.SKIPPED]
    rows += [("", "", f"{said}: {', '.join(whats)}") for said, whats in skipped.items()]
    screen.print(table(["check", "", ""], rows, title=title, words=3, whole=2))
    for finding in findings:
        if finding.trace:
            screen.print(f"{finding.what}:\n{finding.trace}", markup=False)
    counts = Counter(finding.verdict for finding in findings)
    named = ((Verdict.FAIL, "failed"), (Verdict.REMARK, "remarked on"), (Verdict.PASS, "passed"))
    screen.print(", ".join(f"{counts[v]} {word}" for v, word in named if counts[v]), markup=False)
    for finding in findings:  # again, since traces may have moved the table out of sight
        if finding.verdict is Verdict.FAIL:
            screen.print(f"{finding.what}: {finding.said}", markup=False)

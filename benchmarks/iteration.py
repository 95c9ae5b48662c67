"""An iteration of the program beside the same agents in one process, and beside parts of itself.

    python benchmarks/iteration.py [--starts 3] [--repeats 4] [--iterations 40] [--group NAME]...

Each variant is an MPI job of its own of ten agents, or a simulation of them in one process with the
same gradients, which mixes as well, with one and with two threads: SE and GT over shared memory, by
messages and by hand (``loops_by_hand.py``), SE without messages but for the word on whether to go
on, its gradients and steps alone, and with every round done twice.  The jobs of a group are up
together (some 16 GB) and take turns, there and back.  They are started anew a few times, in another
order: where a process's pages lie is luck that it keeps, and the first to start seems to get those
that others have left scattered.  Three jobs of the same variant took 0.93, 0.93 and 0.92 of what
the first one did; so the worst pages are taken beforehand.  Prints, for each group, the ratios of
each turn's seconds per iteration: median and spread, as JSON and as a table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing

import click
from jobs import HERE, Job, in_mpi, take_scattered_pages
from reporting import report, spread
from workload import TEN

SIMULATED = {"one thread": 1, "two threads": 2}
GROUPS = {
    "SE": {
        "SE / one process, one thread": ("se shared", "one thread"),
        "SE / one process, two threads": ("se shared", "two threads"),
        "gradients and steps in ten processes / one process, one thread": (
            "se apart",
            "one thread",
        ),
        "SE by hand / one process, one thread": ("se by hand", "one thread"),
        "SE by hand, watched / one process, one thread": ("se by hand, watched", "one thread"),
        "SE by hand / one process, two threads": ("se by hand", "two threads"),
        "SE by hand, watched / one process, two threads": ("se by hand, watched", "two threads"),
        "SE shared / SE by hand": ("se shared", "se by hand"),
        "SE shared / SE by hand, watched": ("se shared", "se by hand, watched"),
        "SE shared / SE without exchange": ("se shared", "se alone"),
        "SE by hand, watched / SE without exchange": ("se by hand, watched", "se alone"),
        "SE by hand / gradients and steps in ten processes": ("se by hand", "se apart"),
    },
    "GT": {
        "GT shared / SE shared": ("gt shared", "se shared"),
        "GT by hand / SE by hand": ("gt by hand", "se by hand"),
        "GT shared / GT by hand": ("gt shared", "gt by hand"),
        "SE of two rounds, shared / SE shared": ("se twice shared", "se shared"),
    },
    "messages": {
        "SE messages / SE without exchange": ("se messages", "se alone"),
        "SE messages / SE by hand, messages": ("se messages", "se by hand, messages"),
        "GT messages / SE messages": ("gt messages", "se messages"),
        "GT by hand, messages / SE by hand, messages": (
            "gt by hand, messages",
            "se by hand, messages",
        ),
        "GT messages / GT by hand, messages": ("gt messages", "gt by hand, messages"),
        "SE of two rounds, messages / SE messages": ("se twice messages", "se messages"),
    },
}
"""By group, the ratios that are printed, and what they are of."""


def started(name: str, iterations: int) -> Job:
    """Start the job of a variant."""
    if name not in SIMULATED:
        return in_mpi(TEN, iterations, [name])
    simulation = [sys.executable, HERE / "in_one_process.py", "--threads", SIMULATED[name]]
    return Job([*simulation, "--iterations", iterations])


def turns(names: Sequence[str], repeats: int, iterations: int) -> list[dict[str, float]]:
    """Start the jobs of variants and let them take turns; return the seconds of each turn."""
    with ExitStack() as up:
        jobs = {name: up.enter_context(closing(started(name, iterations))) for name in names}
        orders = [names, names[::-1]] * repeats
        return [{name: jobs[name].measure(name)[0] for name in order} for order in orders]


@click.command()
@click.option("--starts", default=3, show_default=True, help="Of all jobs, one after the other.")
@click.option("--repeats", default=4, show_default=True, help="There and back, of each start.")
@click.option("--iterations", default=40, show_default=True, help="Of a turn.")
@click.option("--group", "groups", multiple=True, type=click.Choice(list(GROUPS)), default=GROUPS)
def main(starts: int, repeats: int, iterations: int, groups: Sequence[str]) -> None:
    """Compare seconds per iteration."""
    for group in groups:
        ratios = GROUPS[group]
        names = list(dict.fromkeys(name for pair in ratios.values() for name in pair))
        found = []
        for start in range(starts):
            first = start * len(names) // starts
            with take_scattered_pages():
                found += turns(names[first:] + names[:first], repeats, iterations)
        report(
            f"iteration, {group}",
            {name: spread([r[a] / r[b] for r in found]) for name, (a, b) in ratios.items()},
            {f"{name}, ms": spread([1e3 * r[name] for r in found]) for name in names},
        )


if __name__ == "__main__":
    main()

"""Processor time of an agent's iteration as the agents become more, each with the same work.

    python benchmarks/scaling.py [--agents 10 --agents 64] [--starts 2] [--repeats 6]

SUN-DSBO-SE on rings of the same degree, all on this machine; its cores are shared, so that only
processor time can tell what an agent costs; it includes that of waiting.  Agents that exchange
nothing but the word on whether to go on, and gradients and steps apart, without even that, tell
what more processes on the same cores and caches cost by themselves.  The jobs of all sizes are up
together and take turns; each does all variants, since a job for each would not fit into memory
(some 18 GB).  A turn ends as a run does, with a word that all wait for.  They are started anew, in
another order, as ``iteration.py`` does and for its reason.  Prints each size beside the first one
of its repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing

import click
from jobs import in_mpi, take_scattered_pages
from reporting import report, spread

VARIANTS = ("se shared", "se messages", "se alone", "se apart")
Turn = dict[tuple[str, int], float]
"""Processor seconds by variant and agents."""


def turns(agents: Sequence[int], repeats: int, iterations: int) -> list[Turn]:
    """Start a job of each size, in this order, and let them take turns."""
    with ExitStack() as up:
        jobs = {n: up.enter_context(closing(in_mpi(n, iterations, VARIANTS))) for n in agents}
        return [
            {(v, n): job.measure(v)[1] for v in VARIANTS for n, job in jobs.items()}
            for _ in range(repeats)
        ]


@click.command()
@click.option("--agents", multiple=True, type=int, default=(10, 64), show_default=True)
@click.option("--starts", default=2, show_default=True, help="Of all jobs, one after the other.")
@click.option("--repeats", default=6, show_default=True, help="Of each start.")
@click.option("--iterations", default=10, show_default=True, help="Of a turn.")
def main(agents: tuple[int, ...], starts: int, repeats: int, iterations: int) -> None:
    """Compare processor seconds per agent and iteration."""
    rounds: list[Turn] = []
    for start in range(starts):
        with take_scattered_pages():
            rounds += turns(agents[:: -1 if start % 2 else 1], repeats, iterations)
    ratios, milliseconds = {}, {}
    for variant in VARIANTS:
        for n in agents:
            name = f"{variant}, n = {n}"
            milliseconds[f"{name}, ms"] = spread([1e3 * r[variant, n] for r in rounds])
            if n != agents[0]:
                found = [r[variant, n] / r[variant, agents[0]] for r in rounds]
                ratios[f"{name} / n = {agents[0]}"] = spread(found)
    report("scaling", ratios, milliseconds)


if __name__ == "__main__":
    main()

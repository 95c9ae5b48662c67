"""Processor time of an agent's iteration as the agents become more, each with the same work.

    python benchmarks/scaling.py [--agents 10 --agents 64] [--repeats 5] [--iterations 10]

SUN-DSBO-SE on rings of the same degree, all on this machine; its cores are shared, so that only
processor time can tell what an agent costs; it includes that of waiting.  Agents that exchange
nothing but the word on whether to go on, and gradients and steps apart, without even that, tell
what more processes on the same cores and caches cost by themselves.  Jobs of all sizes take turns;
prints each size beside the first one of its repetition.
"""

from __future__ import annotations

import click
from iteration import launch
from reporting import report, spread

VARIANTS = ("se shared", "se messages", "se alone", "se apart")


@click.command()
@click.option("--agents", multiple=True, type=int, default=(10, 64), show_default=True)
@click.option("--repeats", default=5, show_default=True)
@click.option("--iterations", default=10, show_default=True)
def main(agents: tuple[int, ...], repeats: int, iterations: int) -> None:
    """Compare processor seconds per agent and iteration."""
    only = [word for name in VARIANTS for word in ("--only", name)]
    rounds = [{n: launch(n, iterations, *only) for n in agents} for _ in range(repeats)]
    ratios, milliseconds = {}, {}
    for variant in VARIANTS:
        key = f"{variant}, processor"
        for n in agents:
            milliseconds[f"{variant}, n = {n}, ms"] = spread([1e3 * r[n][key] for r in rounds])
        for n in agents[1:]:
            name = f"{variant}, n = {n} / n = {agents[0]}"
            ratios[name] = spread([r[n][key] / r[agents[0]][key] for r in rounds])
    report("scaling", ratios, milliseconds)


if __name__ == "__main__":
    main()

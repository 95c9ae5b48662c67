"""Does the program compute on a GPU what it computes on the CPU?  Two to four ranks share one card.

    python benchmarks/gpu.py [--ranks 4] [--iterations 300] [--device cuda|cpu]

Starts the program as a user does, through launch/local.sh with the mpirun beside this python, and
compares run files; a few minutes.  Prints one line of JSON and a table; exit 1 if a check fails, 2
where no GPU is visible.  With ``--device cpu`` the CPU is compared with itself, which only tries
this script.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click
import numpy as np
from reporting import spread
from rich.console import Console
from rich.table import Table
from started import FailedError, Programs, card, sentence, visible

from sundsbo_mpi.bench.file import read_bench
from sundsbo_mpi.bench.record import Bench
from sundsbo_mpi.comm.transports import TRANSPORTS
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import RunData, read_final, read_run

CLEANING = ("sun-dsbo-se", "sun-dsbo-gt")
METHODS = ("sun-dsbo-gt", "sparkle-ed", "d-soba", "ma-dsbo", "mdbo")
FORMS = ("wire=bf16", "compressor=top-k", "compressor=random-k", "private=true")
OVERLAPPED = ("--algorithm", "sun-dsbo-dgd", "--overlap", "always")
QUADRATIC = ("--task", "quadratic", "--dtype", "float64")
LARGER = (*QUADRATIC, "--set", "task.d_x=200", "--set", "task.d_y=400", "--save-final")
"""Messages that MPI moves in another way than short ones."""
TOLERANCE = 1e-10
COMPRESSED_TOLERANCE = 1e-8
"""Larger: another rounding may tip a number over to the next multiple of the quantiser's scale."""
POINTS = 0.5


class Check(NamedTuple):
    """What came of one comparison."""

    passed: bool
    found: str


def apart(run: RunData, known: RunData) -> float:
    """Return by how much losses, errors and consensus differ, as a share of the largest in a curve.

    Infinite where evaluations are missing or a value is not finite.
    """
    curves = [
        {**r.task, **{f"consensus of {v}": c for v, c in r.consensus.items()}} for r in (run, known)
    ]
    if not np.array_equal(run.iteration, known.iteration) or curves[0].keys() != curves[1].keys():
        return np.inf
    worst = 0.0
    for name, curve in curves[1].items():
        if not (np.isfinite(curve).all() and np.isfinite(curves[0][name]).all()):
            return np.inf
        difference = float(np.abs(curves[0][name] - curve).max())
        if difference:
            largest = float(np.abs(curve).max())
            worst = max(worst, difference / largest if largest else np.inf)
    return worst


def same_bytes(run: RunData, known: RunData) -> bool:
    """Tell whether all agents sent as many bytes at every evaluation."""
    return all(
        np.array_equal(run.agents[name], known.agents[name])
        for name in ("bytes_payload", "messages", "rounds")
    )


def points(run: RunData, known: RunData) -> float:
    """Return by how many points the last test accuracies differ."""
    return abs(float(run.task["test_accuracy"][-1]) - float(known.task["test_accuracy"][-1]))


def unequal(final: dict[str, np.ndarray], known: dict[str, np.ndarray]) -> int:
    """Count the numbers of all agents' last iterates that are not the same bits."""
    kinds = [{n: (v.shape, v.dtype) for n, v in each.items()} for each in (final, known)]
    if kinds[0] != kinds[1]:
        return sum(v.size for v in known.values())
    bits = {n: f"u{v.itemsize}" for n, v in known.items()}
    return sum(int((final[n].view(b) != known[n].view(b)).sum()) for n, b in bits.items())


def seconds(run: RunData) -> list[float]:
    """Return the seconds of an iteration between evaluations, but for the first, which warm up."""
    return (np.diff(run.elapsed_s) / np.diff(run.iteration))[1:].tolist()


def agree(programs: Programs, tolerance: float, *words: str) -> Check:
    """Compare the device with the CPU on the quadratic problem."""
    run, known = (
        read_run(programs.run(device, *QUADRATIC, *words)) for device in (programs.device, "cpu")
    )
    worst, bytes_too = apart(run, known), same_bytes(run, known)
    said = (
        f"differ by {worst:.1e}, allowed {tolerance:.0e}; bytes {'equal' * bytes_too or 'differ'}"
    )
    return Check(worst <= tolerance and bytes_too, said)


def clean(programs: Programs, times: dict[str, list[float]], name: str, *words: str) -> Check:
    """Compare the device with the CPU on hyper-cleaning of digits, and note the seconds."""
    words = ("--dataset", "digits", *words)
    run, known = (read_run(programs.run(device, *words)) for device in (programs.device, "cpu"))
    times[f"{name}, {programs.device}, s per iteration"] = seconds(run)
    times[f"{name}, beside it the CPU"] = seconds(known)
    gap, bytes_too = points(run, known), same_bytes(run, known)
    said = f"{gap:.2f} points apart, allowed {POINTS}; bytes {'equal' * bytes_too or 'differ'}"
    return Check(gap <= POINTS and bytes_too, said)


def transported(programs: Programs, staged: dict[str, Path], name: str) -> Check:
    """Run with a transport and compare it bit by bit with the first that was run."""
    staged[name] = programs.run(programs.device, *LARGER, "--transport", name)
    first = next(iter(staged.values()))
    count_ = unequal(read_final(staged[name]), read_final(first))
    route = read_run(staged[name]).attributes["transport"]
    return Check(not count_, f"{count_} numbers differ from {next(iter(staged))}; {route}")


def direct(programs: Programs, staged: dict[str, Path]) -> Check:
    """Hand device buffers to MPI: refused, or the same bits as by way of the host."""
    output = programs.new()
    code, said = programs.start(*programs.words(programs.device, output), *LARGER, "--gpu-direct")
    if code:
        refused = code == 2 and "gpu_direct" in sentence(said)
        return Check(refused, f"exit {code}: {sentence(said)}")
    count_ = unequal(read_final(output), read_final(next(iter(staged.values()))))
    return Check(not count_, f"{count_} numbers differ from staged messages")


def benched(programs: Programs) -> Check:
    """Let the bench measure small messages on the device."""
    output = programs.new()
    sizes = ("--sizes", "4,4096", "--payload", "10,20", "--repeats", "2")
    code, said = programs.start("bench", *sizes, "--device", programs.device, "--output", output)
    if code:
        return Check(False, f"exit {code}: {sentence(said)}")
    missing = unmeasured(read_bench(output), "device" if programs.device == "cuda" else "host")
    return Check(not missing, f"missing: {', '.join(missing)}" if missing else "all measured")


def unmeasured(bench: Bench, buffers: str) -> list[str]:
    """Return the transports whose rounds with these buffers have no time."""
    timed = {
        key.transport
        for key, series in bench.series.items()
        if (key.what, key.buffers) == ("round", buffers) and (series.median > 0).all()
    }
    return [name for name in TRANSPORTS if name not in timed]


def all_checks(programs: Programs, times: dict[str, list[float]]) -> dict[str, Callable[[], Check]]:
    """Return the checks by name, in the order in which they are to be made."""
    staged: dict[str, Path] = {}
    packed = ("--algorithm", METHODS[0], "--set", "algorithm.compressor=quantiser")
    return {
        **{
            f"quadratic, {m}": partial(agree, programs, TOLERANCE, "--algorithm", m)
            for m in METHODS
        },
        "quadratic, compressed": partial(agree, programs, COMPRESSED_TOLERANCE, *packed),
        "quadratic, overlapped": partial(agree, programs, TOLERANCE, *OVERLAPPED),
        **{f"digits, {m}": partial(clean, programs, times, m, "--algorithm", m) for m in CLEANING},
        **{
            f"digits, {form}": partial(clean, programs, times, form, "--set", f"algorithm.{form}")
            for form in FORMS
        },
        **{f"transport {t}": partial(transported, programs, staged, t) for t in TRANSPORTS},
        "--gpu-direct": partial(direct, programs, staged),
        "bench": partial(benched, programs),
    }


def attempt(name: str, check: Callable[[], Check]) -> Check:
    """Make a check, and say at once what came of it; one that could not be made has failed."""
    try:
        made = check()
    except (FailedError, UsageError) as error:
        made = Check(False, str(error))
    print(
        f"{name}: {'good' if made.passed else 'FAILED'}, {made.found}", file=sys.stderr, flush=True
    )
    return made


def surroundings(programs: Programs) -> dict[str, str | int]:
    """Return what everything is measured on; "mpi" as the run files have it."""
    import torch

    runs = sorted(programs.folder.glob("*.h5"))
    on_gpu = programs.device == "cuda"
    return {
        "device": programs.device if on_gpu else "cpu, compared with itself: no GPU was used",
        "card, driver": card() if on_gpu else "none",
        "torch": torch.__version__,
        "mpi": str(read_run(runs[0]).attributes["mpi_library"]) if runs else "unknown",
        "ranks": programs.ranks,
        "iterations": programs.iterations,
        "cores": os.cpu_count() or 0,
    }


@click.command()
@click.option("--ranks", default=4, show_default=True, type=click.IntRange(2, 4))
@click.option("--iterations", default=300, show_default=True, type=click.IntRange(30))
@click.option("--device", default="cuda", type=click.Choice(["cuda", "cpu"]), show_default=True)
def main(ranks: int, iterations: int, device: str) -> None:
    """Make all checks, also where some fail."""
    if device == "cuda" and not visible():
        raise click.UsageError("no GPU is visible to torch: --device cpu tries the script alone.")
    times: dict[str, list[float]] = {}
    table = Table("check", "", "found", title=f"{device} beside cpu, {ranks} ranks")
    with TemporaryDirectory() as folder:
        programs = Programs(ranks, device, iterations, Path(folder))
        made = {name: attempt(name, check) for name, check in all_checks(programs, times).items()}
        about = surroundings(programs)
    figures = {name: spread(values) for name, values in times.items()}
    checks = {name: check._asdict() for name, check in made.items()}
    print(json.dumps({"benchmark": "gpu", **about, "checks": checks, "figures": figures}))
    for name, check in made.items():
        table.add_row(name, "good" if check.passed else "FAILED", check.found)
    for name, figure in figures.items():
        table.add_row(
            name, "", f"{figure['median']:.3g} ({figure['min']:.3g} to {figure['max']:.3g})"
        )
    console = Console(width=130, markup=False)
    for name, value in about.items():
        console.print(f"{name}: {value}")
    console.print(table)
    sys.exit(not all(check.passed for check in made.values()))


if __name__ == "__main__":
    main()

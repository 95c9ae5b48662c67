"""Kills without fault tolerance: a random rank at a random time, and then the run is resumed.

    python tests/soak/killing.py [--kills 200] [--seed 0] [--bin DIR]...

Whatever is killed when, the job must be over within seconds, the run file (if there is one yet) and
the newest checkpoint must be whole, and the resumed run must end with the iterates and the rows of
one that was never interrupted, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import plans
from comparing import differences, newest_row, rows_of
from jobs import BIN, FailedError, Job, complete, topology

LIMIT = 300
MOMENTS = (
    "any",
    "any",
    "start-up",
    "checkpoint",
    "rank 0",
    "twice",
    "other library",
    "other transport",
)
OVER_IN = 5.0
"""Seconds from the kill to the end of the job."""
PER_PLAN = 4
WAYS_OUT = 20
"""Plans that may be refused, or diverge, before one is found that can be run."""


@dataclass
class Reference:
    """A run that was not interrupted."""

    plan: plans.Plan
    bin: Path
    folder: Path
    seconds: float = 0.0
    began: float = 0.0
    """When its first row was there."""

    @property
    def run_file(self):
        return self.folder / "reference.h5"

    def words(self, output):
        plan = self.plan
        return [
            *("--topology", topology(plan.agents, self.folder), "--task", "quadratic"),
            *("--iterations", plan.iterations, "--eval-every", plan.eval_every),
            *("--output", output, "--save-final", *plan.words),
        ]

    def make(self):
        """Run it; return whether that is possible at all: options may not go together."""
        job = Job(self.plan.agents, self.words("reference.h5"), self.folder, self.bin)
        while not job.over and not self.run_file.exists():
            time.sleep(0.01)
        self.began = time.monotonic() - job.began
        status, _ = job.finish(LIMIT)
        self.seconds = time.monotonic() - job.began
        if status not in (0, 2, 3):
            raise FailedError(f"exit {status} without any kill: {job.command}\n{job.said()}")
        return status == 0


@dataclass
class Trial:
    """One run that is killed, perhaps twice, and resumed."""

    reference: Reference
    moment: str
    folder: Path
    rng: np.random.Generator
    others: list[Path]
    """Environments with another MPI library."""
    wrong: list[str] = field(default_factory=list)
    over_in: list[float] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    """The iteration of the newest checkpoint after each kill, -1 for none."""

    def __post_init__(self):
        self.run_file, self.kept = self.folder / "run.h5", self.folder / "kept"

    def go(self):
        try:
            self._go()
        except FailedError as error:
            self.wrong.append(str(error))
        return self

    def _go(self):
        plan, bin = self.reference.plan, self.reference.bin
        first = [
            *self.reference.words("run.h5"),
            *("--checkpoint", "kept", "--checkpoint-every", plan.checkpoint_every),
        ]
        self._kill(Job(plan.agents, first, self.folder, bin))
        words = self._next(first)
        if self.moment == "twice":
            self._kill(Job(plan.agents, words, self.folder, bin))
            words = self._next(first)
        if self.moment == "other transport" and words[0] == "resume":
            words += ["--transport", str(self.rng.choice(plans.TRANSPORTS))]
        elsewhere = self.moment == "other library" and self.others
        if elsewhere:
            bin = self.others[self.rng.integers(len(self.others))]
        complete(plan.agents, words, self.folder, LIMIT, bin)
        # Sums over all agents, of which rows are made, may be taken in another order elsewhere.
        self.wrong += differences(self.reference.run_file, self.run_file, exact=not elsewhere)

    def _next(self, first):
        """Look at what the kill has left; return the words to go on with."""
        self.wrong += rows_of(self.run_file, self.reference.run_file)
        newest, complaints = newest_checkpoint(self.kept)
        self.wrong += complaints
        self.done.append(newest)
        if newest >= 0:
            return ["resume", "kept"]
        agents = self.reference.plan.agents
        _, said = complete(agents, ["resume", "kept"], self.folder, LIMIT, status=2)
        if len(re.findall("^sundsbo-mpi: .*no checkpoint", said, re.MULTILINE)) != 1:
            self.wrong.append(f"without a checkpoint, resume says: {said}")
        return [*first, "--overwrite"]

    def _kill(self, job):
        """Kill one rank at the trial's moment; note how long the job takes to be over."""
        try:
            self._wait(job)
            ranks = job.alive()
            while not ranks and not job.over:
                time.sleep(0.005)
                ranks = job.alive()
            if not ranks:
                return  # it was faster than expected, and is whole
            rank = 0 if self.moment == "rank 0" else int(self.rng.choice(list(ranks)))
            victim = ranks.get(rank, min(ranks.values()))
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            _, seconds = job.finish(LIMIT)
            self.over_in.append(seconds)
            if seconds > OVER_IN:
                self.wrong.append(f"over only {seconds:.1f} s after the kill")
        finally:
            job.end()

    def _wait(self, job):
        """Wait for the moment: by the clock until there are checkpoints, then by these."""
        if self.moment == "start-up":
            time.sleep(self.rng.uniform(0, self.reference.began))
        elif self.moment == "checkpoint":
            wished, seen = self.rng.integers(1, 6), set()
            while not job.over and len(seen) < wished:
                seen |= hidden(self.kept)
            time.sleep(self.rng.uniform(0, 0.004))
        else:
            plan = self.reference.plan
            begun = min(max(0, self._done()), plan.iterations - 1)  # of what is killed twice
            wished = self.rng.integers(begun, plan.iterations)
            every = min(plan.eval_every, plan.checkpoint_every)
            while not job.over and (self._done() < 0 or self._done() + every <= wished):
                time.sleep(0.01)
            # Not always just after a row or checkpoint; an iteration takes about a millisecond.
            time.sleep(self.rng.uniform(0, 0.001 * every))

    def _done(self):
        """Return the iteration of the last row or checkpoint, -1 where there is neither."""
        return max(newest_row(self.run_file), newest_name(self.kept))


def entries(kept):
    with suppress(OSError):
        return {entry.name for entry in os.scandir(kept)}
    return set()


def hidden(kept):
    """Return the checkpoints that are being written."""
    return {name for name in entries(kept) if name.startswith(".iteration-")}


def newest_name(kept):
    """Return the iteration of the newest checkpoint by its name, -1 for none."""
    whole = (re.fullmatch(r"iteration-(\d+)", name) for name in entries(kept))
    return max((int(name[1]) for name in whole if name), default=-1)


def newest_checkpoint(kept):
    """Return the iteration of the newest checkpoint, -1 for none, and what is wrong with any."""
    wrong, newest = [], -1
    for name in sorted(entries(kept)):
        if not name.startswith("iteration-"):
            continue
        try:
            manifest = json.loads((kept / name / "manifest.json").read_text(encoding="utf-8"))
            for agent, digest in enumerate(manifest["digests"]):
                stored = (kept / name / f"agent-{agent:05d}.h5").read_bytes()
                if hashlib.sha256(stored).hexdigest() != digest:
                    wrong.append(f"{name}: the file of agent {agent} is not what was written")
            newest = max(newest, manifest["iteration"])
        except (OSError, ValueError, LookupError) as error:
            wrong.append(f"{name} is not whole: {error!r}")
    return newest, wrong


def find_reference(rng, bins, folder):
    """Draw plans until one can be run, and run it."""
    for _ in range(WAYS_OUT):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        reference = Reference(plans.draw(rng), bins[rng.integers(len(bins))], folder)
        if reference.make():
            return reference
    raise FailedError(f"none of {WAYS_OUT} plans could be run")


def say(number, trial):
    """Print a line of the table."""
    plan, environment = trial.reference.plan, trial.reference.bin.parent.name
    columns = (
        f"{number:4d}  {trial.moment:13s} {plan.agents} ranks of {environment:8s}",
        f"over in {max(trial.over_in, default=0.0):4.1f} s",
        f"resumed at {', '.join(map(str, trial.done)) or '-'} of {plan.iterations}",
        f"{'; '.join(trial.wrong) or 'identical'}",
        plan.name,
    )
    print("  ".join(columns), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Random kills without fault tolerance.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--bin", type=Path, action="append", help="Environments; this one unless given."
    )
    parser.add_argument("--keep", type=Path, help="Where to leave the folders of trials that fail.")
    asked = parser.parse_args()
    bins = [bin.absolute() for bin in asked.bin or [BIN]]
    rng, counts, slowest, missed = np.random.default_rng(asked.seed), Counter(), 0.0, 0
    with tempfile.TemporaryDirectory() as made:
        for number in range(asked.kills):
            if number % PER_PLAN == 0:
                reference = find_reference(rng, bins, Path(made) / "reference")
            folder = Path(made) / f"trial{number}"
            folder.mkdir()
            others = [bin for bin in bins if bin != reference.bin]
            trial = Trial(reference, str(rng.choice(MOMENTS)), folder, rng, others).go()
            say(number, trial)
            counts[trial.moment, not trial.wrong] += 1
            slowest = max([slowest, *trial.over_in])
            missed += not trial.over_in
            if trial.wrong and asked.keep:
                shutil.copytree(folder, asked.keep / f"{asked.seed}-{number}")
            shutil.rmtree(folder)
    failed = sum(n for (_, well), n in counts.items() if not well)
    by_moment = {m: f"{counts[m, True]}/{counts[m, True] + counts[m, False]}" for m in set(MOMENTS)}
    line = {"kills": asked.kills - missed, "missed": missed, "slowest_end": round(slowest, 2)}
    print(json.dumps({"program": "kills", **line, "identical": by_moment, "failed": failed}))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

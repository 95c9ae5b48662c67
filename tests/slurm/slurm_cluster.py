"""A Slurm of its own on this machine: controller, one node, munge; for root, in one folder."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

CORES = 8
"""That the node pretends to have: jobs of several agents run on any machine."""
LARGEST_FIRST_JOB = 60_000_000
CREDENTIAL_SECONDS = 5
"""A job that comes again waits for so long."""
START_SECONDS = 60

CONF = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={credential}
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
MpiDefault=pmix
KillWait=10
ReturnToService=2
FirstJobId={first}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=60 State=UP
"""


class Cluster:
    """The commands of a running Slurm.

    Args:
        folder: Where it keeps its configuration, logs and state.
    """

    def __init__(self, folder: Path) -> None:
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def __call__(self, *words: str | Path, cwd: Path | None = None, **variables: str) -> str:
        """Run one of its commands to a good end; return what it printed."""
        return subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            env=os.environ | self.environment | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout.strip()

    def job(self, number: str) -> dict[str, str]:
        """Return what the controller says of a job, or of a task of an array."""
        words = self("scontrol", "show", "job", number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)


@contextmanager
def running(folder: Path):
    """Start all daemons, and end them after the block."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host = socket.gethostname()
    ports = {"controller": free_port(), "node": free_port()}
    # Ranks that were killed leave shared memory that bears the number of their job.
    first = random.randrange(1, LARGEST_FIRST_JOB)
    (folder / "slurm.conf").write_text(
        CONF.format(
            host=host,
            folder=folder,
            cores=CORES,
            credential=CREDENTIAL_SECONDS,
            first=first,
            **ports,
        )
    )
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    own = [f"--{name}={folder}/munge.{name.split('-')[0]}" for name in ("socket", "pid-file")]
    cluster = Cluster(folder)
    with ExitStack() as daemons:
        for words in (
            ("munged", "--foreground", "--force", f"--key-file={key}", *own,
             f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"),
            ("slurmctld", "-D"),
            ("slurmd", "-D", "-N", host),
        ):  # fmt: skip
            daemons.enter_context(daemon(words, folder, cluster.environment))
            if words[0] == "munged":
                until((folder / "munge.socket").exists, "munged")
        until(lambda: "idle" in cluster("sinfo", "-h", "-o", "%T"), "Slurm's node")
        try:
            yield cluster
        finally:
            cluster("scancel", "--user=root")
            until(lambda: not cluster("squeue", "-h"), "the end of all jobs")


@contextmanager
def daemon(words, folder, environment):
    """Keep a program running, its words in a file named after it."""
    name = words[0]
    program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, f"there is no {name}: run tests/slurm/install.sh"
    with (folder / f"{name}.txt").open("wb") as said:
        process = subprocess.Popen(
            [program, *words[1:]],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(met, what, seconds=START_SECONDS):
    """Wait until something is met; a hang is a failure, of which ``what`` tells when called."""
    end = time.monotonic() + seconds
    while True:
        try:
            if met():
                return
        except subprocess.CalledProcessError:  # nobody answers yet
            pass
        if time.monotonic() > end:
            pytest.fail(f"{what() if callable(what) else what}: not after {seconds} s")
        time.sleep(0.3)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

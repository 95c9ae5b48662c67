"""Hosts for the whole session, and files for jobs over them."""

from __future__ import annotations

import os

import pytest
from namespaces import EACH, HOSTS, Job, made

TASK = """
import time
import torch

class Slow:
    sizes = {"x": 2, "y": 3}

    def __init__(self, *, agent, agents, seed, pause=0.0):
        self.agent, self.pause = agent, pause

    def start(self):
        return torch.zeros(2), torch.zeros(3)

    def sample(self, k, draw=0):
        time.sleep(self.pause)
        return torch.sin(torch.arange(3.0) * (k + 1) + self.agent)

    def upper(self, x, y, batch):
        return ((y - batch) ** 2).sum() / 2 + (x**2).sum() / 2

    def lower(self, x, y, batch):
        return ((y - x.sum() - self.agent) ** 2).sum() / 2

    def report(self, x, y):
        return {"loss": float((y**2).sum())}
"""


@pytest.fixture(scope="session")
def machines():
    """Hosts; only where they were asked for, as they change the machine's network."""
    if "WITH_HOSTS" not in os.environ:
        pytest.skip("hosts are made by 'make test-hosts' alone")
    try:
        with made():
            yield
    except RuntimeError as error:
        pytest.exit(f"test-hosts: {error}", returncode=1)


@pytest.fixture
def job(machines, tmp_path):
    """Start a job over some hosts, 0 for the machine itself, in a folder with what it needs."""
    (tmp_path / "slow.py").write_text(TASK)
    started = []

    def job(mpi, hosts, *words):
        started.append(Job(mpi, hosts, tmp_path, *words))
        return started[-1]

    yield job
    for each in started:
        if each.process.poll() is None:
            each.end(0)


def ring(order):
    """Write the weights of a ring that visits the agents in an order, as the text of a file."""
    n = len(order)
    rows = [[0.0] * n for _ in range(n)]
    for place, agent in enumerate(order):
        rows[agent][agent] = 0.5
        for other in (order[place - 1], order[(place + 1) % n]):
            rows[agent][other] = 0.25
    return "\n".join(" ".join(map(str, row)) for row in rows) + "\n"


@pytest.fixture
def rings(tmp_path):
    """Two rings: neighbours are mostly on one host, and never."""
    assert (HOSTS, EACH) == (3, 2)
    (tmp_path / "near.txt").write_text(ring([0, 1, 2, 3, 4, 5]))
    (tmp_path / "far.txt").write_text(ring([0, 2, 4, 1, 3, 5]))

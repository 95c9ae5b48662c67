"""The tasks of all agents, built in one process as a run would build them on its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from sundsbo_mpi.config.resolving import Config, Request, resolve
from sundsbo_mpi.running.dividing import divided
from sundsbo_mpi.running.inspection import construct
from sundsbo_mpi.tasks import load_task

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.tasks.base import Task

CPU = torch.device("cpu")
AWAY = 0.05
"""How far every entry of a point is from the start, in standard deviations: off the kinks there,
and where a loss is defined that is so at the start."""


@contextmanager
def precision(dtype: torch.dtype) -> Iterator[None]:
    """Make a dtype torch's default, as a run does with its own."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Bench:
    """A task that is checked; each part is made when it is first asked for.

    Args:
        name: As ``--task`` takes it.
        agents: Number of agents.
        sets: Settings, as ``--set`` takes them.
    """

    def __init__(self, name: str, agents: int, sets: tuple[str, ...]) -> None:
        self.name, self.agents, self._sets = name, agents, sets

    @cached_property
    def task_class(self) -> type[Task]:
        """The class."""
        return load_task(self.name)

    @cached_property
    def config(self) -> Config:
        """What a run with these settings would be configured as."""
        return resolve(Request(flags={"task": {"name": self.name}}, sets=self._sets))

    @property
    def dtype(self) -> torch.dtype:
        """That of such a run; the checks of gradients are in float64 whatever it is."""
        found: torch.dtype = getattr(torch, self.config.run.dtype)
        return found

    @cached_property
    def shards(self) -> list[Any]:
        """The agents' shards, none where the task has no ``shards``."""
        return self.divided() if hasattr(self.task_class, "shards") else []

    def divided(self) -> list[Any]:
        """Divide the data."""
        return list(divided(self.config, self.agents, range(self.agents)))

    @cached_property
    def tasks(self) -> list[Task]:
        """The agents' tasks, in float64."""
        return [self.build(agent, torch.float64) for agent in range(self.agents)]

    def build(self, agent: int, dtype: torch.dtype) -> Task:
        """Build an agent's task on the CPU."""
        given = {"agent": agent, "agents": self.agents, "seed": self.config.run.seed}
        divided = {"shard": self.shards[agent]} if self.shards else {}
        with precision(dtype):
            task = construct(self.task_class, given | divided | self.config.task_options)
            if hasattr(task, "to"):
                task.to(CPU, dtype)
        return task

    def offers(self, member: str) -> bool:
        """Tell whether the tasks have an optional member."""
        return hasattr(self.tasks[0], member)

    @property
    def ends(self) -> list[tuple[int, Task]]:
        """The first and the last agent, for what is the same code on all."""
        return [(agent, self.tasks[agent]) for agent in sorted({0, self.agents - 1})]

    def point(self, draw: int = 0) -> tuple[Tensor, Tensor]:
        """Return x and y in float64 that are not far from the start; the same for all agents."""
        rng = torch.Generator().manual_seed(draw)
        x, y = (
            v + AWAY * torch.randn(len(v), generator=rng, dtype=v.dtype)
            for v in self.tasks[0].start()
        )
        return x, y

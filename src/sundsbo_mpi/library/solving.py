"""What ``library.solve`` does: the parts of a run without its files.  Everything is collective."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from sundsbo_mpi.agent import Observer, Position
from sundsbo_mpi.algorithms import method
from sundsbo_mpi.checkpoint import About
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm import node
from sundsbo_mpi.comm.agreement import agree, jointly
from sundsbo_mpi.comm.survivors import Survivors
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.config.methods import suited
from sundsbo_mpi.config.resolving import Config
from sundsbo_mpi.config.settings import complete
from sundsbo_mpi.config.tables import OutputOptions, RunOptions, TopologyOptions
from sundsbo_mpi.diagnosis.causes import Diagnosis
from sundsbo_mpi.diagnosis.health import NotFiniteError
from sundsbo_mpi.errors import AgreedError, DivergedError, UsageError
from sundsbo_mpi.library import Solution
from sundsbo_mpi.measuring import metrics
from sundsbo_mpi.measuring.evaluation import Evaluation
from sundsbo_mpi.ranks.control import Control
from sundsbo_mpi.running.guarding import guarded
from sundsbo_mpi.running.inspection import inspect_private, inspect_task
from sundsbo_mpi.running.preparation import Prepared
from sundsbo_mpi.running.second_derivatives import inspect_twice
from sundsbo_mpi.running.startup import Site, build_agent
from sundsbo_mpi.versions import versions
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.agent import Agent, End
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.tasks.base import Task
    from sundsbo_mpi.topology import Mixing


@dataclass(frozen=True)
class Asked:
    """What is asked of ``solve`` beside the problem and the weights: the same on all ranks."""

    method: str
    iterations: int
    eval_every: int
    options: Mapping[str, Any]

    def config(self, kind: type, dtype: torch.dtype) -> Config:
        """Return the configuration of such a run.

        Raises:
            UsageError: there is none.
        """
        options = complete("algorithm", method(self.method).options, self.options)
        return Config(
            run=RunOptions(
                iterations=self.iterations,
                eval_every=self.eval_every,
                dtype=str(dtype).removeprefix("torch."),
            ),
            topology=TopologyOptions(),
            output=OutputOptions(),
            task={"name": f"{kind.__module__}:{kind.__qualname__}"},
            algorithm={"name": self.method, **options},
        )


@dataclass(frozen=True)
class Measuring(Observer):
    """Evaluates, and does nothing else."""

    evaluation: Evaluation

    def evaluate(self, at: Position) -> None:
        """Measure where the agents stand."""
        self.evaluation(at)


def solve_over(comm: MPI.Intracomm, task: Task, weights: Mixing, asked: Asked) -> Solution:
    """Do what ``library.solve`` says."""
    kind, task = type(task), guarded(task)
    with _closed_together() as opened:
        own = comm.Dup()
        opened.callback(own.Free)
        tally = Tally(own)
        device, dtype = _place(task)
        prepared = _prepared(tally, weights, jointly(tally, lambda: asked.config(kind, dtype)))
        tally.settle()
        inspect_task(tally, task, device, dtype)
        inspect_twice(tally, task, asked.method)
        private = None
        if prepared.config.algorithm["private"]:
            inspect_private(tally, task)
            private = task.private  # type: ignore[attr-defined]
        here = node.local(own)
        clock = Clock(torch.cuda.synchronize if device.type == "cuda" else None)
        site = Site(here, device, node.cap_threads(here), clock)
        everyone = Survivors(own, tuple(range(own.size)), here.waiting)
        agent = build_agent(prepared, task, site, everyone, Control(everyone.tally))
        opened.callback(agent.close)

        history: list[dict[str, float]] = []

        def record(row: Row | None, _w: Variables) -> None:
            if row is not None:
                history.append(_flat(row))

        end = _run(agent, prepared, Evaluation(agent, here.nodes, False, record, private))
        average = metrics.average(tally, end.w, private)
        notes = prepared.connected(agent.gossip.network).notes
        rows = tuple(tally.tell(history))  # which rank 0 alone has
        return Solution(average["x"], average["y"], dict(end.w), rows, notes)


def _place(task: Task) -> tuple[torch.device, torch.dtype]:
    """Return where the task lives, and in which dtype; ``inspect_task`` judges the start itself."""
    start: Any = task.start()
    first = start[0] if isinstance(start, tuple) and start else None
    if isinstance(first, torch.Tensor):
        return first.device, first.dtype
    return torch.device("cpu"), torch.get_default_dtype()


def _prepared(tally: Tally, weights: Mixing, config: Config) -> Prepared:
    """Check the weights, and that all ranks were asked for the same.

    Raises:
        AgreedError: the weights do not fit, or the ranks differ.
    """

    def fit() -> tuple[Mixing, tuple[str, ...]]:
        if weights.agents != tally.agents:
            raise UsageError(
                f"{weights.name} has {number_of(weights.agents, 'agent')} but the communicator "
                f"has {number_of(tally.agents, 'rank')}: start as many, or take other weights."
            )
        return suited(config, weights)

    mixed, notes = jointly(tally, fit)
    agree(tally, versions(), "use the same environment on all nodes")
    facts = {"the call of solve()": config.as_dict(), "the weights (SHA-256)": mixed.sha256}
    agree(tally, facts, "give solve() the same method, options and weights on all ranks")
    numbers = list(range(tally.agents))
    about = About(tally.agents, numbers, config.as_dict(), mixed.sha256, task_sha256="")
    return Prepared(config, tuple(map(str, numbers)), mixed, notes, about)


def _run(agent: Agent, prepared: Prepared, evaluation: Evaluation) -> End:
    """Iterate; say why where the numbers cease to be finite."""
    try:
        return agent.run(Measuring(evaluation))
    except NotFiniteError as error:
        diagnosis = Diagnosis(
            prepared.config, agent.algorithm, prepared.weights, agent.task, agent.tally.agents
        )
        raise diagnosis.explain(error, agent.tally.agent, agent.tally) from None


def _flat(row: Row) -> dict[str, float]:
    return {
        "iteration": row.iteration,
        "seconds": row.elapsed_s,
        "bytes": int(row.agents["bytes_payload"].sum()),
        **row.task,
        **{f"consensus_{v}": error for v, error in row.consensus.items()},
    }


@contextmanager
def _closed_together() -> Iterator[ExitStack]:
    """Close what was opened, which is collective, unless this rank alone is in trouble."""
    with ExitStack() as opened:
        try:
            yield opened
        except (AgreedError, DivergedError):
            raise
        except BaseException:
            opened.pop_all()
            raise

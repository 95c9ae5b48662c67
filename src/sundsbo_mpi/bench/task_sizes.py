"""What of a task tells the bytes of messages, found by building it; needs torch and its data."""

from __future__ import annotations

from sundsbo_mpi.algorithms.messages import Sizes
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.running.dividing import divided
from sundsbo_mpi.running.inspection import construct
from sundsbo_mpi.tasks import load_task


def task_sizes(name: str, sets: tuple[str, ...], agents: int, itemsize: int) -> Sizes:
    """Return the sizes of a task for so many agents.

    Args:
        name: As for ``tasks.load_task``.
        sets: Settings ``task.key=value``.
        agents: Among whom the data are divided.
        itemsize: Bytes of a number.

    Raises:
        UsageError: there is no such task or setting, or it cannot be built for so many agents.
    """
    if odd := next((text for text in sets if not text.strip().startswith("task.")), None):
        raise UsageError(
            f"--set {odd}: expected task.KEY=VALUE or algorithm.KEY=VALUE, since nothing is run."
        )
    config = resolve(Request(flags={"task": {"name": name}}, sets=sets))
    task_class, options = load_task(name), config.task_options
    given = {"agent": 0, "agents": agents, "seed": config.run.seed}
    if getattr(task_class, "shards", None) is not None:
        given["shard"] = next(divided(config, agents, (0,)))
    return Sizes.of(construct(task_class, given | options), itemsize)

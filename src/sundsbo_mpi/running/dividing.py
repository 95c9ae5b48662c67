"""The agents' shards, as ``shards`` of a task divides the data on rank 0."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks import load_task
from sundsbo_mpi.tasks.on_demand import OnDemand
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from sundsbo_mpi.config.resolving import Config


def divided(config: Config, agents: int, numbers: Collection[int]) -> Iterator[Any]:
    """Yield the shards of some agents, holding none while the next is made.

    Those of other agents are made only where they come one after the other.

    Args:
        config: Of the run; its task has ``shards``.
        agents: Number of agents that the data are divided among.
        numbers: Whose shards are wanted, in ascending order.

    Raises:
        UsageError: ``shards`` has not one for each agent, or says what is wrong itself.
    """
    divide: Any = load_task(config.task["name"]).shards  # type: ignore[attr-defined]
    shards = divide(agents=agents, seed=config.run.seed, **config.task_options)
    if not isinstance(shards, Sequence | OnDemand):
        yield from _in_order(iter(shards), agents, numbers)
    elif len(shards) == agents:
        yield from map(shards.__getitem__, numbers)
    else:
        raise _not_one_each(number_of(len(shards), "shard"), agents)


def _in_order(shards: Iterator[Any], agents: int, numbers: Collection[int]) -> Iterator[Any]:
    for agent in range(agents):
        try:
            if agent in numbers:
                yield next(shards)  # no variable, which would keep it
            else:
                next(shards)
        except StopIteration:
            raise _not_one_each(number_of(agent, "shard"), agents) from None
    for _surplus in shards:
        raise _not_one_each(f"more than {number_of(agents, 'shard')}", agents)


def _not_one_each(found: str, agents: int) -> UsageError:
    return UsageError(
        f"shards() of the task has {found} for {number_of(agents, 'agent')}: return or yield one "
        "for each agent, in their order."
    )

"""How all ranks come to the same decision: do together, fail together.  Everything is collective.

A rank that fails alone would leave the others waiting; here a ``UsageError`` anywhere becomes an
``AgreedError`` everywhere.  Other exceptions are bugs and end the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from sundsbo_mpi.errors import AgreedError, UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.comm.tally import Tally

T = TypeVar("T")


def on_root(tally: Tally, work: Callable[[], T]) -> T:
    """Do something on rank 0 and return its result, or raise its complaint, on all ranks."""
    outcome: tuple[T | None, str | None] = (None, None)
    if tally.is_root:
        try:
            outcome = (work(), None)
        except UsageError as error:
            outcome = (None, str(error))
    result, complaint = tally.tell(outcome)
    if complaint is not None:
        raise AgreedError(complaint)
    return result  # type: ignore[no-any-return]


def deal(tally: Tally, make: Callable[[], Iterable[T]]) -> T:
    """Hand the i-th of what rank 0 makes to agent i, one by one, or raise its complaint on all.

    Args:
        tally: All agents.
        make: Called on rank 0, for one object for each agent, the next when the last one is sent;
            asked once more after the last, so that it may complain at its end.

    Raises:
        AgreedError: Making some object, or the end of them, raised a ``UsageError``.
    """
    complaint = None

    def hands() -> Iterator[T | None]:
        nonlocal complaint
        try:
            yield from make()
        except UsageError as error:
            complaint = str(error)
            yield from repeat(None)  # to those who wait for an object

    made = hands()
    own = tally.scatter(made if tally.is_root else None)
    if tally.is_root:
        next(made, None)
    meet(tally, complaint)
    return own  # type: ignore[no-any-return]


def meet(tally: Tally, complaint: str | None = None) -> None:
    """Raise the first rank's complaint, if any, on all ranks; what a run begins with."""
    for found in tally.everyone(complaint):
        if found is not None:
            raise AgreedError(found)


def jointly(tally: Tally, work: Callable[[], T]) -> T:
    """Do something on every rank; the first rank's complaint, if any, is raised on all."""
    result: T | None = None
    complaint = None
    try:
        result = work()
    except UsageError as error:
        complaint = str(error)
    meet(tally, complaint)
    return result  # type: ignore[return-value]


def agree(tally: Tally, facts: Mapping[str, Any], remedy: str) -> None:
    """Raise, on all ranks, the first fact in which some rank differs from rank 0.

    Args:
        tally: All agents.
        facts: Values by name; every rank gives the same names.
        remedy: What to do about a difference.

    Raises:
        AgreedError: some fact differs.
    """
    everyone = tally.everyone(dict(facts))
    for rank, theirs in enumerate(everyone):
        for name, value in theirs.items():
            if value != everyone[0][name]:
                raise AgreedError(
                    f"{name} is {value} on rank {rank} but {everyone[0][name]} on rank 0: {remedy}."
                )

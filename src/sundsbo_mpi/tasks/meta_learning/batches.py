"""Which tasks, and which of the agent's images of their classes, an iteration works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sundsbo_mpi.options import require_integer
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.sampling import Epochs

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

    from sundsbo_mpi.tasks.meta_learning.shards import Tasks

    Integers = npt.NDArray[np.int64]

MOST_AT_ONCE = 1_000
"""Tasks of an iteration; the source has 16."""


class Places(NamedTuple):
    """Numbers of tasks in the pool, (tasks,), and places of images, (images of a task, tasks).

    The images of a task are ordered by class, in the order of its labels.
    """

    tasks: Integers
    support: Integers
    query: Integers


class Batch(NamedTuple):
    """Tasks of the pool and the agent's images for them, standardised, of the run's dtype."""

    tasks: Tensor
    """Their numbers, (tasks,)."""
    support: Tensor
    """Shape (ways * shots, tasks, channels, height, width), ordered by class."""
    query: Tensor
    """Shape (ways * queries, tasks, channels, height, width), ordered by class."""


class MetaBatches:
    """A pool of tasks, the same on all agents, and an agent's images for them.

    A task is an ordered choice of training classes.  The tasks of iteration k are the next ones of
    shuffled epochs of the pool, on every agent the same.  Of each class an agent keeps a part
    shots/(shots + queries) of its images for support and the others for queries, for the whole run,
    and every iteration draws from them without replacement.

    Args:
        counts: The agent's number of images of each training class, (classes,).
        pool: The tasks, R of them, of which the agent has a part.
        meta_batch: Number of tasks of an iteration.
        seed: The seed of the run.
        agent: The agent's rank.

    Raises:
        UsageError: ``meta_batch`` is not an integer in 1, ..., ``MOST_AT_ONCE``.
    """

    def __init__(
        self, counts: Integers, pool: Tasks, meta_batch: int, *, seed: int, agent: int
    ) -> None:
        require_integer("task.meta_batch", meta_batch, 1, MOST_AT_ONCE)
        tasks = [generator(seed, Stream.META_TASKS, task) for task in range(pool.number)]
        self.classes = np.stack([rng.permutation(len(counts))[: pool.ways] for rng in tasks])
        """Training classes of each task, (R, ways)."""
        self.support_counts = counts * pool.shots // pool.images
        """Images kept for support of each class, (classes,)."""
        self.query_counts = counts - self.support_counts
        self._firsts = np.cumsum(counts) - counts
        self._pool, self._seed, self._agent = pool, seed, agent
        # Agent 0's on every agent: all work on the same tasks.
        self._order = Epochs(pool.number, meta_batch, seed=seed, agent=0, stream=Stream.META_ORDER)

    def places(self, k: int, draw: int = 0) -> Places:
        """Return the tasks and images of iteration k; a pure function."""
        tasks = self._order.indices(k, draw)
        classes = self.classes[tasks]
        firsts, kept = self._firsts[classes], self.support_counts[classes]
        rng = generator(self._seed, Stream.META_IMAGES, self._agent, draw, k)
        support = _choose(rng, firsts, kept, self._pool.shots)
        query = _choose(rng, firsts + kept, self.query_counts[classes], self._pool.queries)
        return Places(tasks, support, query)


def _choose(rng: np.random.Generator, firsts: Integers, counts: Integers, number: int) -> Integers:
    """Draw ``number`` distinct places of first, ..., first + count - 1 for each task and class.

    Args:
        rng: Source of the draws.
        firsts: Shape (tasks, ways).
        counts: Shape (tasks, ways), each at least ``number``.
        number: How many are drawn.

    Returns:
        Shape (ways * number, tasks).
    """
    keys = rng.random((*counts.shape, counts.max()))
    keys[np.arange(counts.max()) >= counts[..., None]] = 1.0  # above every key that was drawn
    chosen = firsts[..., None] + np.argsort(keys, axis=-1)[..., :number]
    return chosen.reshape(len(counts), -1).T

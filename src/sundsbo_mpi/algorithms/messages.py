"""Which messages a method sends in an iteration, asked of the method itself, without torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, cast

from sundsbo_mpi.algorithms.single_level import trained_by
from sundsbo_mpi.composition.compression import Compressed
from sundsbo_mpi.composition.rounding import WIRE_BYTES, Rounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.tasks.base import Task


class Sizes(NamedTuple):
    """What of a task tells the bytes of messages: lengths of x and y, and bytes of a number."""

    x: int
    y: int
    itemsize: int = 4
    trained: tuple[str, ...] = ("y",)
    """The variables that a single-level method moves; none where it cannot train."""

    @classmethod
    def of(cls, task: Task, itemsize: int) -> Sizes:
        """Return those of a task, of which each number has so many bytes."""
        return cls(task.sizes["x"], task.sizes["y"], itemsize, trained_by(task))


class Blank:
    """Stands for a vector of which only the length and the bytes of an entry are known."""

    def __init__(self, length: int, itemsize: int) -> None:
        self._length, self._itemsize = length, itemsize

    def __len__(self) -> int:
        return self._length

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the vector."""
        return (self._length,)

    def element_size(self) -> int:
        """Return the bytes of an entry."""
        return self._itemsize

    def new_zeros(self, shape: int | tuple[int, ...]) -> Blank:
        """Return a vector of as many entries, of the same type."""
        length = shape if isinstance(shape, int) else math.prod(shape)
        return Blank(length, self._itemsize)


class BlankTask:
    """A task of which only the sizes are known: enough for a method to say what it keeps."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self.single_level_variables = sizes.trained

    def start(self) -> tuple[Blank, Blank]:
        """Return x^0 and y^0."""
        x, y, itemsize, _ = self._sizes
        return Blank(x, itemsize), Blank(y, itemsize)

    def single_level(self) -> None:
        """Stand for a loss that is never asked for."""


def message_bytes(algorithm: Algorithm, sizes: Sizes) -> tuple[int, ...]:
    """Return the bytes that go to every neighbour in each round of an iteration.

    Args:
        algorithm: A method as the table of methods builds it, and ``sending`` makes of it.
        sizes: Of the problem.

    Raises:
        UsageError: the problem is too large for the method.
    """
    size = _size(algorithm, sizes.itemsize)
    # Replicas, which are as long as what is sent, have no numbers here.
    whole = algorithm.method if isinstance(algorithm, Compressed) else algorithm
    w, state = whole.start(cast("Task", BlankTask(sizes)))
    return tuple(sum(map(size, lengths)) for lengths in whole.lengths(w, state))


def _size(algorithm: Algorithm, itemsize: int) -> Callable[[int], int]:
    """Return what makes bytes of the length of a vector."""
    match algorithm:
        case Compressed():
            return algorithm.compressor.size
        case Rounded():
            return lambda length: WIRE_BYTES * length
    return lambda length: itemsize * length

"""Which messages a method sends in an iteration, asked of the method itself, without torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sundsbo_mpi.algorithms.single_level import SingleLevel
from sundsbo_mpi.composition.composed import Composed
from sundsbo_mpi.composition.compression import Compressed
from sundsbo_mpi.composition.loops import Loop
from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.composition.rounding import WIRE_BYTES, Rounded
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.wrapped import Wrapped
from sundsbo_mpi.config.tables import DTYPES
from sundsbo_mpi.errors import unknown

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task


class Sizes(NamedTuple):
    """Lengths of x and y, and the bytes of one of their numbers."""

    x: int
    y: int
    itemsize: int = 4


def itemsize(dtype: str) -> int:
    """Return the bytes of one of a run's numbers.

    Raises:
        UsageError: runs have no such dtype.
    """
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    return np.dtype(dtype).itemsize


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

    def start(self) -> tuple[Blank, Blank]:
        """Return x^0 and y^0."""
        x, y, itemsize = self._sizes
        return Blank(x, itemsize), Blank(y, itemsize)


def message_bytes(algorithm: Any, sizes: Sizes) -> tuple[int, ...]:
    """Return the bytes that go to every neighbour in each round of an iteration.

    Args:
        algorithm: A method as the table of methods builds it, and ``sending`` makes of it.
        sizes: Of the problem.

    Raises:
        UsageError: the problem is too large for the method.
    """
    size = _size(algorithm, sizes.itemsize)
    return tuple(sum(map(size, lengths)) for lengths in _lengths(algorithm, sizes))


def _size(algorithm: Any, itemsize: int) -> Callable[[int], int]:
    """Return what makes bytes of the length of a vector."""
    match algorithm:
        case Compressed():
            return algorithm.compressor.size
        case Rounded():
            return lambda length: WIRE_BYTES * length
    return lambda length: itemsize * length


@singledispatch
def _lengths(algorithm: Any, _sizes: Sizes) -> Sequence[Sequence[int]]:
    """Return the lengths of the vectors that travel in each round."""
    raise TypeError(f"{type(algorithm).__name__} does not say what it sends")


@_lengths.register
def _(algorithm: Composed, sizes: Sizes) -> Sequence[Sequence[int]]:
    begun = algorithm.begin(cast("Task", BlankTask(sizes)))
    # The techniques start together, and each spreads its vectors evenly over its rounds.
    return [
        [
            len(begun[v])
            for v, technique in algorithm.techniques.items()
            if turn < technique.rounds
            for _ in range(technique.vectors // technique.rounds)
        ]
        for turn in range(algorithm.rounds)
    ]


@_lengths.register
def _(algorithm: Staged, sizes: Sizes) -> Sequence[Sequence[int]]:
    return [lengths for stage in algorithm.stages for lengths in _lengths(stage, sizes)]


@_lengths.register
def _(algorithm: Loop, sizes: Sizes) -> Sequence[Sequence[int]]:
    return [*_lengths(algorithm.stage, sizes)] * algorithm.repeats


@_lengths.register
def _(algorithm: Wrapped, sizes: Sizes) -> Sequence[Sequence[int]]:
    return _lengths(algorithm.method, sizes)


@_lengths.register
def _(algorithm: MultiStep, sizes: Sizes) -> Sequence[Sequence[int]]:
    once = _lengths(algorithm.method, sizes)
    return [lengths for lengths in once for _ in range(algorithm.steps)]


@_lengths.register
def _(algorithm: SingleLevel, sizes: Sizes) -> Sequence[Sequence[int]]:
    return _lengths(algorithm.of(("y",)), sizes)

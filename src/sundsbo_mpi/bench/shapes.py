"""Whether what was read as a bench has the shapes and types that its file's format promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.bench import core_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.bench.record import Bench

    Part = tuple[str, NDArray[Any], str, tuple[int, ...]]

INTEGERS, NUMBERS, TEXT = "iu", "iuf", "OT"
"""NumPy's letters for kinds of types."""


def check_shapes(bench: Bench) -> None:
    """See that all parts fit together.

    Raises:
        ValueError: Some part has another shape or type, or names a rank that there is not.
        KeyError: Some part is missing.
    """
    for name, values, kinds, shape in _parts(bench):
        if values.shape != shape or values.dtype.kind not in kinds:
            raise ValueError(f"{name} has the shape {values.shape} and type {values.dtype}")
    ranks = len(bench.ranks["node"])
    if not ranks or not len(bench.sizes):
        raise ValueError("it has no ranks or no sizes")
    for values in (bench.edges, bench.pairs["first"], bench.pairs["second"]):
        if values.size and not 0 <= values.min() <= values.max() < ranks:
            raise ValueError(f"a link leads to a rank that is not among the {ranks}")
    if odd := [text for text in bench.ranks["binding"] if not core_ranges.PATTERN.fullmatch(text)]:
        raise ValueError(f"a rank is bound to the cores {odd[0]!r}")


def _parts(bench: Bench) -> Iterator[Part]:
    """Name all arrays, with the kinds of types and the shape that each should have."""
    ranks, sizes = np.size(bench.ranks["node"]), np.size(bench.sizes)
    pairs, methods = np.size(bench.pairs["first"]), len(bench.methods)
    yield "sizes", bench.sizes, INTEGERS, (sizes,)
    yield "topology/edges", bench.edges, INTEGERS, (len(np.atleast_1d(bench.edges)), 2)
    yield "ranks/node", bench.ranks["node"], INTEGERS, (ranks,)
    for name in ("host", "device", "binding"):
        yield f"ranks/{name}", bench.ranks[name], TEXT, (ranks,)
    if "node_cores" in bench.ranks:
        yield "ranks/node_cores", bench.ranks["node_cores"], INTEGERS, (ranks,)
    for name in ("first", "second"):
        yield f"pairs/{name}", bench.pairs[name], INTEGERS, (pairs,)
    for name in ("latency_s", "bandwidth"):
        yield f"pairs/{name}", bench.pairs[name], NUMBERS, (pairs,)
    for key, series in bench.series.items():
        shapes = ((sizes, ranks), (sizes, ranks), (sizes,))
        for name, values, shape in zip(series._fields, series, shapes, strict=True):
            yield f"series/{'/'.join(key)}/{name}", np.asarray(values), NUMBERS, shape
    for way, check in bench.checks.items():
        for name, values in check._asdict().items():
            yield f"checks/{'/'.join(way)}/{name}", np.asarray(values), NUMBERS, (methods,)

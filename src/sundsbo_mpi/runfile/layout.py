"""Lays out a run file, so that all that is written to it later overwrites bytes in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from sundsbo_mpi.runfile.contents import CHECK, check_sums
from sundsbo_mpi.runfile.schema import FACTS, FORMAT, LABEL_COUNTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sundsbo_mpi.runfile.contents import Contents
    from sundsbo_mpi.runfile.events import Event
    from sundsbo_mpi.runfile.schema import Array

    Filling = Iterator[tuple[h5py.Dataset, Array]]

CHANGING = {"status": 16, "ended": 32}
"""Attributes that change later: only those of a fixed length are overwritten in place."""
DENSE_UP_TO = 2000


def store(file: h5py.File, contents: Contents, source: h5py.File | None = None) -> None:
    """Fill an empty file with contents, and with the final iterates of the ``source``, if any.

    Every attribute, group and data set that the run will need is created here at its full size.
    Nothing is created or resized afterwards, so that a run killed between two of its writes leaves
    a file that opens.

    What describes the data sets stands before all their numbers: of a file that has lost its end,
    those before the cut can be read.
    """
    _write_attributes(file, contents.attributes)
    _write_events(file, contents.events)
    _write_facts(file.create_group("agents"), contents)
    numbers = [
        *_metrics(file.create_group("metrics"), contents),
        *_topology(file.create_group("topology"), contents),
    ]
    if contents.final:
        final = file.create_group("final", track_order=True)
        for name, (shape, dtype) in contents.final.items():
            numbers.append((_reserve(final, name, shape, dtype), np.empty((0, *shape[1:]))))
    file.flush()  # HDF5 leaves the place of some descriptions open until then
    for stored, first in numbers:
        _place(stored, first)
    if source is not None:
        for name, (shape, _) in contents.final.items():
            for agent in range(shape[0]):
                file["final"][name][agent] = source["final"][name][agent]


def _write_attributes(file: h5py.File, attributes: Mapping[str, str | int | float]) -> None:
    for name, value in attributes.items():
        if name not in CHANGING:
            # Text has variable length: fixed-length attributes cannot exceed 64 kB.
            file.attrs[name] = value
    file.attrs["format"] = FORMAT
    for name, width in CHANGING.items():
        text = np.bytes_(str(attributes[name]))
        file.attrs.create(name, text, dtype=h5py.string_dtype("ascii", width))


def _write_events(file: h5py.File, events: tuple[Event, ...]) -> None:
    texts = [event.as_text() for event in events]
    file.create_dataset("events", data=texts, dtype=h5py.string_dtype(), shape=(len(texts),))


def _write_facts(agents: h5py.Group, contents: Contents) -> None:
    for name, kind in FACTS.items():
        text = kind is str
        facts = contents.agents_info[name]
        agents.create_dataset(
            name,
            data=[str(fact) for fact in facts] if text else np.asarray(facts, dtype=np.int64),
            dtype=h5py.string_dtype() if text else np.int64,
            shape=(contents.agents,),
        )
    for name in LABEL_COUNTS:
        if name in contents.agents_info:
            agents.create_dataset(name, data=np.asarray(contents.agents_info[name], np.int64))


def _metrics(metrics: h5py.Group, contents: Contents) -> Filling:
    for name in ("task", "consensus", "invariant", "agents"):
        metrics.create_group(name, track_order=True)
    metrics.create_dataset("rows", data=contents.rows, dtype=np.int64)
    for path, column in {**contents.series, CHECK: check_sums(contents.series)}.items():
        shape = (contents.planned, *column.shape[1:])
        yield _reserve(metrics, path, shape, column.dtype), column


def _topology(topology: h5py.Group, contents: Contents) -> Filling:
    edges, weights = contents.edges.astype(np.int64), contents.weights
    yield _reserve(topology, "edges", (len(edges), 2), edges.dtype), edges
    if contents.agents <= DENSE_UP_TO:
        yield _reserve(topology, "weights", weights.shape, weights.dtype), weights.toarray()
        return
    group = topology.create_group("weights")
    group.attrs["shape"] = weights.shape
    for name in ("data", "indices", "indptr"):
        part = getattr(weights, name)
        yield _reserve(group, name, part.shape, part.dtype), part


def _reserve(
    group: h5py.Group, path: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> h5py.Dataset:
    plain = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plain.set_layout(h5py.h5d.CONTIGUOUS)
    # At the first write, which is not left to the running job: it would move what describes it.
    plain.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
    empty = -1 if dtype.kind == "i" else np.nan
    return group.create_dataset(path, shape=shape, dtype=dtype, fillvalue=empty, dcpl=plain)


def _place(stored: h5py.Dataset, first: Array) -> None:
    """Give a data set its bytes in the file, filled as a whole, and write its first rows."""
    if stored.size:
        stored[:1] = stored.fillvalue
    if first.size:
        stored[: len(first)] = first

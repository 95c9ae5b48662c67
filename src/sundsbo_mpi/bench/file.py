"""The file of a bench, ``sundsbo-mpi-bench/1``.

With n ranks, E directed edges, P pairs of neighbours, S message sizes and M methods:

=============================================  =======  ======================================
/ (attributes)                                          format; created; topology, topology_sha256;
                                                        repeats; payload_x, payload_y; mpi_library;
                                                        transports, JSON: what each travelled over;
                                                        launcher; environment, JSON: the variables
                                                        that begin as ``surroundings.TUNING``;
                                                        version_...
/sizes                                         (S,)     bytes of a message
/ranks/<host|device|node>                      (n,)     where every rank ran; equal numbers of
                                                        node share memory
/ranks/binding                                 (n,)     the logical processors (hardware threads)
                                                        that a rank could run on, such as 0-3,8;
                                                        ``cores`` in earlier files
/ranks/node_cores                              (n,)     how many of them the rank's node has;
                                                        earlier files lack it
/topology/edges                                (E, 2)   sender, receiver
/pairs/<first|second|latency_s|bandwidth>      (P,)     of each pair, both directions at once:
                                                        seconds of the shortest message, bytes per
                                                        second and direction of the longest; no
                                                        other pair of its agents was timed then,
                                                        nor, where it is between nodes, another such
                                                        pair of its nodes (earlier files: perhaps)
/series/<what>/<transport>/<buffers>/<links>/           seconds; what: round (pack, exchange, mix),
                                                        exchange, allreduce, memcpy, mix
    median                                     (S, n)   of the repeats, on every rank
    p95                                        (S, n)   95 % of the repeats took at most this
    slowest                                    (S,)     median of the slowest rank's seconds
/model/<transport>/<buffers>/<class>                    attributes alpha, beta, error
/methods/<name|rounds|bytes>                   (M,)     what the checked methods send per iteration;
                                                        who sends the same is one, names with ", "
/checks/<transport>/<buffers>/<predicted|measured>
                                               (M,)     seconds of their rounds
=============================================  =======  ======================================
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from sundsbo_mpi.bench.model import Fit
from sundsbo_mpi.bench.record import Bench, Check, Key, Sent, Series
from sundsbo_mpi.bench.shapes import check_shapes
from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.naming import check_writable, publish, temporary
from sundsbo_mpi.runfile.opening import DAMAGED, format_of
from sundsbo_mpi.runfile.schema import BENCH_FORMAT, FORMAT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

SEPARATOR = ", "
"""Between the names of methods that send the same."""


def write_bench(path: Path, bench: Bench, overwrite: bool = False) -> None:
    """Write the file, which appears under its name when it is complete.

    Raises:
        UsageError: it exists and ``overwrite`` is off, or it cannot be written.
    """
    check_writable(path, overwrite)
    hidden = temporary(path)
    try:
        with h5py.File(hidden, "w-") as file:
            _fill(file, bench)
        with hidden.open("rb") as written:
            os.fsync(written.fileno())
        publish(hidden, path, overwrite)
    except OSError as error:
        raise UsageError(
            f"cannot write '{path}': {reason(error)}; choose another --output."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            hidden.unlink(missing_ok=True)


def _fill(file: h5py.File, bench: Bench) -> None:
    file.attrs.update(bench.attributes)
    file.attrs["format"] = BENCH_FORMAT
    file["sizes"], file["topology/edges"] = bench.sizes, bench.edges
    for group, table in (("ranks", bench.ranks), ("pairs", bench.pairs)):
        for name, values in table.items():
            _write(file, f"{group}/{name}", values)
    for key, series in bench.series.items():
        for name, values in series._asdict().items():
            _write(file, f"series/{'/'.join(key)}/{name}", values)
    for (transport, buffers), links in bench.links.items():
        for kind, fitted in links.items():
            group = file.require_group(f"model/{transport}/{buffers}/{kind}")
            group.attrs.update(fitted._asdict())
    _write(file, "methods/name", [SEPARATOR.join(sent.names) for sent in bench.methods])
    _write(file, "methods/rounds", [sent.rounds for sent in bench.methods])
    _write(file, "methods/bytes", [sent.bytes for sent in bench.methods])
    for (transport, buffers), check in bench.checks.items():
        for name, values in check._asdict().items():
            _write(file, f"checks/{transport}/{buffers}/{name}", values)


def _write(file: h5py.File, path: str, values: Any) -> None:
    array = np.asarray(values)
    text = array.dtype.kind in "UO"
    file.create_dataset(
        path,
        data=array.astype(object) if text else array,
        dtype=h5py.string_dtype() if text else None,
    )


def read_bench(path: str | Path) -> Bench:
    """Read a bench's file.

    Raises:
        UsageError: there is no such file, it is not one of a bench, or it is damaged.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(
            f"there is no bench file '{path}': write one with mpirun -n N sundsbo-mpi bench "
            "--output FILE.h5."
        )
    try:
        with h5py.File(path, "r", locking=False) as file:
            found = format_of(file)
            if found != BENCH_FORMAT:
                named = f"has the format '{found}'" if found else "has no format that can be read"
                what = "is the file of a run" if found == FORMAT else named
                raise UsageError(
                    f"'{path}' {what}, expected '{BENCH_FORMAT}': give a file that this version's "
                    "sundsbo-mpi bench wrote."
                )
            bench = _read(file)
            check_shapes(bench)
            return bench
    except DAMAGED as error:
        raise UsageError(
            f"'{path}' cannot be read as the file of a bench ({reason(error)}): give an "
            "undamaged copy, or run sundsbo-mpi bench again."
        ) from error


def _read(file: h5py.File) -> Bench:
    series: dict[Key, Series] = {}
    for words in _groups(file.get("series", {}), 4):
        group = file["/".join(("series", *words))]
        series[Key(*words)] = Series(*(group[name][()] for name in Series._fields))
    links: dict[tuple[str, str], dict[str, Fit]] = {}
    for transport, buffers, kind in _groups(file.get("model", {}), 3):
        attributes = file["/".join(("model", transport, buffers, kind))].attrs
        fitted = Fit(*(float(attributes[name]) for name in Fit._fields))
        links.setdefault((transport, buffers), {})[kind] = fitted
    checks: dict[tuple[str, str], Check] = {}
    for transport, buffers in _groups(file.get("checks", {}), 2):
        group = file[f"checks/{transport}/{buffers}"]
        checks[transport, buffers] = Check(*(group[name][()] for name in Check._fields))
    attributes = {_legible(name): _plain(value) for name, value in file.attrs.items()}
    return Bench(
        attributes=attributes,
        sizes=file["sizes"][()],
        ranks=_ranks(file["ranks"]),
        edges=file["topology/edges"][()],
        pairs={name: _values(values) for name, values in file["pairs"].items()},
        series=series,
        links=links,
        methods=_methods(file["methods"]),
        checks=checks,
    )


def _methods(group: h5py.Group) -> tuple[Sent, ...]:
    columns = [_values(group[name]) for name in ("name", "rounds", "bytes")]
    return tuple(
        Sent(tuple(str(names).split(SEPARATOR)), int(rounds), int(size))
        for names, rounds, size in zip(*columns, strict=True)
    )


def _ranks(group: h5py.Group) -> dict[str, Array]:
    """Return where the ranks ran; earlier files name their binding ``cores``."""
    return {
        "binding" if name == "cores" else name: _values(values) for name, values in group.items()
    }


def _groups(group: Any, depth: int) -> list[tuple[str, ...]]:
    """Return the names on the way to every group ``depth`` levels down."""
    if depth == 0:
        return [()]
    return [(name, *rest) for name in group for rest in _groups(group[name], depth - 1)]


def _values(dataset: h5py.Dataset) -> Array:
    text = h5py.check_string_dtype(dataset.dtype) is not None
    values: Array = dataset.asstr()[()] if text else dataset[()]
    return values


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return _legible(value) if isinstance(value, str | bytes) else value


def _legible(text: str | bytes) -> str:
    """Return a text; of flipped bytes it may be bytes, surrogates or what steers a terminal."""
    if not isinstance(text, str) or not "".join(text.splitlines()).isprintable():
        raise ValueError("a name or a value of an attribute cannot be printed")
    return text

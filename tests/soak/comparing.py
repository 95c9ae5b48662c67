"""Whether two run files tell the same, bit for bit, but for what the clock says."""

from __future__ import annotations

import h5py
import numpy as np

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import read_run

CLOCK = ("elapsed_s", "wall_s", "seconds_", "crc32")
"""The checksum is of the whole row."""
WORDS = ("bytes_control", "rounds_control")
"""Words about going on: a run that keeps checkpoints waits for some of them more."""
ROUNDING = 1e-6
"""Of sums in another order; relative to the largest, in float32 too."""


def series(run):
    """Return the series of a run file without those of the clock, up to the rows that count."""
    found = {}
    rows = int(run["metrics/rows"][()])

    def take(name, item):
        last = name.rpartition("/")[2]
        if isinstance(item, h5py.Dataset) and item.shape and not last.startswith(CLOCK):
            found[name] = item[:rows]

    run["metrics"].visititems(take)
    return {name: values for name, values in found.items() if not name.endswith(WORDS)}


def newest_row(path):
    """Return the iteration of the last row of a run that goes on, -1 where there is none yet."""
    try:
        with h5py.File(path, "r", locking=False) as run:
            return int(run["metrics/iteration"][int(run["metrics/rows"][()]) - 1])
    except (OSError, KeyError):  # at the moment of a write, or before the first
        return -1


def rows_of(path, reference):
    """Return what is wrong with the rows of an interrupted run, if its file is there."""
    if not path.exists():
        return []
    try:
        if damage := read_run(path).damage:
            return [f"the run file is damaged: {damage}"]
        with h5py.File(path, "r", locking=False) as ours, h5py.File(reference, "r") as whole:
            mine, theirs = series(ours), series(whole)
    except (UsageError, OSError, KeyError) as error:
        return [f"the run file cannot be read: {error}"]
    return [
        f"before the kill {name} is not that of an uninterrupted run"
        for name, values in mine.items()
        if values.tobytes() != theirs[name][: len(values)].tobytes()
    ]


def differences(reference, resumed, *, exact):
    """Return how a resumed run's file differs from that of an uninterrupted one."""
    try:
        with h5py.File(reference, "r") as whole, h5py.File(resumed, "r") as ours:
            found = [
                f"final {v} differs by up to {np.abs(whole[f'final/{v}'][:] - values[:]).max():g}"
                for v, values in ours["final"].items()
                if values[:].tobytes() != whole[f"final/{v}"][:].tobytes()
            ]
            mine, theirs = series(ours), series(whole)
            found += [f"{name} is missing" for name in theirs.keys() ^ mine.keys()]
            if ours.attrs["status"] not in ("finished", b"finished"):
                found.append(f"the status is {ours.attrs['status']}")
    except (OSError, KeyError) as error:
        return [f"the run file of the resumed run cannot be read: {error}"]
    same = _same if exact else _close
    return found + [
        f"rows of {name}: {_told(mine[name], theirs[name])}"
        for name in sorted(mine.keys() & theirs.keys())
        if not same(mine[name], theirs[name])
    ]


def _same(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _close(a, b):
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return a.shape == b.shape and np.allclose(a, b, 0, ROUNDING * scale + 1e-12, equal_nan=True)


def _told(a, b):
    if len(a) != len(b):
        return f"{len(a)} in place of {len(b)}"
    rows = [k for k in range(len(a)) if not np.array_equal(a[k], b[k], equal_nan=True)]
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    most = max((float(np.abs(a[k] - b[k]).max() / scale) for k in rows), default=np.nan)
    return f"{len(rows)} of {len(a)} differ, first row {rows[0] if rows else '?'}, by {most:.1g}"

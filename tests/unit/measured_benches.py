"""A bench with known contents."""

from __future__ import annotations

import json

import numpy as np

from sundsbo_mpi.bench.model import OTHER, SAME, Fit
from sundsbo_mpi.bench.record import NOTHING, Bench, Check, Key, Sent, Series

SIZES = (4, 4000, 4000000)


def series(factor=1.0, sizes=SIZES, ranks=4):
    """Return seconds that are a microsecond and a nanosecond per byte, times the factor."""
    seconds = factor * (1e-6 + 1e-9 * np.array(sizes))
    median = np.tile(seconds[:, np.newaxis], ranks)
    return Series(median, 2 * median, 1.5 * seconds)


def bench(factor=1.0, sizes=SIZES, binding=("0", "1", "0", "1"), **attributes):
    """Return a bench of four ranks on two nodes in a ring."""
    about = {
        "created": "2026-11-28T05:00:00+00:00",
        "topology": "ring",
        "repeats": 20,
        "mpi_library": "Open MPI v5.0.11, package: Open MPI",
        "transports": json.dumps({"auto": "persistent"}),
        "environment": json.dumps({"OMP_NUM_THREADS": "1"}),
        "launcher": "PRRTE",
        "version_torch": "2.1",
    }
    fits = {SAME: Fit(1e-6 * factor, 1e-9, 0.05), OTHER: Fit(2e-5 * factor, 0.0, 0.1)}
    return Bench(
        attributes=about | attributes,
        sizes=np.array(sizes),
        ranks={
            "host": np.array(["a", "a", "b", "b"]),
            "device": np.array(["cpu"] * 4),
            "binding": np.array(binding),
            "node_cores": np.array([2, 2, 2, 2]),
            "node": np.array([0, 0, 2, 2]),
        },
        edges=np.array([[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2], [3, 0], [0, 3]]),
        pairs={
            "first": np.array([0, 1, 2, 0]),
            "second": np.array([1, 2, 3, 3]),
            "latency_s": factor * np.array([1e-6, 3e-5, 3e-6, 5e-5]),
            "bandwidth": np.array([4e9, 1e9, 8e9, 3e9]) / factor,
        },
        series={
            Key("round", "auto", "host", "all"): series(factor, sizes),
            Key("round", "auto", "host", SAME): series(factor / 2, sizes),
            Key("memcpy", NOTHING, "host", NOTHING): series(factor / 4, sizes),
        },
        links={("auto", "host"): fits},
        methods=(Sent(("sun-dsbo-se",), 1, 100), Sent(("sun-dsbo-gt",), 2, 200)),
        checks={("auto", "host"): Check(factor * np.array([0.01, 0.02]), np.array([0.011, 0.024]))},
    )

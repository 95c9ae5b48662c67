"""A bench that was never run: two nodes of two ranks, all numbers made up."""

import numpy as np

from sundsbo_mpi.bench.model import CLASSES, Fit
from sundsbo_mpi.bench.record import Bench, Check, Key, Sent, Series

SIZES = np.array([4, 1024, 65536])
RANKS = 4
NEAR, FAR = Fit(1e-6, 1e-10, 0.25), Fit(5e-6, 8e-10, 0.5)


def series(scale):
    median = scale * np.arange(1.0, 1 + len(SIZES) * RANKS).reshape(len(SIZES), RANKS)
    return Series(median, 2 * median, median.max(axis=1))


def found_bench():
    keys = [
        Key("round", "auto", "host", "all"),
        Key("exchange", "auto", "host", "all"),
        Key("exchange", "mpi-blocking", "host", "same node"),
        Key("memcpy", "none", "host", "none"),
    ]
    return Bench(
        attributes={
            "created": "2026-11-28T05:00:00+00:00",
            "topology": "ring (n=4) [odd]",
            "mpi_library": "Open MPI v5.0.11, package: and so on",
            "repeats": 20,
            "payload_x": 10,
            "payload_y": 20,
        },
        sizes=SIZES,
        ranks={
            "host": np.array(["a", "a", "b", "b"]),
            "node": np.array([0, 0, 2, 2]),
            "device": np.array(["cpu"] * RANKS),
            "binding": np.array(["0-1", "0-1", "0,2", "0,2"]),
            "node_cores": np.array([2, 2, 4, 4]),
        },
        edges=np.array([[0, 1], [1, 0], [1, 2], [2, 1]]),
        pairs={
            "first": np.array([0, 1]),
            "second": np.array([1, 2]),
            "latency_s": np.array([1e-6, 7e-6]),
            "bandwidth": np.array([9e9, 1.2e9]),
        },
        series={key: series(10.0**-n) for n, key in enumerate(keys, 5)},
        links={("auto", "host"): dict(zip(CLASSES, (NEAR, FAR), strict=True))},
        methods=(Sent(("sun-dsbo-se",), 1, 200), Sent(("sun-dsbo-gt",), 2, 400)),
        checks={("auto", "host"): Check(np.array([1e-3, 2e-3]), np.array([2e-3, 2e-3]))},
    )

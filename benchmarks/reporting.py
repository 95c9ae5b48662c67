"""How the benchmarks of speed start jobs, and print what they found: a line of JSON, a table."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

Spread = dict[str, float]
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
"""Of the environment: one thread per rank, and on any machine as many ranks as are asked for."""


def spread(values: Sequence[float]) -> Spread:
    """Return median, smallest and largest of the repetitions."""
    return {
        "median": float(np.median(values)),
        "min": float(np.min(values)),
        "max": float(np.max(values)),
        "repeats": len(values),
    }


def report(name: str, *tables: Mapping[str, Spread]) -> None:
    """Print the figures of one benchmark, with what they were measured on."""
    found = {label: figures for table in tables for label, figures in table.items()}
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}
    print(json.dumps({"benchmark": name, "machine": machine | _processor(), "figures": found}))
    shown = Table("figure", "median", "smallest", "largest", "repetitions", title=name)
    for label, figures in found.items():
        numbers = (f"{figures[key]:.3g}" for key in ("median", "min", "max"))
        shown.add_row(label, *numbers, str(figures["repeats"]))
    Console(width=110).print(shown)


def _processor() -> dict[str, str]:
    return {"processor": platform.processor() or platform.machine(), "system": platform.system()}

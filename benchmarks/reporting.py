"""How the benchmarks of speed start jobs, and print what they found: a line of JSON, a table."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

Spread = dict[str, float]
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
"""Of the environment: one thread per rank, and on any machine as many ranks as are asked for."""
CPUINFO = Path("/proc/cpuinfo")


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
    print(json.dumps({"benchmark": name, "machine": _machine(), "figures": found}))
    shown = Table("figure", "median", "smallest", "largest", "repetitions", title=name)
    for label, figures in found.items():
        numbers = (f"{figures[key]:.3g}" for key in ("median", "min", "max"))
        shown.add_row(label, *numbers, str(figures["repeats"]))
    Console(width=110).print(shown)


def _machine() -> dict[str, object]:
    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []
    named = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in lines if ":" in line)
    return {
        "processor": named.get("model name", platform.machine()),
        "family": named.get("cpu family"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "date": datetime.date.today().isoformat(),
    }

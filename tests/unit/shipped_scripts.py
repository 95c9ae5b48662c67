"""The scripts in launch/, made again: examples to copy, with names that hold anywhere."""

from pathlib import Path

from sundsbo_mpi.batch import AGENTS, SCHEDULERS, Batch, Resources, Run, launcher, script
from sundsbo_mpi.batch.arrays import combinations

SEEDS_AND_METHODS = (
    "run.seed=[0, 1, 2]",
    'algorithm.name=["sun-dsbo-gt", "sun-dsbo-ed", "sun-dsbo-extra"]',
)
SETTINGS = ("--topology", "ring.npz", "--iterations", "5000")
SHIPPED = {
    "slurm.sbatch": ("slurm", launcher("pmix"), ()),
    "slurm-array.sbatch": ("slurm", launcher("pmix"), SEEDS_AND_METHODS),
    "pbs.sh": ("pbs", ["mpirun", "-n", AGENTS], ()),
    "flux.sh": ("flux", ["flux", "run", "-o", "pmi=pmix", "-n", AGENTS], ()),
}


def shipped(name):
    """Return the text of one of them."""
    kind, words, array = SHIPPED[name]
    combined = combinations(array)
    runs = []
    for number, sets in enumerate(combined):
        stem = "sundsbo" if len(combined) == 1 else f"sundsbo-{number}"
        settings = (*SETTINGS, *(word for text in sets for word in ("--set", text)))
        runs.append(Run(10, settings, f"{stem}.h5", f"{stem}.saved", SETTINGS[2:]))
    batch = Batch("sundsbo", runs, words, ["sundsbo-mpi"], Resources(seconds=4 * 3600))
    return script(batch, SCHEDULERS[kind], Path("launch") / name)

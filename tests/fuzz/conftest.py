"""The processes that read bad inputs, and the loop that hands them one after the other."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cases import COUNT, SEED
from jail import Jail

# The small data sets and run files of the unit tests are what is spoilt here.
sys.path.append(str(Path(__file__).parents[1] / "unit"))

MOST_FAULTS = 5


@pytest.fixture(scope="session")
def jail(tmp_path_factory):
    """A process that reads topologies, data sets and run files."""
    packages = ("topology", "datasets", "cli.show", "cli.compare", "compare.tables", "summary")
    modules = (*(f"sundsbo_mpi.{name}" for name in packages), "networkx", "PIL.Image", "rich.table")
    jail = Jail(tmp_path_factory.mktemp("jail"), *modules)
    yield jail
    jail.close()


@pytest.fixture(scope="module")
def settings_jail(tmp_path_factory):
    """A process that reads settings, for which all methods and tasks are imported."""
    jail = Jail(
        tmp_path_factory.mktemp("jail"), "sundsbo_mpi.config.resolving", "sundsbo_mpi.tasks.toy"
    )
    yield jail
    jail.close()


@pytest.fixture
def attack(request):
    """Try many cases, fail with the first few faults, and return how many had which outcome."""

    def attack(one, share=1.0):
        counts, faults = Counter(), []
        for case in range(int(COUNT * share)):
            outcome = one(np.random.default_rng((SEED, case)))
            counts[outcome.outcome] += 1
            if outcome.fault:
                faults.append(f"case {case} of seed {SEED}: {outcome.fault}")
            if len(faults) == MOST_FAULTS:
                break
        assert not faults, "\n".join(faults)
        print(f"{request.node.name}: {dict(counts)}")
        return counts

    return attack

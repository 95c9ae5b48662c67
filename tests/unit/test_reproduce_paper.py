"""What the package says that the paper shows."""

import tomllib
from importlib import resources

import numpy as np
import pytest

from sundsbo_mpi.algorithms import METHODS, Horizon
from sundsbo_mpi.algorithms.safety import is_safe
from sundsbo_mpi.config.settings import presets
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.reproduce.catalogue import cost
from sundsbo_mpi.reproduce.paper import experiment, label, labels
from sundsbo_mpi.reproduce.plan import Wish, jobs
from sundsbo_mpi.reproduce.topologies import build

FIGURES = [
    "dcalpha",
    "dcd",
    "dccr",
    "hrr",
    "dctopo",
    "dcht",
    "dccrt",
    "dcsl",
    "hrht",
    "hpcirsyn",
    "hpcirm",
    "dcnum",
    "hrvtopo",
    "dccre",
    "toyopt",
    "meta",
    "topo",
]
TABLES = [
    "tab:dcalpha",
    "tab:dcd",
    "tab:dccr",
    "tab:hrr1",
    "tab:hrr2",
    "tab:dctopo",
    "tablehrp",
    "tablehrgamma",
    "meta_O",
    "meta_M",
    "tablecompar",
    "tabledcp",
    "tab:stepwise_algo_dashed",
]
ALGORITHMS = ["sun-dsbo-se", "sun-dsbo-gt"]
OURS = ["thm:speedup", "tablehrgamma-steps"]
"""Names that are not labels: the theorems together, and a table without one."""

FILES = {
    entry.name.removesuffix(".toml")
    for entry in (resources.files("sundsbo_mpi") / "reproduce" / "paper").iterdir()
}
EXPERIMENTS = sorted(FILES - {"labels"})


def test_every_label_of_the_paper_is_there():
    assert sorted(labels()) == sorted(FIGURES + TABLES + ALGORITHMS + OURS)


def test_every_experiment_belongs_to_a_label_and_back():
    assert {name for found in labels().values() for name in found.experiments} == set(EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_printed_rows_are_cells_of_the_experiment(name):
    found = experiment(name)
    conditions = [condition.name for condition in found.conditions]
    assert len(set(conditions)) == len(conditions)
    cells = {(method, condition) for method in found.methods for condition in conditions}
    if found.printed:
        assert set(found.printed) == cells
    for row in found.printed.values():
        assert len(row.mean) == len(found.printed_at)
        assert len(row.std) in (0, len(found.printed_at))
        assert all(0 < value < 100 for value in row.mean)
    assert all(k <= found.iterations for k in found.printed_at)
    assert all(k % found.eval_every == 0 for k in (*found.printed_at, found.iterations))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_methods_presets_and_topologies_exist(name):
    found = experiment(name)
    assert set(found.methods) <= set(METHODS)
    assert not found.preset or found.preset in presets()
    for condition in found.conditions:
        topology = condition.topology or found.topology
        assert topology is not None
        agents = condition.agents or found.agents
        assert build(agents, topology).agents == agents


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_method_may_mix_with_its_network(name, tmp_path):
    for job in jobs(experiment(name), Wish(tmp_path, seeds=1)):
        options = {k: v for k, v in job.wanted["algorithm"].items() if k != "name"}
        entry = METHODS[job.method]
        algorithm = entry.build(entry.options(**options), Horizon(job.agents, 1))
        weights = build(job.agents, job.topology)
        weights = weights.lazy() if options["lazy"] else weights
        assert is_safe(algorithm, weights.lambda_min), (job.method, job.condition)


def test_no_row_stands_twice():
    """A second row of the same cell would silently replace the first."""
    for name in EXPERIMENTS:
        entry = resources.files("sundsbo_mpi") / "reproduce" / "paper" / f"{name}.toml"
        rows = tomllib.loads(entry.read_text(encoding="utf-8")).get("paper", {}).get("rows", [])
        assert len(rows) == len(experiment(name).printed)


# Read in the paper by eye: experiment, method, condition, place, mean, deviation.
DIGITS = [
    ("dcd", "sun-dsbo-gt", "H=0.1", 0, 73.32, 1.65),
    ("dcd", "sparkle-extra", "H=0.1", 4, 78.03, 0.59),
    ("dcd", "d-soba", "H=0.1", 1, 71.68, 3.11),
    ("dcalpha", "sparkle-gt", "alpha=0.001", 4, 77.30, 0.90),
    ("dcalpha", "sun-dsbo-gt", "alpha=0.1", 0, 69.46, 3.36),
    ("hrr2", "sun-dsbo-se", "H=0.1", 4, 42.97, 4.37),
    ("hrr2", "d-soba", "H=0.5", 0, 32.64, 0.74),
    ("dctopo", "sun-dsbo-gt", "rho=0.970", 4, 82.33, 0.59),
    ("tablehrp", "sun-dsbo-gt", "p=0.0001", 4, 96.87, 0.13),
    ("tablehrgamma", "sun-dsbo-se", "gamma=0.5", 3, 94.43, 1.89),
]


@pytest.mark.parametrize(("name", "method", "condition", "place", "mean", "std"), DIGITS)
def test_digits(name, method, condition, place, mean, std):
    row = experiment(name).printed[method, condition]
    assert (row.mean[place], row.std[place]) == (mean, std)


def test_meta_learning_has_no_deviations():
    assert experiment("meta_O").printed["sparkle-gt", "all"].mean[-1] == 98.88
    assert experiment("meta_M").printed["sun-dsbo-gt", "all"].mean[0] == 55.88
    assert experiment("meta_M").printed["d-soba", "all"].std == ()


def test_only_the_copied_row_is_no_target():
    marked = [
        (name, key, row.mean)
        for name in EXPERIMENTS
        for key, row in experiment(name).printed.items()
        if row.no_target
    ]
    copied = experiment("dcd").printed["sldbo", "H=1"].mean
    assert marked == [("dctopo", ("sun-dsbo-se", "rho=0.970"), copied)]


def test_the_networks_have_the_printed_rho():
    for condition in experiment("dctopo").conditions:
        W = build(10, condition.topology).matrix.toarray()
        np.testing.assert_allclose(W, W.T)
        np.testing.assert_allclose(W.sum(axis=0), 1)
        rho = np.sort(np.abs(np.linalg.eigvalsh(W)))[-2]
        assert f"rho={rho:.3f}" == condition.name or abs(rho - float(condition.name[4:])) < 1e-3


def test_costs():
    """Seven methods, three conditions, ten seeds, 500 iterations of 10 agents."""
    assert cost(label("tab:dcd")) == ("210", f"{210 * 500 * 10:,}")
    assert cost(label("dcnum")) == ("60", f"{2 * 10 * 500 * (10 + 15 + 20):,}")
    assert cost(label("tablecompar")) == ("–", "–")


def test_an_unknown_label_is_told_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'tab:dcd'"):
        label("tab:dcdd")

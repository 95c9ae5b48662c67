"""What CONTRIBUTING.md tells a contributor to write does what it says, as it stands there."""

import __future__

import importlib.util
import sys
from importlib import import_module
from types import ModuleType

import bench
import fenced
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from lockstep import Lockstep

from sundsbo_mpi.algorithms import METHODS, Method, by_default
from sundsbo_mpi.cli import topology
from sundsbo_mpi.composition.compression import Compressed
from sundsbo_mpi.composition.compressors import COMPRESSORS, Coarseness
from sundsbo_mpi.composition.techniques import TECHNIQUES
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks import TASKS, BuiltIn, load_task
from sundsbo_mpi.topology import BUILDERS, read_weights

TABLES = (TECHNIQUES, METHODS, TASKS, BUILDERS, COMPRESSORS)
IMPORTED = {
    "METHODS": METHODS,
    "Method": Method,
    "Stream": Stream,
    "TASKS": TASKS,
    "BuiltIn": BuiltIn,
    "Tensor": torch.Tensor,
    "generator": generator,
    "torch": torch,
}
"""What the examples use of other modules, besides the names of the module that they are for."""
PENALTY = {"mu0": 1.0, "gamma": 0.5}


@pytest.fixture(autouse=True)
def tables_as_they_were():
    before = [dict(table) for table in TABLES]
    yield
    for table, kept in zip(TABLES, before, strict=True):
        table.clear()
        table.update(kept)


@pytest.fixture
def follow(monkeypatch):
    """Do what the section says: run its example as a part of the module that it names."""

    def follow(section):
        page = fenced.ROOT / "CONTRIBUTING.md"
        title = f"\n## {section}\n"
        assert title in page.read_text(encoding="utf-8")
        line = page.read_text(encoding="utf-8").partition(title)[0].count("\n")
        block = next(b for b in fenced.blocks(page) if b.line > line)
        name = block.name.removeprefix("src/").removesuffix(".py").replace("/", ".")
        if (fenced.ROOT / block.name).exists():
            names = {**vars(import_module(name)), **IMPORTED}
        else:
            made = ModuleType(name)
            monkeypatch.setitem(sys.modules, name, made)
            names = vars(made)
            names |= IMPORTED
        flags = __future__.annotations.compiler_flag
        exec(compile(block.text, block.name, "exec", flags, dont_inherit=True), names)

    return follow


def build(name, W, step=0.2, **options):
    steps = {f"step_{v}": step for v in ("x", "y", "theta")}
    return bench.build(name, len(W), **steps, **PENALTY, **options)


def settled(algorithm, W, iterations=80):
    """Return how far from the penalised point the agents of a method settle."""
    return away(Lockstep(algorithm, bench.quadratics(agents=len(W)), W).run(iterations))


def away(run):
    point = run.tasks[0].reference(PENALTY["mu0"], PENALTY["gamma"])["penalised"]
    return max(np.abs(run.rows(v) - point[v].numpy()).max() for v in ("x", "y"))


def test_there_is_an_example_for_each_table():
    page = fenced.ROOT / "CONTRIBUTING.md"
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 140
    assert len(fenced.blocks(page)) == len(TABLES)


def test_a_technique(follow):
    """NIDS reaches the solution over weights on which ED, with W itself, diverges."""
    follow("A technique")
    W = bench.ring(4, 0.1)  # its smallest eigenvalue is -0.8
    of_all = dict.fromkeys(("x", "y", "theta"), "nids")
    assert settled(build("sun-dsbo-se", W, **of_all), W) < 1e-9
    assert settled(build("sun-dsbo-ed", W), W) > 1e9


def test_a_method(follow):
    follow("A method")
    built = by_default(METHODS["sun-dsbo-gt-ed"])
    assert (built.rounds, built.vectors, built.lambda_min) == (2, 4, pytest.approx(-1 / 3))
    W = bench.ring(4, 0.5)
    assert settled(build("sun-dsbo-gt-ed", W), W) < 1e-9


def test_a_task(follow):
    """Both levels can be met at once: the shift is minus the mean of the agents' points."""
    follow("A task")
    W = bench.ring(4, 0.5)
    tasks = [load_task("centre")(agent=i, agents=4, seed=1) for i in range(4)]
    run = Lockstep(build("sun-dsbo-gt", W), tasks, W).run(100)
    mean = torch.stack([task.point for task in tasks]).mean(dim=0).numpy()
    np.testing.assert_allclose(run.rows("x"), np.tile(-mean, (4, 1)), atol=1e-3)
    np.testing.assert_allclose(run.rows("y"), 0, atol=1e-3)


def test_a_topology(follow, tmp_path, monkeypatch):
    follow("A topology")
    spec = importlib.util.spec_from_file_location("commands_again", topology.__file__)
    again = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, again)
    spec.loader.exec_module(again)
    path = str(tmp_path / "wheel.npz")
    words = ["wheel", "--agents", "7", "--edge-weight", "0.1", "-o", path]
    result = CliRunner().invoke(again.command, words)
    assert result.exit_code == 0, result.output
    W = read_weights(path).weights.matrix.toarray()
    np.testing.assert_allclose(W.sum(axis=0), 1)
    links = [set(np.flatnonzero(row)) - {i} for i, row in enumerate(W)]
    assert links[:3] == [{1, 2, 3, 4, 5, 6}, {0, 2, 6}, {0, 1, 3}]


def test_a_compressor(follow):
    """One bit a number, an error below what is sent, and with GT the exact solution."""
    follow("A compressor")
    offer = COMPRESSORS["sign"]
    sign = offer.build(Coarseness())
    v = torch.linspace(-1, 2, 801)
    message = sign.encode(v, ())
    assert message.shape == (sign.size(801),) == (2 + 101,)
    assert float((v - sign.decode(message, 801, ())).norm()) < float(v.norm())
    W = bench.ring(4, 0.5)
    compressed = Compressed(build("sun-dsbo-gt", W, step=0.1), sign, offer.gamma_c, seed=0)
    assert settled(compressed, W, 120) < 1e-5

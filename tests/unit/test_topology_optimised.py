"""Weights for a graph: known optima, and no rule better than the fastest."""

import sys

import cvxpy
import numpy as np
import pytest

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import BUILDERS, RULES, SEQUENCES, reweighted, spectrum

GRAPHS = [("grid", 6), ("star", 5), ("line", 6), ("ring", 7), ("erdos-renyi", 9), ("complete", 4)]


def failing(*_arguments, **_options):
    raise cvxpy.SolverError


def rho(name, n, rule):
    return reweighted(BUILDERS[name](n), rule).rho


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("name", "n"), [*GRAPHS, ("ring", 1), ("ring", 2)])
def test_rules_keep_to_the_graph(name, n, rule):
    """Lawful weights come out, since a ``Weights`` holds no others."""
    given = BUILDERS[name](n)
    weights = reweighted(given, rule)
    assert weights.agents == n
    assert {*map(tuple, weights.edges().tolist())} <= {*map(tuple, given.edges().tolist())}
    assert rule in weights.name


@pytest.mark.parametrize(("name", "n"), GRAPHS)
def test_no_rule_is_better_than_the_fastest(name, n):
    best = rho(name, n, "fastest")
    assert best <= rho(name, n, "metropolis") + 1e-6
    assert best <= rho(name, n, "best-constant") + 1e-6


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_the_fastest_walk_on_a_path_has_weights_one_half(n):
    """Boyd, Diaconis, Sun and Xiao (2006): the optimum is cos(pi/n)."""
    assert rho("line", n, "fastest") == pytest.approx(np.cos(np.pi / n), abs=1e-6)
    W = reweighted(BUILDERS["line"](n), "fastest").matrix.toarray()
    np.testing.assert_allclose(np.diag(W, 1), 0.5, atol=1e-3)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_the_fastest_walk_on_a_star_and_on_the_complete_graph(n):
    """On the star every edge has the largest weight that the centre allows, 1/(n-1)."""
    assert rho("star", n, "fastest") == pytest.approx(1 - 1 / (n - 1), abs=1e-6)
    assert rho("complete", n, "fastest") == pytest.approx(0, abs=1e-6)


def test_the_best_constant_is_the_best_of_all_constants():
    for name, n in GRAPHS:
        given = BUILDERS[name](n).matrix.toarray()
        links = (given > 0) & ~np.eye(n, dtype=bool)
        laplacian = np.diag(links.sum(axis=1)) - links
        top = 1 / links.sum(axis=1).max()
        tried = [
            np.linalg.norm(np.eye(n) - alpha * laplacian - 1 / n, 2)
            for alpha in np.linspace(0, top, 2001)
        ]
        assert rho(name, n, "best-constant") == pytest.approx(min(tried), abs=1e-3)
        assert rho(name, n, "best-constant") <= min(tried) + 1e-12


def test_what_cannot_be_weighted_is_refused(monkeypatch):
    with pytest.raises(UsageError, match="did you mean 'fastest'"):
        reweighted(BUILDERS["ring"](4), "fast")
    with pytest.raises(UsageError, match="no one undirected graph"):
        reweighted(SEQUENCES["one-peer"](4), "metropolis")
    with pytest.raises(UsageError, match="got 65 agents, expected at most 64 for fastest"):
        reweighted(BUILDERS["ring"](65), "fastest")
    with monkeypatch.context() as changed:
        changed.setattr(cvxpy.Problem, "solve", failing)
        with pytest.raises(UsageError, match=r"4 agents \(the solver failed\)"):
            reweighted(BUILDERS["ring"](4), "fastest")
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(UsageError, match=r"pip install 'sundsbo-mpi\[optimise\]'"):
        reweighted(BUILDERS["ring"](4), "fastest")


@pytest.mark.parametrize("name", ["ring", "star", "torus", "complete"])
def test_best_constants_of_many_agents_are_those_of_dense_matrices(name, monkeypatch):
    mixing = BUILDERS[name](144)
    dense = reweighted(mixing, "best-constant").matrix.toarray()
    monkeypatch.setattr(spectrum, "DENSE_UP_TO", 100)
    np.testing.assert_allclose(
        reweighted(mixing, "best-constant").matrix.toarray(), dense, atol=1e-8
    )

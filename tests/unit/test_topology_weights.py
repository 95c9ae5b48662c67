"""A Weights record is lawful or does not exist; its numbers are those of dense linear algebra."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sparse_only import no_dense_matrix

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import BUILDERS, Weights, spectrum


def ring(n, a):
    W = np.zeros((n, n))
    for i in range(n):
        W[i, i] += a
        W[i, (i + 1) % n] += (1 - a) / 2
        W[i, (i - 1) % n] += (1 - a) / 2
    return W


@st.composite
def symmetric_walks(draw):
    """A random connected W: a ring, mixed with random transpositions of agents."""
    n = draw(st.integers(3, 9))
    W = 0.4 * ring(n, 0.3) + 0.2 * np.eye(n)
    for _ in range(4):
        i, j = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        swap = np.eye(n)
        swap[[i, j]] = swap[[j, i]]
        W += 0.1 * swap
    return W


@given(symmetric_walks())
def test_numbers_are_those_of_the_dense_matrix(W):
    weights = Weights(W, "W")
    n = len(W)
    eigenvalues = np.sort(np.linalg.eigvals(W).real)
    assert weights.agents == n
    assert weights.rho == pytest.approx(np.linalg.norm(W - 1 / n, 2), abs=1e-12)
    assert weights.spectral_gap == pytest.approx(1 - weights.rho)
    assert weights.lambda_min == pytest.approx(eigenvalues[0], abs=1e-12)
    for i in range(n):
        others = [j for j in range(n) if j != i and W[i, j] > 0]
        own, shares, receivers = weights.links(i)
        assert own == W[i, i]
        assert list(shares) == others == list(receivers)
        assert all(shares[j] == W[i, j] for j in others)
    edges = weights.edges()
    assert edges.dtype == np.int64
    assert edges.tolist() == [[i, j] for i in range(n) for j in weights.links(i).sources]
    np.testing.assert_array_equal(weights.matrix.toarray(), W)
    np.testing.assert_allclose(weights.lazy().matrix.toarray(), (np.eye(n) + W) / 2, atol=1e-16)


def test_one_agent_keeps_everything():
    weights = Weights(np.eye(1), "alone")
    assert (weights.agents, weights.rho, weights.lambda_min) == (1, 0.0, 1.0)
    assert weights.edges().shape == (0, 2)
    assert weights.links(0) == (1.0, {}, ())
    assert weights.lazy().matrix.toarray() == [[1.0]]


def test_digest_depends_on_the_matrix_and_on_nothing_else():
    W = ring(6, 0.5)
    digest = Weights(W, "one name").sha256
    with_zero = sp.coo_array(W)
    with_zero = sp.coo_array(
        (np.append(with_zero.data, 0.0), (np.append(with_zero.row, 0), np.append(with_zero.col, 3)))
    )
    for form in (
        sp.csc_array(W),
        sp.csr_matrix(W),
        sp.bsr_array(W),
        with_zero,
        np.asfortranarray(W),
    ):
        assert Weights(form, "another name").sha256 == digest
    assert Weights(ring(6, 0.4), "one name").sha256 != digest
    # No stored zero becomes a message.
    assert Weights(with_zero, "zero").links(0).destinations == (1, 5)


def changed(entries, n=6, a=0.5):
    W = ring(n, a)
    for (i, j), value in entries.items():
        W[i, j] = value
    return W


BAD = {
    "not square": (np.full((2, 3), 1 / 3), "2 x 3"),
    "empty": (np.zeros((0, 0)), "0 x 0"),
    "complex": (np.eye(2) * 1j, "complex128"),
    "not finite": (changed({(2, 3): np.nan}), "row 2, column 3 is nan"),
    "infinite": (changed({(4, 3): np.inf}), "row 4, column 3 is inf"),
    "negative": (changed({(1, 2): -0.1, (2, 1): -0.1, (4, 4): -0.3}), "row 4, column 4 is -0.3"),
    "asymmetric": (changed({(3, 4): 0.15, (2, 1): 0.2}), "row 3, column 4 is 0.15"),
    "row": (changed({(2, 2): 0.7, (3, 3): 0.4}), "row 2 sums to 1.2"),
    "one-sided trace": (changed({(0, 3): 4e-7}), "row 0, column 3 is 4e-07"),
    "two parts": (np.kron(np.eye(2), ring(4, 0.5)), "2 parts"),
    "isolated": (np.kron(np.diag([1, 1, 1]), np.eye(1)), "3 parts"),
    "rho one": (ring(6, 0.0), "rho = 1 "),
    "adjacency": (np.ones((3, 3)), "adjacency"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_refused_with_the_worst_place_named(case):
    matrix, place = BAD[case]
    with pytest.raises(UsageError) as refusal:
        Weights(matrix, "bad.npz")
    sentence = str(refusal.value)
    assert place in sentence
    assert "bad.npz" in sentence
    assert "\n" not in sentence


def test_columns_are_summed_too():
    # Within the tolerance of symmetry entry by entry, but a hundred such entries add up.
    n = 100
    W = np.full((n, n), 1 / n)
    W[:, 0] += 9e-7
    W[:, 1:] -= 9e-7 / (n - 1)
    with pytest.raises(UsageError, match=r"column 0 sums to 1\.00009"):
        Weights(W, "tilted")


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-6)])
def test_sums_may_miss_one_by_what_the_dtype_earns_and_are_not_repaired(dtype, tolerance):
    W = np.full((4, 4), 0.25, dtype=dtype)
    W[2, 2] += tolerance * 0.9
    weights = Weights(W, "close")
    assert weights.matrix.dtype == np.float64
    np.testing.assert_array_equal(weights.matrix.toarray(), W.astype(np.float64))
    W[2, 2] += tolerance * 0.9
    with pytest.raises(UsageError, match=r"row 2 sums to 1\.0000"):
        Weights(W, "far")


def test_uniform_single_precision_rows_are_good():
    weights = Weights(np.full((7, 7), 1 / 7, dtype=np.float32), "float32")
    assert weights.rho == pytest.approx(0, abs=1e-6)


LARGE = {
    "ring": {},
    "line": {},
    "grid": {},
    "star": {},
    "circulant": {"offsets": (1, 2), "self_weight": 0.2},
    "erdos-renyi": {},
    "complete": {"edge_weight": 0.004},
}


@pytest.mark.parametrize("name", LARGE)
def test_sparse_and_dense_spectra_agree(name):
    matrix = BUILDERS[name](240, **LARGE[name]).matrix
    np.testing.assert_allclose(spectrum._sparse(matrix), spectrum._dense(matrix), atol=1e-9)


@pytest.mark.parametrize("n", [60, 240])
def test_a_second_eigenvalue_below_zero_is_found(n):
    W = (np.ones((n, n)) - np.eye(n)) / (n - 1)
    both = spectrum._sparse(sp.csr_array(W))
    np.testing.assert_allclose(both, [-1 / (n - 1)] * 2, atol=1e-9)


def test_sparse_spectrum_of_a_positive_definite_matrix():
    matrix = BUILDERS["ring"](240, self_weight=0.6, lazy=True).matrix
    assert spectrum._sparse(matrix)[1] == pytest.approx(0.6, abs=1e-9)


@pytest.mark.parametrize(("a", "smallest"), [(0.5, 0.0), (0.2, -0.6)])
def test_ten_thousand_agents_on_a_ring(a, smallest):
    n = 10_000
    with no_dense_matrix(n):
        weights = BUILDERS["ring"](n, self_weight=a)
        assert 1 - weights.rho == pytest.approx((1 - a) * (1 - np.cos(2 * np.pi / n)), rel=1e-5)
        assert weights.lambda_min == pytest.approx(smallest, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "text"), [(1, "0.000000"), (10, "0.904508"), (10_000, "0.999999901")]
)
def test_rho_is_told_from_one(n, text):
    assert BUILDERS["ring"](n).rho_text == text


def test_eigenvalues_that_are_not_found_are_said_in_a_sentence(monkeypatch):
    from scipy.sparse import linalg

    def lost(*_, **__):
        raise linalg.ArpackNoConvergence("No convergence (41 iterations)", [], [])

    monkeypatch.setattr(linalg, "eigsh", lost)
    with pytest.raises(UsageError, match=r"of 1300 agents.* not found \(.*No convergence"):
        BUILDERS["ring"](1300)


def links_of_dense(W, i):
    own, sources = W[i, i], {j: W[i, j] for j in range(len(W)) if j != i and W[i, j]}
    return own, sources, tuple(j for j in range(len(W)) if j != i and W[j, i])


@given(symmetric_walks())
def test_a_copy_for_another_process_is_the_same_weights(W):
    weights = Weights(W, "W")
    copy = pickle.loads(pickle.dumps(weights))
    assert (copy.name, copy.sha256, copy.rho) == (weights.name, weights.sha256, weights.rho)
    assert np.array_equal(copy.matrix.toarray(), weights.matrix.toarray())
    assert np.array_equal(copy.edges(), weights.edges())
    kept = weights.matrix.toarray()
    for i in range(copy.agents):
        assert tuple(copy.links(i)) == links_of_dense(kept, i)


def test_a_rank_that_is_handed_weights_needs_no_scipy():
    sent = pickle.dumps(Weights(ring(5, 0.5), "W"))
    code = (
        "import pickle, sys\n"
        "from sundsbo_mpi.comm import world; world.load_mpi()\n"
        "import sundsbo_mpi.running.run\n"
        "weights = pickle.loads(sys.stdin.buffer.read())\n"
        "print(weights.links(0), weights.edges().tolist(), weights.steady, weights.rho)\n"
        "heavy = {'scipy.sparse', 'networkx', 'matplotlib', 'sklearn'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
        "assert weights.matrix.shape == (5, 5)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()

"""Every sequence obeys the laws, is a function of (seed, k), and is judged as a whole."""

import zipfile

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import (
    BUILDERS,
    SEQUENCES,
    Cycle,
    Redrawn,
    Weights,
    read_weights,
    spectrum,
    write_weights,
)

ITERATIONS = range(25)


def ring(n, a=0.5):
    return BUILDERS["ring"](n, self_weight=a).matrix.toarray()


def pair(n, i, j):
    """Agents i and j average, all others rest."""
    W = np.eye(n)
    W[[i, i, j, j], [i, j, i, j]] = 0.5
    return W


def shift(n, by):
    return np.roll(np.eye(n), by, axis=0)


def gossip_pairs():
    return Cycle([pair(4, 0, 1), pair(4, 1, 2), pair(4, 2, 3)], "pairs")


MADE = {
    "one-peer 1": lambda: SEQUENCES["one-peer"](1),
    "one-peer 2": lambda: SEQUENCES["one-peer"](2),
    "one-peer 7": lambda: SEQUENCES["one-peer"](7),
    "one-peer 8 lazy": lambda: SEQUENCES["one-peer"](8, lazy=True),
    "pairs": gossip_pairs,
    "random 3": lambda: SEQUENCES["random"](3, neighbours=2),
    "random 10": lambda: SEQUENCES["random"](10, neighbours=2, neighbours_max=4),
    "random 9 odd": lambda: SEQUENCES["random"](9, neighbours=3, seed=5),
    "random 6 every 4": lambda: SEQUENCES["random"](6, neighbours=2, every=4),
    "random 6 lazy": lambda: SEQUENCES["random"](6, neighbours=5, lazy=True),
}
every_sequence = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


@every_sequence
def test_every_matrix_is_lawful_and_a_function_of_k(make):
    mixing, again = make(), make()
    backwards = {k: again.at(k).toarray() for k in reversed(ITERATIONS)}
    for k in ITERATIONS:
        W = mixing.at(k).toarray()
        assert W.shape == (mixing.agents,) * 2
        assert (W >= 0).all()
        np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-14)
        np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-14)
        np.testing.assert_array_equal(W, backwards[k])
        assert not mixing.symmetric or (W == W.T).all()
    turns = [mixing.turn(k) for k in ITERATIONS]
    for k in ITERATIONS[1:]:
        if turns[k] == turns[k - 1]:
            np.testing.assert_array_equal(backwards[k], backwards[k - 1])
    assert mixing.sha256 == again.sha256
    assert mixing.rho < 1


@every_sequence
def test_links_are_the_entries_and_the_edges_cover_them(make):
    mixing = make()
    n, union = mixing.agents, set()
    edges = [tuple(edge) for edge in mixing.edges().tolist()]
    assert edges == sorted(set(edges))
    for k in ITERATIONS:
        W = mixing.at(k).toarray()
        for i in range(n):
            links = mixing.links(i, k)
            others = [j for j in range(n) if j != i]
            assert links.own == W[i, i]
            assert list(links.sources.items()) == [(j, W[i, j]) for j in others if W[i, j] > 0]
            assert links.destinations == tuple(j for j in others if W[j, i] > 0)
            union |= {(i, j) for j in links.destinations}
    assert union <= set(edges)
    if mixing.matrices:
        assert union == set(edges)


@every_sequence
def test_lazy_is_the_mean_with_the_identity(make):
    mixing, lazy = make(), make().lazy()
    for k in ITERATIONS:
        W = mixing.at(k).toarray()
        np.testing.assert_allclose(lazy.at(k).toarray(), (np.eye(len(W)) + W) / 2, atol=1e-15)
    assert lazy.name == f"lazy {mixing.name}"


def test_one_peer_is_one_message_and_exact_over_a_period():
    mixing = SEQUENCES["one-peer"](8)
    assert len(mixing.matrices) == 3
    for k in ITERATIONS:
        W = mixing.at(k).toarray()
        np.testing.assert_array_equal(W, (np.eye(8) + shift(8, 2 ** (k % 3))) / 2)
        assert mixing.links(0, k).destinations == (2 ** (k % 3),)
    assert mixing.rho == pytest.approx(0, abs=1e-12)
    assert not mixing.symmetric
    assert mixing.lambda_min is None
    assert 0 < SEQUENCES["one-peer"](7).rho < 1


def test_rho_is_the_second_eigenvalue_of_the_product_per_iteration():
    for stack in (
        [ring(5, 0.2), ring(5, 0.7)],
        [pair(4, 0, 1), pair(4, 1, 2), pair(4, 2, 3)],
        [0.5 * np.eye(6) + 0.2 * shift(6, 1) + 0.3 * shift(6, 2)],
    ):
        product = np.linalg.multi_dot(stack[::-1]) if len(stack) > 1 else stack[0]
        second = np.sort(abs(np.linalg.eigvals(product)))[-2]
        assert Cycle(stack, "W").period_rho == pytest.approx(second, abs=1e-12)
        assert Cycle(stack, "W").rho == pytest.approx(second ** (1 / len(stack)), abs=1e-9)


def test_a_stack_of_one_symmetric_matrix_is_that_matrix():
    stacked, W = Cycle([ring(5, 0.2)], "W"), Weights(ring(5, 0.2), "W")
    assert stacked.rho == pytest.approx(W.rho)
    assert stacked.lambda_min == pytest.approx(W.lambda_min)
    assert stacked.steady
    assert stacked.description == "W"
    assert stacked.edges().tolist() == W.edges().tolist()


def test_a_stack_of_one_directed_matrix_has_no_smallest_eigenvalue():
    stacked = Cycle([(np.eye(3) + shift(3, 1)) / 2], "W")
    assert stacked.steady
    assert stacked.lambda_min is None
    assert stacked.edges().tolist() == [[0, 1], [1, 2], [2, 0]]


@every_sequence
def test_no_eigenvalue_is_below_the_smallest(make):
    mixing = make()
    if not mixing.symmetric:
        assert mixing.lambda_min is None
        return
    values = [np.linalg.eigvalsh(W.toarray())[0] for W in mixing.sample]
    assert min(values) >= mixing.lambda_min - 1e-12
    if mixing.matrices:
        assert min(values) == pytest.approx(mixing.lambda_min, abs=1e-12)


@pytest.mark.parametrize(
    ("agents", "options", "expected"),
    [
        (10, {"neighbours": 2}, -1 / 3),
        (5, {"neighbours": 2}, (1 - 2 * np.cos(np.pi / 5)) / 3),
        (10, {"neighbours": 2, "neighbours_max": 4}, -3 / 5),
        (10, {"neighbours": 3}, -1 / 2),
        (10, {"neighbours": 2, "lazy": True}, 1 / 3),
        (10, {"neighbours": 3, "lazy": True}, 1 / 4),
        (6, {"neighbours": 5}, 0),
    ],
)
def test_the_bound_on_eigenvalues_of_random_graphs(agents, options, expected):
    mixing = SEQUENCES["random"](agents, **options)
    assert mixing.lambda_min == pytest.approx(expected, abs=1e-12)


def test_the_bound_of_an_even_random_graph_is_attained():
    """Some draw of three neighbours of six agents is bipartite."""
    mixing = SEQUENCES["random"](6, neighbours=3)
    found = min(np.linalg.eigvalsh(W.toarray())[0] for W in mixing.sample)
    assert found == pytest.approx(mixing.lambda_min, abs=1e-12)


@pytest.mark.parametrize("m", [2, 3, 4, 6])
@pytest.mark.parametrize("n", [7, 10])
def test_random_graphs_are_connected_and_leave_no_pair_that_could_be_linked(n, m):
    mixing = Redrawn(n, (m, m), 1, 3, 0, "W")
    drawn = set()
    for k in ITERATIONS:
        linked = mixing.at(k).toarray() > 0
        np.fill_diagonal(linked, False)
        graph = nx.from_numpy_array(linked)
        assert nx.is_connected(graph)
        degrees = linked.sum(axis=1)
        assert degrees.max() == m
        with_room = np.flatnonzero(degrees < m)
        assert all(linked[i, j] for i in with_room for j in with_room if i != j)
        assert m > 2 or (degrees == 2).all()
        drawn.add(linked.tobytes())
    assert len(drawn) == 1 if m == n - 1 else len(drawn) > 20


def test_random_graphs_have_metropolis_weights():
    W = Redrawn(9, (3, 5), 1, 0, 0, "W").at(7).toarray()
    degrees = (W > 0).sum(axis=1) - 1
    for i, j in np.argwhere(np.triu(W, 1)):
        assert W[i, j] == pytest.approx(1 / (1 + max(degrees[i], degrees[j])))


def test_the_number_of_neighbours_is_drawn_from_its_range():
    mixing = Redrawn(10, (2, 4), 1, 0, 0, "W")
    most = [(mixing.at(k).toarray() > 0).sum(axis=1).max() - 1 for k in range(60)]
    assert {2, 3, 4} == set(most)
    assert min(most.count(m) for m in (2, 3, 4)) > 10


def test_a_graph_lasts_and_seeds_differ():
    lasting = Redrawn(8, (2, 3), 5, 1, 0, "W")
    for k in (0, 5, 10):
        for within in range(1, 5):
            assert (lasting.at(k).toarray() == lasting.at(k + within).toarray()).all()
        assert (lasting.at(k).toarray() != lasting.at(k + 5).toarray()).any()
    other = Redrawn(8, (2, 3), 5, 2, 0, "W")
    assert (lasting.at(0).toarray() != other.at(0).toarray()).any()
    assert lasting.sha256 != other.sha256


@pytest.mark.parametrize("every", [1, 3])
def test_rho_of_random_graphs_bounds_the_mean_square_and_is_attained(every):
    mixing = Redrawn(6, (2, 4), every, 0, 0, "W")
    powers = [np.linalg.matrix_power(W.toarray(), every) for W in mixing.sample]
    rng = np.random.default_rng(0)
    best = 0.0
    for _ in range(2000):
        e = rng.standard_normal(6)
        e -= e.mean()
        best = max(best, np.mean([(P @ e) @ (P @ e) for P in powers]) / (e @ e))
    assert 0.95 * mixing.rho ** (2 * every) < best <= mixing.rho ** (2 * every) * (1 + 1e-12)


def test_one_graph_for_ever_has_its_own_rho():
    mixing = Redrawn(4, (3, 3), 1000, 0, 1, "W")
    assert mixing.rho == pytest.approx(BUILDERS["complete"](4, lazy=True).rho, rel=1e-9)


BAD = {
    "row": ([ring(4), ring(4) + np.diag([0, 0.1, 0, 0])], "bad.npz, matrix 1': row 1 sums to 1.1"),
    "column": ([np.array([[1.0, 0], [1, 0]])], "bad.npz': column 0 sums to 2"),
    "negative": ([ring(3), 1.5 * np.eye(3) - ring(3, 0.0) / 2], "row 0, column 1 is -0.25"),
    "two parts": ([pair(4, 0, 1), pair(4, 2, 3)], "2 parts"),
    "permutations": ([shift(3, 1), shift(3, 1)], "rho = 1 over the period of 2"),
    "no matrix": ([], "holds no matrix"),
    "not square": ([np.full((2, 3), 1 / 3)], "2 x 3"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_stacks_are_refused_with_the_worst_place_named(case):
    stack, place = BAD[case]
    with pytest.raises(UsageError) as refusal:
        Cycle(stack, "bad.npz")
    assert place in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agents": 2}, "got 2 agents"),
        ({"neighbours": 1}, "got 1 to 1 neighbours"),
        ({"neighbours": 10}, "expected 2 to 9"),
        ({"neighbours_max": 2, "neighbours": 3}, "got 3 to 2"),
        ({"every": 0}, "every 0, expected 1 to 9223372036854775807; take"),
        ({"every": 2**63}, r"every 9223372036854775808, expected 1 to"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 10**23}, "seed 1000+, expected 0 to"),
        ({"agents": 10**6}, "1000000 agents would have 1e[+]12 weights"),
        ({"agents": 10**400}, r"got 1000+\.\.\. \(401 characters\) agents, expected at least 3"),
        ({"neighbours": 10**5000}, "got an integer of thousands of digits"),
    ],
)
def test_impossible_random_graphs_are_refused(changes, words):
    with pytest.raises(UsageError, match=words):
        SEQUENCES["random"](**{"agents": 10, "neighbours": 2} | changes)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".npz.gz"])
@every_sequence
def test_what_is_written_reads_back(tmp_path, make, suffix):
    mixing, path = make(), tmp_path / f"W{suffix}"
    if mixing.recipe and "npy" in suffix:
        with pytest.raises(UsageError, match=r"expected one of \.npz for weights that change"):
            write_weights(mixing, str(path))
        return
    write_weights(mixing, str(path))
    again = read_weights(str(path)).weights
    assert again.name == path.name
    assert again.steady == mixing.steady
    for k in ITERATIONS:
        np.testing.assert_array_equal(again.at(k).toarray(), mixing.at(k).toarray())
    # What is one symmetric matrix comes back as such.
    assert again.sha256 == mixing.sha256 or isinstance(again, Weights)


def test_a_directed_matrix_is_told_how_to_be_given(tmp_path):
    """Alone it would hide a slip in a symmetric one; as a stack of one it is meant."""
    W = (np.eye(4) + shift(4, 1)) / 2
    path = tmp_path / "W.npy"
    np.save(path, W)
    with pytest.raises(UsageError, match=r"expected a symmetric matrix .* shape \(1, n, n\)\.$"):
        read_weights(str(path))
    np.save(path, W[None])
    mixing = read_weights(str(path)).weights
    assert mixing.steady
    assert not mixing.symmetric
    np.testing.assert_array_equal(mixing.at(0).toarray(), W)


def test_sequences_are_not_written_as_text(tmp_path):
    for mixing in (SEQUENCES["one-peer"](3), SEQUENCES["random"](3, neighbours=2)):
        with pytest.raises(UsageError, match=r"suffix is '\.txt'"):
            write_weights(mixing, str(tmp_path / "W.txt"))


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
def test_stacks_of_other_programs_are_read(tmp_path, save):
    stack = np.stack([(np.eye(4) + shift(4, by)) / 2 for by in (1, 2)])
    path = tmp_path / ("W.npy" if save is np.save else "W.npz")
    save(path, stack)
    mixing = read_weights(str(path)).weights
    np.testing.assert_array_equal([W.toarray() for W in mixing.matrices], stack)
    assert mixing.description == f"{path.name} (2 matrices in turn)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "unheard of"}, "unknown kind 'unheard of'"),
        ({"neighbours": [2, 3, 4]}, "cannot be read as npz"),
        ({"agents": "many"}, "cannot be read as npz"),
        ({"every": 0}, "every 0"),
        ({"every": 1.5}, "its every holds 1.5 where an integer belongs"),
        ({"agents": 5.7}, "its agents holds 5.7 where an integer belongs"),
        ({"agents": 10**15}, "got 1000000000000000 agents"),
        ({"agents": 10**6}, "1000000 agents would have"),
        ({"neighbours": "23"}, "its neighbours are '23' where two integers belong"),
        ({"neighbours": [2, 2.5]}, "its neighbours holds 2.0 where an integer belongs"),
        *(({"halvings": h}, f"got halvings {h}, expected 0 to 16") for h in (-3, 17, 2000, 2**62)),
    ],
)
def test_recipes_that_are_none_are_refused(tmp_path, changes, words):
    recipe = dict(SEQUENCES["random"](5, neighbours=2).recipe) | changes
    np.savez(tmp_path / "W.npz", **recipe)
    with pytest.raises(UsageError, match=words) as refusal:
        read_weights(str(tmp_path / "W.npz"))
    assert "W.npz" in str(refusal.value)
    del recipe["seed"]
    np.savez(tmp_path / "W.npz", **recipe)
    with pytest.raises(UsageError):
        read_weights(str(tmp_path / "W.npz"))


@pytest.mark.parametrize("sound", [{"every": 2**63 - 1}, {"seed": 2**63 - 1}])
def test_the_largest_numbers_are_written_and_read(tmp_path, sound):
    mixing, path = SEQUENCES["random"](5, neighbours=2, **sound), str(tmp_path / "W.npz")
    write_weights(mixing, path)
    again = read_weights(path).weights
    assert again.sha256 == mixing.sha256
    slowest = BUILDERS["ring"](5, self_weight=1 / 3).rho  # what one ring for ever leaves
    assert again.rho == pytest.approx(slowest) if "every" in sound else 0.3 < again.rho < slowest


def test_a_recipe_that_is_no_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "W.npz", "w") as archive:
        archive.writestr("kind", "random")
    with pytest.raises(UsageError, match="its member 'kind' is no array"):
        read_weights(str(tmp_path / "W.npz"))
    with zipfile.ZipFile(tmp_path / "W.npz", "w") as archive:
        archive.writestr("format", "csr")
    with pytest.raises(UsageError, match="cannot be read as npz"):
        read_weights(str(tmp_path / "W.npz"))


def test_a_period_has_an_end():
    Cycle([pair(3, 0, 1), pair(3, 1, 2)] * 2, "W")
    with pytest.raises(UsageError, match="'W' holds 20000 matrices, expected at most 1000"):
        Cycle([pair(3, 0, 1), pair(3, 1, 2)] * 10_000, "W")


def test_the_order_of_a_stack_is_part_of_its_digest():
    stack = [pair(3, 0, 1), pair(3, 1, 2)]
    assert Cycle(stack, "W").sha256 != Cycle(stack[::-1], "W").sha256
    sparse = [sp.coo_array(W) for W in stack]
    assert Cycle(sparse, "other").sha256 == Cycle(stack, "W").sha256


def test_periods_of_many_agents_are_judged_like_those_of_few(monkeypatch):
    for n, lazy in ((48, False), (50, True), (64, False)):
        network = SEQUENCES["one-peer"](n, lazy=lazy)
        dense = spectrum.second_modulus(network.matrices)
        monkeypatch.setattr(spectrum, "DENSE_UP_TO", 10)
        assert spectrum.second_modulus(network.matrices) == pytest.approx(dense, abs=1e-9)
        monkeypatch.undo()


@pytest.mark.parametrize("lasting", [1, 4, 10**15])
def test_draws_that_treat_all_agents_alike_need_no_dense_matrix(lasting):
    draws = SEQUENCES["random"](60, neighbours=3).sample
    powers = [np.linalg.eigvalsh(W.toarray())[:-1] for W in draws]
    largest = max(abs(values).max() for values in powers)
    many = min(lasting, spectrum.MOST_ROUNDS)
    mean = np.mean([np.mean((values / largest) ** (2 * many)) for values in powers])
    expected = largest * mean ** (1 / (2 * many))
    assert spectrum.alike_rho(draws, lasting) == pytest.approx(expected, rel=0.03)

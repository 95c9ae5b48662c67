"""Which methods may start on which networks, and what is said where they do."""

import numpy as np
import pytest

from sundsbo_mpi.config.resolving import Request
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.running import preparation
from sundsbo_mpi.topology import SEQUENCES, write_weights

AGENTS = 6
NOTE = "such as EXTRA and ED, have no convergence theory on networks that change"
NEED_SYMMETRIC = ("sun-dsbo-ed", "sun-dsbo-ed-gt", "sun-dsbo-extra", "sparkle-extra")


@pytest.fixture
def begin(tmp_path):
    """Return what rank 0 prepares for a method on weights, or on a dense stack of them."""

    def begin(name, weights, *sets):
        path = str(tmp_path / "W.npz")
        if isinstance(weights, np.ndarray):
            np.savez(path, stack=weights)
        else:
            write_weights(weights, path)
        flags = {
            "topology": {"file": path},
            "task": {"name": "quadratic"},
            "algorithm": {"name": name},
            "output": {"file": str(tmp_path / "run.h5")},
        }
        return preparation._read(Request(flags=flags, sets=sets), AGENTS)

    return begin


def noted(prepared):
    return [note for note in prepared.notes if NOTE in note]


def test_the_trace_is_looked_for_before_anything_is_built(begin, tmp_path):
    path = tmp_path / "t.json"
    path.write_text("precious")
    W = np.full((1, AGENTS, AGENTS), 1 / AGENTS)
    with pytest.raises(UsageError, match="exists: choose another --trace"):
        begin("sun-dsbo-gt", W, f'output.trace="{path}"')
    begin("sun-dsbo-gt", W, f'output.trace="{path}"', "output.overwrite=true")


@pytest.mark.parametrize("name", NEED_SYMMETRIC)
def test_a_note_says_what_is_not_known_of_a_changing_network(begin, name):
    network = SEQUENCES["random"](AGENTS, neighbours=2, neighbours_max=4)
    prepared = begin(name, network, "algorithm.lazy=true")
    assert len(noted(prepared)) == 1
    assert prepared.weights.lambda_min == pytest.approx(1 / 5)
    assert not noted(begin("sun-dsbo-gt", network))


@pytest.mark.parametrize("name", NEED_SYMMETRIC)
def test_nothing_is_noted_where_the_network_stays(begin, name):
    W = np.full((1, AGENTS, AGENTS), 1 / AGENTS)
    assert not noted(begin(name, W))


@pytest.mark.parametrize("name", NEED_SYMMETRIC)
def test_directed_networks_are_refused(begin, name):
    with pytest.raises(UsageError, match=f"{name} needs symmetric weights, but .*3 matrices in"):
        begin(name, SEQUENCES["one-peer"](AGENTS))


def test_eigenvalues_that_a_draw_can_have_are_refused(begin):
    """A ring of six has -1/3, in whatever order; other graphs of three neighbours reach -1/2."""
    for neighbours, smallest in ((2, "-0.3333"), (3, "-0.5000")):
        network = SEQUENCES["random"](AGENTS, neighbours=neighbours)
        for name in ("sun-dsbo-ed", "sparkle-extra"):
            with pytest.raises(UsageError, match=f"can be {smallest}: .* algorithm.lazy=true"):
                begin(name, network)
        assert noted(begin("sun-dsbo-extra", network))


def test_one_matrix_of_a_stack_with_a_bad_eigenvalue_is_enough(begin):
    good = np.full((AGENTS, AGENTS), 1 / AGENTS)
    swap = np.roll(np.eye(AGENTS), AGENTS // 2, axis=0)
    with pytest.raises(UsageError, match=r"is -1\.0000"):
        begin("sun-dsbo-extra", np.stack([good, swap]))
    assert noted(begin("sun-dsbo-extra", np.stack([good, swap]), "algorithm.lazy=true"))


def test_more_rows_than_a_run_file_has_room_for_are_refused(begin):
    many = ("run.iterations=1000000000", "run.eval_every=100")
    weights = np.full((1, AGENTS, AGENTS), 1 / AGENTS)
    with pytest.raises(UsageError, match="make 10,000,001 rows of the run file"):
        begin("sun-dsbo-gt", weights, *many)
    begin("sun-dsbo-gt", weights, many[0], "run.eval_every=10000")

"""Runs whose network changes, and runs with several rounds of gossip in one."""

import json

import h5py
import numpy as np
import pytest
from programs import assert_refused

AGENTS, ITERATIONS = 4, 6
NUMBERS = 1 + 2 + 2
"""x, y and theta of the task together; in float64."""
RUN = ("--dtype", "float64", "--iterations", ITERATIONS, "--save-final", "--eval-every", 3)


@pytest.fixture
def topology(sundsbo, tmp_path):
    def topology(*arguments, agents=AGENTS):
        result = sundsbo("topology", *arguments, "--agents", agents, "-o", "W.npz")
        assert result.returncode == 0, result.stderr
        return tmp_path / "W.npz"

    return topology


def run(mpirun, task, file, tmp_path, *flags, agents=AGENTS):
    flags = ("--topology", file, "--task", task, *RUN, "--output", "run.h5", "--overwrite", *flags)
    result = mpirun(agents, *flags)
    assert result.returncode == 0, result.stderr
    return h5py.File(tmp_path / "run.h5"), result


def test_a_random_network_sends_to_its_neighbours_of_the_day_alone(
    mpirun, sundsbo, task, topology, tmp_path
):
    file = topology("random", "--neighbours", 2)
    data, result = run(mpirun, task, file, tmp_path, "--algorithm", "sun-dsbo-gt")
    with data:
        assert "2 random neighbours, redrawn every iteration" in result.stderr
        edges = [tuple(edge) for edge in data["topology/edges"][:].tolist()]
        bytes_to = data["metrics/edges/bytes"][-1]
        assert len(edges) == AGENTS * (AGENTS - 1)
        # GT has two rounds of all three variables; both use the same two neighbours.
        a_round = 8 * NUMBERS
        assert bytes_to.sum() == ITERATIONS * 2 * a_round * AGENTS * 2
        assert set((bytes_to % (2 * a_round)).tolist()) == {0}
        assert bytes_to.sum() < len(edges) * ITERATIONS * 2 * a_round
        assert json.loads(data.attrs["topology_recipe"])["neighbours"] == [2, 2]
        assert data.attrs["lambda_min"] == pytest.approx(-1 / 3)
        assert 0 < data.attrs["rho"] < 1
        assert data["topology/weights"].shape == (0, AGENTS)
        assert float(data["metrics/invariant/x"][-1]) < 1e-12
    shown = sundsbo("show", "run.h5")
    assert shown.returncode == 0, shown.stderr
    assert "redrawn every iteration" in shown.stdout
    plain = json.loads(sundsbo("show", "run.h5", "--json").stdout)
    assert plain["topology"]["weights"] == {"row": [], "column": [], "value": []}
    assert sundsbo("plot", "run.h5", "-o", "run.png").returncode == 0


def test_exact_diffusion_is_told_of_a_changing_network_or_refused_on_it(
    mpirun, task, topology, tmp_path
):
    note = "such as EXTRA and ED, have no convergence theory on networks that change"
    exact = ("--algorithm", "sun-dsbo-ed")
    file = topology("one-peer", agents=3)
    refused = "sun-dsbo-ed needs symmetric weights", "2 matrices in turn", "is not symmetric"
    assert_refused(mpirun(3, "--topology", file, "--task", task, *exact), *refused)
    file = topology("random", "--neighbours", 2, "--neighbours-max", 3, agents=4)
    refused = "can be -0.5000", "algorithm.lazy=true"
    assert_refused(mpirun(4, "--topology", file, "--task", task, *exact), *refused)
    lazily = (*exact, "--set", "algorithm.lazy=true")
    data, result = run(mpirun, task, file, tmp_path, *lazily, agents=4)
    with data:
        assert data.attrs["lambda_min"] == pytest.approx(0.25)
        assert float(data["metrics/invariant/x"][-1]) < 1e-12
    assert " ".join(result.stderr.split()).count(note) == 1


def test_a_one_peer_network_sends_one_message_and_keeps_its_stack(
    mpirun, sundsbo, task, topology, tmp_path
):
    file = topology("one-peer")
    data, _ = run(mpirun, task, file, tmp_path, "--algorithm", "sun-dsbo-se")
    with data:
        assert data["metrics/agents/messages"][-1].tolist() == [ITERATIONS] * AGENTS
        to = {
            tuple(e): b
            for e, b in zip(
                data["topology/edges"][:].tolist(), data["metrics/edges/bytes"][-1], strict=True
            )
        }
        assert to == {
            (i, (i + s) % AGENTS): ITERATIONS // 2 * 8 * NUMBERS
            for i in range(AGENTS)
            for s in (1, 2)
        }
        stack = data["topology/weights"][:].reshape(2, AGENTS, AGENTS)
        np.testing.assert_array_equal(stack, np.load(file)["stack"])
    assert "2 matrices in turn" in sundsbo("show", "run.h5").stdout


def test_several_rounds_of_gossip_mix_with_the_power(mpirun, task, topology, tmp_path):
    """On three agents, of which the outer two hear of each other only from the second round on."""
    file = topology("line", agents=3)
    steps = ("--set", "algorithm.gossip_steps=3", "--algorithm", "sun-dsbo-gt")
    data, _ = run(mpirun, task, file, tmp_path, *steps, agents=3)
    with data:
        several = data["final/x"][:]
        assert data["metrics/agents/rounds"][-1].tolist() == [3 * 2 * ITERATIONS] * 3
        W = data["topology/weights"][:]
    np.save(tmp_path / "power.npy", np.linalg.matrix_power(W, 3))
    power = (tmp_path / "power.npy", tmp_path, "--algorithm", "sun-dsbo-gt")
    data, _ = run(mpirun, task, *power, agents=3)
    with data:
        np.testing.assert_allclose(data["final/x"][:], several, rtol=0, atol=1e-13)

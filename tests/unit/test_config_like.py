"""A run like an earlier one: its settings lie lowest, its files stay, its weights may serve."""

import json

import numpy as np
import pytest
import synthetic_run
from scipy.sparse import vstack

from sundsbo_mpi.config.likeness import differing_weights
from sundsbo_mpi.config.resolving import Request, resolve, resolved
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import RunFile
from sundsbo_mpi.topology import BUILDERS, SEQUENCES, read_weights, write_weights

OUTPUT = {"file": "old.h5", "overwrite": True, "trace": "old.json", "checkpoint": "old"}


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """Write the file of a run with these settings and weights; return its name."""
    monkeypatch.chdir(tmp_path)

    def write(weights=None, config=None, **sets):
        flags = {"task": {"name": "quadratic"}, "output": OUTPUT | {"checkpoint_every": 9}}
        texts = tuple(f"{name.replace('__', '.')}={value}" for name, value in sets.items())
        found = resolve(Request(flags=flags, sets=texts)).as_dict() if config is None else config
        about = {"config": json.dumps(found), "topology_sha256": "abc"}
        changes = {}
        if weights is not None:
            stack = [np.zeros((0, weights.agents)), *(w.toarray() for w in weights.matrices)]
            info = {name: np.array([0] * weights.agents) for name in ("threads", "train_samples")}
            info |= {"validation_samples": info["threads"]}
            info |= {name: np.array(["a"] * weights.agents) for name in ("host", "device")}
            changes = {
                "agents": weights.agents,
                "weights": np.vstack(stack),
                "edges": weights.edges(),
                "agents_info": info,
            }
            about |= {"node_ids": json.dumps([f"node {i}" for i in range(weights.agents)])}
            about |= {"topology_recipe": json.dumps(weights.recipe)} if weights.recipe else {}
        plan = synthetic_run.plan(**changes)
        attributes = dict(plan.attributes) | about
        file = RunFile.create(
            tmp_path / "run.h5", synthetic_run.plan(**changes, attributes=attributes), False
        )
        file.finish("finished")
        file.close()
        return "run.h5"

    return write


def like(path, *sets, **more):
    return resolved(Request(like=path, sets=sets, **more))


def test_the_earlier_settings_lie_below_all_others(earlier):
    path = earlier(run__seed=5, run__iterations=70, algorithm__step_x="{scale = 0.5, power = 0.25}")
    found = like(path, "run.iterations=80")
    assert (found.config.run.seed, found.config.run.iterations) == (5, 80)
    assert found.config.algorithm["step_x"] == {"scale": 0.5, "power": 0.25}
    assert found.origins()["run"]["seed"] == "run file run.h5"
    assert found.origins()["run"]["iterations"] == "--set"
    preset = resolve(Request(like=path, preset="paper/toy"))
    assert (preset.task, preset.run.iterations) == ({"name": "toy"}, 20_000)
    assert preset.run.seed == 5


def test_what_the_earlier_run_wrote_is_not_used_again_unless_asked(earlier):
    path = earlier()
    output = like(path).config.output
    assert (output.file, output.overwrite, output.trace, output.checkpoint) == (
        *(None, False, None, None),
    )
    assert output.checkpoint_every == 9
    assert like(path, "output.checkpoint=old").config.output.checkpoint == "old"


def test_another_method_keeps_the_options_that_it_has(earlier):
    path = earlier(algorithm__step_x=0.125, algorithm__step_theta=0.0625)
    algorithm = like(path, "algorithm.name=sparkle-gt").config.algorithm
    assert algorithm["step_x"] == 0.125
    assert "step_theta" not in algorithm
    task = like(path, "task.name=toy").config.task
    assert task == {"name": "toy"}


def test_an_option_that_the_very_same_method_does_not_have_is_refused(earlier):
    config = resolve(Request(flags={"task": {"name": "quadratic"}})).as_dict()
    config["algorithm"]["step_q"] = 1.0
    path = earlier(config=config)
    with pytest.raises(UsageError, match=r"unknown setting 'algorithm\.step_q'"):
        like(path)


def test_a_topology_that_is_gone_gives_way_to_the_run_file(earlier):
    path = earlier(topology__file="ring.npz", topology__format="npz", topology__place="true")
    network = like(path).config.topology
    assert (network.file, network.format, network.place) == ("run.h5", None, True)
    write_weights(BUILDERS["ring"](5), "ring.npz")
    network = like(path).config.topology
    assert (network.file, network.format) == ("ring.npz", "npz")
    network = like(path, "topology.file=other.txt").config.topology
    assert (network.file, network.format, network.place) == ("other.txt", None, True)


@pytest.mark.parametrize(
    "config",
    [{}, {"run": 1}, {table: {} for table in ("run", "topology", "output", "task", "algorithm")}],
)
def test_a_file_that_does_not_tell_how_its_run_was_configured(earlier, config):
    path = earlier(config=config)
    with pytest.raises(UsageError, match=r"'run\.h5' does not say how its run was configured"):
        like(path)


def test_what_is_no_run_file(tmp_path):
    with pytest.raises(UsageError, match="there is no run file"):
        like(str(tmp_path / "missing.h5"))


NETWORKS = [
    BUILDERS["ring"](5, self_weight=0.3),
    BUILDERS["complete"](3),
    SEQUENCES["one-peer"](8),
    SEQUENCES["random"](7, neighbours=3),
]


@pytest.mark.parametrize("lazy", ["false", "true"])
@pytest.mark.parametrize("weights", NETWORKS, ids=lambda weights: weights.name)
def test_the_weights_of_a_run_come_back_bit_for_bit(earlier, weights, lazy):
    mixed = weights.lazy() if lazy == "true" else weights
    loaded = read_weights(earlier(mixed, algorithm__lazy=lazy))
    assert loaded.node_ids == tuple(f"node {i}" for i in range(weights.agents))
    again = loaded.weights.lazy() if lazy == "true" else loaded.weights
    assert again.sha256 == mixed.sha256
    assert abs(vstack(loaded.weights.sample) - vstack(weights.sample)).max() < 1e-15


def test_other_weights_than_the_earlier_ones_are_told(earlier):
    path = earlier()
    assert differing_weights(path, "abc") == ()
    assert differing_weights(path, "abd") == ("the weights are others than those of 'run.h5'",)
    assert differing_weights(None, "abd") == ()

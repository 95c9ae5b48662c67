"""How many samples of each class the agents hold: from the task to the run file, and kept there."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from labelled_samples import AGENTS, DATA
from synthetic_run import plan, resumption, row

from sundsbo_mpi.runfile import DamagedError, Event, RunFile, read_damaged, read_run, repair
from sundsbo_mpi.runfile.schema import LABEL_COUNTS
from sundsbo_mpi.running.introduction import facts_of_agents
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
from sundsbo_mpi.tasks.shards import labelled_shards

COUNTS = {
    "train_label_counts": np.array([[3, 1, 0, 2], [0, 0, 6, 0], [1, 2, 2, 1]]),
    "validation_label_counts": np.array([[1, 0], [0, 1], [2, 2]]),
}


@pytest.fixture
def path(tmp_path):
    planned = plan(agents_info=plan().agents_info | COUNTS)
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", planned)) as run:
        for index in range(3):
            run.append(row(index))
    return tmp_path / "a.h5"


def assert_kept(data):
    for name, counts in COUNTS.items():
        np.testing.assert_array_equal(data.agents_info[name], counts)
        assert data.agents_info[name].dtype.kind == "i"


def test_they_are_read_as_they_were_written(path):
    assert_kept(read_run(path))


def test_they_stay_when_a_run_is_resumed_told_of_an_event_or_repaired(path, tmp_path):
    with contextlib.closing(RunFile.resume(path, resumption(20))) as run:
        assert_kept(read_run(path))
        run.note([Event(20, "odd", "said")])
        assert_kept(read_run(path))
    repair(path, tmp_path / "b.h5", overwrite=False)
    assert_kept(read_run(tmp_path / "b.h5"))


def test_a_file_without_them_is_whole(path, tmp_path):
    with h5py.File(path, "r+") as file:
        for name in LABEL_COUNTS:
            del file[f"agents/{name}"]
    assert not read_run(path).agents_info.keys() & set(LABEL_COUNTS)
    repair(path, tmp_path / "b.h5", overwrite=False)
    data = read_run(tmp_path / "b.h5")
    assert not data.agents_info.keys() & set(LABEL_COUNTS)
    assert "lost" not in data.events[0].sentence


@pytest.mark.parametrize("odd", [np.zeros(3), np.zeros((2, 4)), np.full((3, 2), b"x")])
def test_odd_ones_are_damage_and_cost_nothing_else(path, odd):
    with h5py.File(path, "r+") as file:
        del file["agents/train_label_counts"]
        file["agents/train_label_counts"] = odd
    with pytest.raises(DamagedError, match="train_label_counts"):
        read_run(path)
    found = read_damaged(path)
    assert found.rows == 3
    assert "lost: agents/train_label_counts" in found.damage
    assert "train_label_counts" not in found.agents_info
    np.testing.assert_array_equal(
        found.agents_info["validation_label_counts"], COUNTS["validation_label_counts"]
    )


def facts(*tasks):
    """What rank 0 gathers from agents that have the tasks."""
    names = [f"node{agent}" for agent in range(len(tasks))]
    here = SimpleNamespace(hosts=names, cores=[{0}])
    site = SimpleNamespace(local=here, device="cpu", threads=1)
    told = []
    for agent, task in enumerate(tasks):
        tally = SimpleNamespace(agent=agent, gather=told.append)
        assert facts_of_agents(tally, site, task, shared=False) is None
    tally = SimpleNamespace(agent=0, gather=lambda _own: told)
    return facts_of_agents(tally, site, tasks[0], shared=False)


def test_agents_tell_what_they_hold():
    shards = labelled_shards(DATA, AGENTS, 0, heterogeneity=0.3, corruption=0.5)
    tasks = [
        HyperCleaning(agent=agent, agents=AGENTS, seed=0, shard=shard, batch=4, hidden=5)
        for agent, shard in enumerate(shards)
    ]
    found = facts(*tasks)
    for part in ("train", "validation"):
        counts = found[f"{part}_label_counts"]
        assert counts.shape == (AGENTS, DATA.classes)
        for own, shard in zip(counts, shards, strict=True):
            for label in range(DATA.classes):
                assert own[label] == (shard[f"{part}_labels"] == label).sum()
    assert found["train_samples"].tolist() == found["train_label_counts"].sum(axis=1).tolist()


def test_tasks_may_tell_nothing_less_or_something_else():
    plain = facts(SimpleNamespace(), SimpleNamespace())
    assert not plain.keys() & set(LABEL_COUNTS)
    odd = [SimpleNamespace(train_label_counts=it) for it in ([1, 2, 3], [4], "odd", [0.5], 7)]
    found = facts(*odd)
    assert found["train_label_counts"].tolist() == [[1, 2, 3], [4, 0, 0], *[[0, 0, 0]] * 3]
    assert "validation_label_counts" not in found

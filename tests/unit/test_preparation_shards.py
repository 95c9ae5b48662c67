"""What rank 0 says of the data that it divides."""

import warnings

import pytest

from sundsbo_mpi.config.resolving import Config
from sundsbo_mpi.config.tables import OutputOptions, RunOptions, TopologyOptions
from sundsbo_mpi.errors import DataNote
from sundsbo_mpi.running import preparation

TASK = {"name": "some", "dataset": "odd"}
CONFIG = Config(RunOptions(seed=3), TopologyOptions(), OutputOptions(), TASK, algorithm={})


def divide(monkeypatch, task):
    monkeypatch.setattr(preparation, "load_task", lambda _name: task)
    return preparation._load_shards(CONFIG, 2)


def test_odd_data_are_used_and_become_notes(monkeypatch):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            for _ in range(2):
                warnings.warn("test batch has 1,000 of 10,000 images", DataNote, stacklevel=2)
            return (f"{dataset} {agent} {seed}" for agent in range(agents))

    shards, notes = divide(monkeypatch, Task)
    assert shards == ["odd 0 3", "odd 1 3"]
    assert notes == ["test batch has 1,000 of 10,000 images"]


def test_other_warnings_stay_warnings(monkeypatch):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            warnings.warn("something else", RuntimeWarning, stacklevel=2)
            return [0] * agents

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.warns(RuntimeWarning, match="something else"):
            assert divide(monkeypatch, Task) == ([0, 0], [])


def test_a_task_without_shards_has_nothing_to_say(monkeypatch):
    assert divide(monkeypatch, object) == ([], [])

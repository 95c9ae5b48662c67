"""Which shards rank 0 hands out, one by one, and what is said of the data that it divides."""

import gc
import warnings
import weakref

import numpy as np
import pytest
from labelled_samples import AGENTS, DATA
from together import complaints, together

from sundsbo_mpi.checkpoint import About
from sundsbo_mpi.config.resolving import Config
from sundsbo_mpi.config.tables import OutputOptions, RunOptions, TopologyOptions
from sundsbo_mpi.errors import AgreedError, DataNote, UsageError
from sundsbo_mpi.running import dividing, preparation
from sundsbo_mpi.tasks.on_demand import OnDemand
from sundsbo_mpi.tasks.shards import labelled_shards

TASK = {"name": "some", "dataset": "odd"}
CONFIG = Config(RunOptions(seed=3), TopologyOptions(), OutputOptions(), TASK, algorithm={})


def prepared(agents, numbers):
    about = About(agents, numbers, {}, "", "")
    return preparation.Prepared(CONFIG, (), None, (), about)


def known(monkeypatch, task):
    for module in (preparation, dividing):
        monkeypatch.setattr(module, "load_task", lambda _name: task)


def divide(monkeypatch, task, agents=2, numbers=None, meet=together):
    """Return every agent's shard and the notes."""
    known(monkeypatch, task)
    found = prepared(agents, list(range(agents)) if numbers is None else numbers)
    return meet(len(found.about.numbers), lambda tally: preparation._own_shard(tally, found))


def test_odd_data_are_used_and_become_notes_of_all(monkeypatch):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            for _ in range(2):
                warnings.warn("test batch has 1,000 of 10,000 images", DataNote, stacklevel=2)
            return (f"{dataset} {agent} {seed}" for agent in range(agents))

    notes = ["test batch has 1,000 of 10,000 images"]
    assert divide(monkeypatch, Task) == [("odd 0 3", notes), ("odd 1 3", notes)]


def test_what_is_odd_about_a_later_shard_is_noted_too(monkeypatch):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            for agent in range(agents):
                warnings.warn(f"shard {agent} is odd", DataNote, stacklevel=2)
                yield agent

    notes = ["shard 0 is odd", "shard 1 is odd"]
    assert divide(monkeypatch, Task) == [(0, notes), (1, notes)]


def test_other_warnings_stay_warnings(monkeypatch):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            warnings.warn("something else", RuntimeWarning, stacklevel=2)
            return [0] * agents

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.warns(RuntimeWarning, match="something else"):
            assert divide(monkeypatch, Task, 1) == [(0, [])]


def test_a_task_without_shards_has_nothing_to_say(monkeypatch):
    assert divide(monkeypatch, object) == [(None, [])] * 2


@pytest.mark.parametrize("kind", [list, iter], ids=["a list", "one by one"])
def test_those_who_are_left_get_the_shards_of_their_numbers(monkeypatch, kind):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            return kind(range(agents))

    assert divide(monkeypatch, Task, 5, [0, 2, 3]) == [(0, []), (2, []), (3, [])]
    assert divide(monkeypatch, Task, 5, [1, 4]) == [(1, []), (4, [])]


def test_those_who_are_lost_have_no_shard_made_where_it_can_be_left_out(monkeypatch):
    made = []

    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            return OnDemand(agents, lambda agent: made.append(agent) or agent)

    assert divide(monkeypatch, Task, 5, [1, 4]) == [(1, []), (4, [])]
    assert made == [1, 4]


@pytest.mark.parametrize(
    ("kind", "number", "found"),
    [
        (list, 2, "2 shards"),
        (iter, 2, "2 shards"),
        (list, 4, "4 shards"),
        (iter, 4, "4 shards"),  # the last one, which is nobody's, is missing
        (list, 6, "6 shards"),
        (iter, 6, "more than 5 shards"),
    ],
)
def test_another_number_of_shards_is_refused_by_all(monkeypatch, kind, number, found):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            return kind(range(number))

    said = (
        f"shards() of the task has {found} for 5 agents: return or yield one for each agent, in "
        "their order."
    )
    sentences = divide(
        monkeypatch, Task, 5, [0, 3], lambda n, work: complaints(n, work, AgreedError)
    )
    assert sentences == [said] * 2


@pytest.mark.parametrize("good", [0, 1, 2])
def test_a_shard_that_cannot_be_made_is_refused_by_all(monkeypatch, good):
    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            yield from range(good)
            raise UsageError("no such sample")

    sentences = divide(monkeypatch, Task, 3, meet=lambda n, work: complaints(n, work, AgreedError))
    assert sentences == ["no such sample"] * 3


def test_no_shard_is_kept_while_the_next_is_made(monkeypatch):
    made, alive = [], []

    def hand(agent):
        found = np.array(agent)
        made.append(weakref.ref(found))
        return found

    class Task:
        @staticmethod
        def shards(agents, seed, dataset):
            for agent in range(agents):
                alive.append(sum(one() is not None for one in made))
                yield hand(agent)

    known(monkeypatch, Task)
    gc.disable()
    try:
        shards = dividing.divided(CONFIG, 4, [0, 1, 3])
        numbers = [*map(int, shards)]
    finally:
        gc.enable()
    assert numbers == [0, 1, 3]
    assert alive == [0] * 4


def test_labelled_shards_are_made_one_by_one_and_the_same_whenever_they_are_asked_for():
    shards = labelled_shards(DATA, AGENTS, 0, heterogeneity=1.0, corruption=0.4)
    assert len(shards) == AGENTS
    first = weakref.ref(shards[0]["train_inputs"])
    assert first() is None
    for shard, again in zip(shards, map(shards.__getitem__, range(AGENTS)), strict=True):
        for name, array in again.items():
            np.testing.assert_array_equal(array, shard[name])
    with pytest.raises(IndexError):
        shards[AGENTS]

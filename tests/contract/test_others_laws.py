"""What the remaining baselines start from, and what they refuse."""

import bench
import numpy as np
import others
import pytest
import torch
from together import complaints

from sundsbo_mpi.agent import Agent, Observer
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.composition.matrix_directions import LARGEST_BYTES
from sundsbo_mpi.errors import AgreedError, UsageError
from sundsbo_mpi.ranks.control import Control
from sundsbo_mpi.tasks.base import Penalty


def alone(step):
    """Do a step of one agent who hears nobody else."""
    heard = None
    while True:
        try:
            heard = step.send(heard).tensors
        except StopIteration as end:
            return end.value


@bench.every_other
def test_directions_of_the_agent_show_that_its_gradients_are_not_finite(name, variant):
    """They are what ``health.Health`` looks at."""

    class Failing(bench.Merged):
        def sample(self, k, draw=0):
            drawn = super().sample(k, draw)
            return drawn._replace(lower=drawn.lower * np.nan)

    algorithm = bench.build(name, **bench.lively(name, **variant))
    for kind, fine in ((bench.Merged, True), (Failing, False)):
        (task,) = bench.quadratics(1, task=kind)
        w, state = algorithm.start(task)
        w, state = alone(algorithm.step(task, 0, w, state))
        assert set(state.D_hat) <= set(w)
        assert all(bool(d.isfinite().all()) for d in state.D_hat.values()) == fine


def test_starts_and_penalty():
    (task,) = bench.quadratics(1, task=bench.Elsewhere)
    x, y = task.start()
    w, _ = bench.build("dsgda-gt").start(task)
    assert torch.equal(w["z"], y)
    assert bench.build("dsgda-gt", nu=0.3).penalty(7) == Penalty(0.3, np.inf)
    for name in ("ma-dsbo", "dsbo"):
        w, _ = bench.build(name).start(task)
        assert not w["z"].any()
        assert bench.build(name).penalty(0) is None
        assert torch.equal(w["x"], x)


def agreed_refusal(name, task):
    """Return the sentence that all agents raise when the method is started on the task."""

    def live(tally):
        algorithm = bench.build(name, 3)
        agent = Agent(task, algorithm, None, tally, Control(tally), Clock(), 1, 1)
        agent.run(Observer())

    sentences = complaints(3, live, AgreedError)
    assert len(set(sentences)) == 1
    return sentences[0]


class Huge:
    """The sizes of the paper's hyper-cleaning, without its numbers."""

    def start(self):
        return (torch.empty(1).expand(d) for d in (50_000, 238_510))


def test_methods_that_send_matrices_refuse_large_tasks_on_all_agents():
    sentence = agreed_refusal("dsbo", Huge())
    assert "50,000 x 238,510 numbers, 44.4 GiB" in sentence
    sentence = agreed_refusal("gossip-dsbo", Huge())
    assert "50,000 x 238,510 and 5 x 238,510 x 238,510 numbers" in sentence


def test_the_limit_is_where_it_is_said_to_be():
    class Sized(Huge):
        def __init__(self, d_x):
            self.d_x = d_x

        def start(self):
            return torch.empty(self.d_x), torch.empty(LARGEST_BYTES // 4 // 512)

    algorithm = bench.build("dsbo")
    algorithm.stages[0].stage.begin(Sized(512))
    with pytest.raises(UsageError, match="dsbo keeps and sends matrices"):
        algorithm.start(Sized(513))


@pytest.mark.parametrize(
    ("name", "options", "least"),
    [("dsbo", {"inner_z": 8}, (513, 2)), ("gossip-dsbo", {"terms": 16}, (1, 256))],
)
def test_what_would_take_too_long_is_refused(name, options, least):
    class Sized(Huge):
        def __init__(self, smaller=0):
            self.sizes = [size - smaller if size > 2 else size for size in least]

        def start(self):
            return tuple(map(torch.empty, self.sizes))

    bench.build(name, **options).start(Sized(1))
    with pytest.raises(UsageError, match=rf"{name} computes 4,\d+ rows of .* at most 4,096; take"):
        bench.build(name, **options).start(Sized())


@pytest.mark.parametrize("name", others.SINGLE_LEVEL)
def test_single_level_methods_refuse_a_task_without_single_level(name):
    sentence = agreed_refusal(name, bench.quadratics(1)[0])
    assert "the task has no single_level()" in sentence


def test_meha_refuses_more_than_one_agent():
    with pytest.raises(UsageError, match=r"meha is centralised, but there are 3 agents"):
        bench.build("meha", 3)


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("dsgda-gt", {"nu": 0.0}, r"algorithm\.nu is 0\.0: expected a number above 0"),
        ("dsgda-gt", {"inner_y": 0}, r"algorithm\.inner_y is 0: expected an integer of at least 1"),
        ("ma-dsbo", {"inner_z": 0}, r"algorithm\.inner_z is 0"),
        ("ma-dsbo", {"moving_average": 1.5}, r"algorithm\.moving_average in iteration 0 is 1\.5"),
        ("dsbo", {"inner_y": 0}, r"algorithm\.inner_y is 0"),
        ("mdbo", {"eta": 1.5}, r"algorithm\.eta is 1\.5: expected a number above 0 and at most 1"),
        ("vrdbo", {"lipschitz": 0.0}, r"algorithm\.lipschitz is 0\.0: expected a number above 0\."),
        ("vrdbo", {"terms": 0}, r"algorithm\.terms is 0"),
        ("gossip-dsbo", {"lipschitz": -1.0}, r"algorithm\.lipschitz is -1\.0"),
        ("gossip-dsbo", {"terms": 0}, r"algorithm\.terms is 0"),
        ("meha", {"gamma": 0.0}, r"algorithm\.gamma is 0\.0: expected a number above 0"),
        ("meha", {"p": -1.0}, r"algorithm\.p is -1\.0"),
        ("gnsd", {"step_y": -1.0}, r"algorithm\.step_y in iteration 0 is -1"),
    ],
)
def test_options_out_of_range_are_refused(name, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        bench.build(name, 1, **options)

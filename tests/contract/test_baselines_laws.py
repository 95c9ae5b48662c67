"""Laws of the remaining baselines: invariants, memory, symmetries, and what they refuse."""

import baselines
import bench
import numpy as np
import pytest
import torch
from lockstep import Lockstep
from test_invariants import invariants
from test_memory import tensors
from together import complaints

from sundsbo_mpi.agent import Agent
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.composition import Penalty
from sundsbo_mpi.errors import AgreedError, UsageError
from sundsbo_mpi.matrix_directions import LARGEST_BYTES

MOVED = {
    "dsgda-gt": {"x", "y", "z"},
    "ma-dsbo": {"x", "y", "z"},
    "dsbo": {"x", "y", "z"},
    "gossip-dsbo": {"x", "y", "f_x", "f_y", "g_xy", "g_yy"},
    "mdbo": {"x", "y"},
    "vrdbo": {"x", "y"},
    "d-psgd": {"y"},
    "gnsd": {"y"},
}


def drive(name, W, tamper=None, agents=5, iterations=8, **changes):
    tasks = bench.quadratics(agents, task=baselines.MergedQuadratic, noise=0.2)
    algorithm = bench.build(name, agents, **baselines.lively(name, **changes))
    return Lockstep(algorithm, tasks, W, tamper).run(iterations)


@baselines.every_baseline
def test_the_invariant_is_at_rounding_level_in_a_sound_run(name, changes):
    found = invariants(drive(name, bench.uneven(), **changes))
    assert set(found) == MOVED[name]
    assert max(found.values()) < 1e-12


@baselines.every_baseline
def test_the_invariant_catches_columns_that_do_not_sum_to_one(name, changes):
    walk = bench.ring(5, 0.5) * np.linspace(1, 2, 5)
    walk /= walk.sum(axis=1, keepdims=True)
    assert min(invariants(drive(name, walk, **changes)).values()) > 1e-3


@baselines.every_baseline
def test_the_invariant_catches_a_network_that_corrupts_what_one_agent_receives(name, changes):
    W = bench.uneven()

    def corrupt(buffer, averages):
        averages[0] += 0.5 * W[0, 1] * buffer[1]
        return averages

    assert min(invariants(drive(name, W, corrupt, **changes)).values()) > 1e-4


@baselines.every_baseline
def test_nothing_held_changes_later_and_nothing_is_shared_or_part_of_a_graph(name, changes):
    run = drive(name, bench.uneven(), iterations=0, **changes)
    kept = []
    for _ in range(4):
        held = tensors([run.points, run.states])
        assert all(not t.requires_grad for t in held)
        kept.append((held, [t.clone() for t in held], [t._version for t in held]))
        run.iterate()
    for held, copies, versions in kept:
        assert all(map(torch.equal, held, copies))
        assert versions == [t._version for t in held]
    taken = set()
    for w, state in zip(run.points, run.states, strict=True):
        own = {t.untyped_storage().data_ptr() for t in tensors([w, state])}
        assert not own & taken
        taken |= own


@baselines.every_baseline
def test_a_step_depends_on_nothing_but_its_arguments(name, changes):
    run = drive(name, bench.uneven(), iterations=3, **changes)
    points, states = run.points, run.states
    run.iterate()
    first = tensors([run.points, run.states])
    run.points, run.states, run.k = points, states, 3
    run.iterate()
    assert all(map(torch.equal, first, tensors([run.points, run.states])))


@baselines.every_baseline
def test_identical_agents_do_what_one_would_do_alone(name, changes):
    options = {"task": baselines.MergedQuadratic, "heterogeneity": 0.0}
    algorithm = bench.build(name, **baselines.lively(name, **changes))
    many = Lockstep(algorithm, bench.quadratics(5, **options), bench.uneven()).run(20)
    alone = Lockstep(algorithm, bench.quadratics(1, **options), np.eye(1)).run(20)
    for v in many.points[0]:
        np.testing.assert_allclose(many.rows(v), np.tile(alone.rows(v), (5, 1)), atol=1e-12)


@baselines.every_baseline
def test_relabelling_the_agents_relabels_the_result(name, changes):
    order = np.array([3, 0, 4, 2, 1])
    W, tasks = bench.uneven(), bench.quadratics(task=baselines.MergedElsewhere, noise=0.1)
    algorithm = bench.build(name, **baselines.lively(name, **changes))
    plain = Lockstep(algorithm, tasks, W).run(10)
    renamed = Lockstep(algorithm, [tasks[i] for i in order], W[np.ix_(order, order)]).run(10)
    for v in plain.points[0]:
        np.testing.assert_allclose(renamed.rows(v), plain.rows(v)[order], rtol=0, atol=1e-12)


@baselines.every_baseline
def test_the_dtype_of_the_task_is_kept(name, changes):
    tasks = bench.quadratics(task=baselines.MergedQuadratic, dtype=torch.float32)
    algorithm = bench.build(name, **baselines.lively(name, **changes))
    run = Lockstep(algorithm, tasks, bench.uneven()).run(2)
    assert {s.dtype for w in run.points for s in w.values()} == {torch.float32}
    assert {buffer.dtype for buffer in run.buffers.values()} == {torch.float32}


def alone(step):
    """Do a step of one agent who hears nobody else."""
    heard = None
    while True:
        try:
            heard = step.send(heard)
        except StopIteration as end:
            return end.value


@baselines.every_baseline
def test_directions_of_the_agent_show_that_its_gradients_are_not_finite(name, changes):
    """They are what ``agent.Health`` looks at."""

    class Failing(baselines.MergedQuadratic):
        def sample(self, k, draw=0):
            drawn = super().sample(k, draw)
            return drawn._replace(lower=drawn.lower * np.nan)

    algorithm = bench.build(name, **baselines.lively(name, **changes))
    for kind, fine in ((baselines.MergedQuadratic, True), (Failing, False)):
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
        agent = Agent(task, algorithm, None, tally, Clock(), iterations=1, eval_every=1)
        agent.run(lambda *_: None, lambda _: None)

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
            return torch.empty(self.d_x), torch.empty(LARGEST_BYTES // 4 // 1024)

    algorithm = bench.build("dsbo")
    algorithm.stages[0].stage.begin(Sized(1024))
    with pytest.raises(UsageError, match="dsbo keeps and sends matrices"):
        algorithm.start(Sized(1025))


@pytest.mark.parametrize("name", baselines.SINGLE_LEVEL)
def test_single_level_methods_refuse_a_task_without_single_level(name):
    sentence = agreed_refusal(name, bench.quadratics(1)[0])
    assert "the task Quadratic has no single_level()" in sentence


def test_meha_refuses_more_than_one_agent():
    with pytest.raises(UsageError, match=r"meha is centralised, but there are 3 agents"):
        bench.build("meha", 3)


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("dsgda-gt", {"nu": 0.0}, r"algorithm\.nu is 0\.0: expected a number above 0"),
        ("dsgda-gt", {"inner_y": 0}, r"algorithm\.inner_y is 0: expected a number of at least 1"),
        ("ma-dsbo", {"inner_z": 0}, r"algorithm\.inner_z is 0"),
        ("ma-dsbo", {"moving_average": 1.5}, r"algorithm\.moving_average is 1\.5 in iteration 0"),
        ("dsbo", {"inner_y": 0}, r"algorithm\.inner_y is 0"),
        ("mdbo", {"eta": 1.5}, r"algorithm\.eta is 1\.5: expected a number above 0 and at most 1"),
        ("vrdbo", {"lipschitz": 0.0}, r"algorithm\.lipschitz is 0\.0: expected a number above 0\."),
        ("vrdbo", {"terms": 0}, r"algorithm\.terms is 0"),
        ("gossip-dsbo", {"lipschitz": -1.0}, r"algorithm\.lipschitz is -1\.0"),
        ("gossip-dsbo", {"terms": 0}, r"algorithm\.terms is 0"),
        ("meha", {"gamma": 0.0}, r"algorithm\.gamma is 0\.0: expected a number above 0"),
        ("meha", {"p": -1.0}, r"algorithm\.p is -1\.0"),
        ("gnsd", {"step_y": -1.0}, r"algorithm\.step_y is -1"),
    ],
)
def test_options_out_of_range_are_refused(name, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        bench.build(name, 1, **options)

"""What is said of numbers that go astray: the cause that was put there comes first."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import bench
import numpy as np
import pytest
import torch
from lockstep import Lockstep
from together import together

from sundsbo_mpi.algorithms import Horizon, method
from sundsbo_mpi.algorithms.sending import sending
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.diagnosis.causes import Diagnosis
from sundsbo_mpi.diagnosis.health import NotFiniteError, Trouble
from sundsbo_mpi.topology import Weights

AGENTS = 5
FINE = {"step_x": 0.05, "step_y": 0.05, "step_theta": 0.05, "mu0": 0.1, "gamma": 0.1}


class Case:
    """A method on the quadratic in one process, and the diagnosis of rank 0."""

    def __init__(self, name="sun-dsbo-gt", W=None, dtype=torch.float64, known=True, **options):
        self.config = resolve(
            Request(
                flags={
                    "task": {"name": "quadratic"},
                    "algorithm": {"name": name, **FINE, **options},
                }
            )
        )
        entry = method(name)
        own = entry.options(**self.config.algorithm_options)
        built = entry.build(own, Horizon(AGENTS, self.config.run.iterations))
        self.algorithm = sending(built, own, agents=AGENTS, seed=0)
        self.W = bench.uneven() if W is None else W
        self.tasks = bench.quadratics(AGENTS, dtype=dtype)
        if not known:
            for task in self.tasks:
                del task.lipschitz
        self.diagnosis = self.of(self.tasks[0])

    def of(self, task):
        return Diagnosis(self.config, self.algorithm, Weights(self.W, "test"), task, len(self.W))

    def notes(self, iterations, every, most=1):
        """Run, to so many remarks, and return them by the iteration of their row."""
        run, said = Lockstep(self.algorithm, self.tasks, self.W), {}
        for k in range(iterations + 1):
            if k % every == 0 and (remark := self.diagnosis.note(self.row(run, k))):
                said[k] = remark
                if len(said) == most:
                    break
            run.iterate()
        return said

    def row(self, run, k):
        rows = {v: run.rows(v) for v in run.points[0]}
        means = {v: torch.from_numpy(r.mean(axis=0)) for v, r in rows.items()}
        reports = [task.report(means["x"], means["y"]) for task in self.tasks]
        return row(
            k,
            {name: float(np.mean([r[name] for r in reports])) for name in reports[0]},
            {v: float(((r - r.mean(axis=0)) ** 2).sum() / AGENTS) for v, r in rows.items()},
        )

    def explained(self, trouble, *others):
        """Return what all agents are told of the trouble; ``others``: (agent, task)."""
        tasks = dict(enumerate(self.tasks)) | dict(others)

        def work(tally):
            return str(
                self.of(tasks[tally.agent]).explain(NotFiniteError(trouble), tally.agent, tally)
            )

        said = together(AGENTS, work)
        assert len(set(said)) == 1
        return said[0]


def row(k, task, consensus, lipschitz=math.nan):
    return SimpleNamespace(iteration=k, task=task, consensus=consensus, lipschitz=lipschitz)


def causes(said):
    """Return the likely causes in their order."""
    return re.search("likely, in this order: (.*)", said)[1].split("; ")


# A run that goes astray while its numbers are finite.


@pytest.mark.parametrize(("variable", "bound"), [("y", "2/L2"), ("theta", "2/(L2 + 1/gamma)")])
def test_a_step_above_what_the_problem_bears_comes_first(variable, bound):
    case = Case(**{f"step_{variable}": 1.2})
    (first,) = case.notes(200, every=2).values()
    assert "has grown without bound since iteration" in first
    assert causes(first)[0].startswith(f"step_{variable} = 1.2 is above {bound} = ")
    assert float(causes(first)[0].rpartition(" ")[2]) < 1.2


def test_compressed_messages_come_first_where_only_the_agents_drift_apart():
    case = Case(compressor="top-k", fraction=0.1, gamma_c=1.0)
    (said,) = case.notes(400, every=2).values()
    assert re.match("the consensus error of (x|y|theta) has grown without bound", said)
    assert causes(said)[0].startswith("top-k with fraction = 0.1 and gamma_c = 1")


def test_a_growing_loss_is_said_once_and_the_consensus_not_after_it():
    case = Case(step_y=0.9)
    said = case.notes(120, every=2, most=3).values()
    kinds = [remark.startswith("the consensus error") for remark in said]
    assert kinds in ([False], [True, False])


@pytest.mark.parametrize("name", [*bench.SUN, "sparkle-gt", "sparkle-extra-ed", "d-soba"])
def test_runs_that_are_fine_hear_nothing(name):
    case = Case()
    case.algorithm = bench.build(name, **bench.lively(name))
    case.tasks = bench.quadratics(AGENTS, task=bench.Merged, noise=0.3)
    assert case.notes(60, every=2) == {}


def exploding(case, name, rows=20):
    """Return the remark on a run whose consensus error of one variable doubles row by row."""
    said = [case.diagnosis.note(row(k, {}, {name: 2.0**k})) for k in range(rows)]
    (found,) = filter(None, said)
    return causes(found)


def test_an_eigenvalue_close_to_the_bound_is_named():
    W = bench.ring(AGENTS, 0.28)  # -0.30
    first, *others = exploding(Case("sun-dsbo-ed", W), "x")
    assert "eigenvalue -0.302" in first
    assert "bound -0.333" in first
    assert "step_x" in others[0]
    assert not any("eigenvalue" in cause for cause in exploding(Case("sun-dsbo-gt", W), "x"))
    assert not any("eigenvalue" in cause for cause in exploding(Case("sun-dsbo-ed"), "x"))


def test_a_network_that_mixes_slowly_is_named():
    W = 0.05 * bench.uneven() + 0.95 * np.eye(AGENTS)
    assert exploding(Case(W=W), "x")[0].startswith("rho = 0.9")
    assert not any("rho" in cause for cause in exploding(Case(), "x"))


def test_the_steps_are_listed_with_the_one_in_question_first():
    assert exploding(Case(step_theta=0.07), "theta")[-1].startswith(
        "a step that is too long (step_theta = 0.07, step_x = 0.05, step_y = 0.05"
    )


@pytest.mark.parametrize("odd", ["x", "theta"])
def test_the_step_furthest_above_its_default_is_listed_before_the_one_in_question(odd):
    said = Case(**{f"step_{odd}": 50.0}).explained(Trouble("y", 0, 3, of_point=False))
    assert f"a step that is too long (step_{odd} = 50, step_y = " in said


BAD_DEFAULTS = ("none", {"steps": {}}, {"algorithm": {"step_x": "fast"}})


@pytest.mark.parametrize("own", BAD_DEFAULTS)
def test_defaults_that_are_none_do_not_hide_the_trouble(own):
    """As a class that `solve` is given may have: nobody has read them before."""
    case = Case()
    case.tasks = bench.quadratics(AGENTS, task=type("Own", (bench.Quadratic,), {"defaults": own}))
    case.config = replace(case.config, task={"name": "own:Own"})
    said = case.explained(Trouble("y", 0, 3, of_point=False))
    assert "a step that is too long (step_y = 0.05" in said


def test_where_a_loss_grows_too_the_steps_come_before_the_network():
    case = Case(W=0.05 * bench.uneven() + 0.95 * np.eye(AGENTS))
    for k in range(30):
        said = case.diagnosis.note(row(k, {"upper_loss": 1.3**k}, {"x": 2.0**k}))
        if said:
            break
    found = [cause.partition(" ")[0] for cause in causes(said)]
    assert found == ["a", "rho"]


def test_a_measured_smoothness_serves_where_the_task_knows_none():
    case = Case(known=False, gamma=1.0)
    assert not any("L2" in cause for cause in exploding(case, "y"))
    case = Case(known=False, gamma=1.0)
    case.diagnosis.note(row(0, {}, {}, lipschitz=50.0))
    found = exploding(case, "y")
    assert "step_y = 0.05 is above 2/L2 = 0.04" in found
    assert "gamma = 1 is not below 1/(2 L2) = 0.01" in found


def test_of_two_steps_that_are_too_long_the_worse_comes_first():
    for longer, shorter in (("y", "theta"), ("theta", "y")):
        case = Case(**{f"step_{longer}": 30.0, f"step_{shorter}": 3.0})
        found = causes(case.explained(Trouble("x", 0, 3, of_point=False)))
        assert [cause.partition(" ")[0] for cause in found[:2]] == [
            f"step_{longer}",
            f"step_{shorter}",
        ]


def test_a_short_gamma_needs_no_smoothness_to_be_too_short():
    found = exploding(Case(known=False, gamma=0.01), "theta")
    assert "step_theta = 0.05 is above 2 gamma = 0.02" in found


def test_a_schedule_is_read_at_the_iteration():
    case = Case(step_y={"scale": 10.0, "power": 1.0})
    said = case.explained(Trouble("y", 1, 0, of_point=False))
    assert causes(said)[0].startswith("step_y = 10 is above 2/L2")
    said = case.explained(Trouble("y", 1, 999, of_point=False))
    assert "step_y = 0.01," in said
    assert "2/L2" not in said


# Numbers that are no longer finite.


class Spoilt(bench.Quadratic):
    """The data of one iteration are not finite."""

    def sample(self, k, draw=0):
        batch = super().sample(k, draw)
        return batch._replace(lower=batch.lower * math.nan) if k == 7 else batch


class Rooted(bench.Quadratic):
    """The loss is finite at the start, its gradient is not."""

    def lower(self, x, y, batch):
        return super().lower(x, y, batch) + (y**2).sum().sqrt()


class Failing(bench.Quadratic):
    """The user's code fails when it is asked once more."""

    def sample(self, k, draw=0):
        raise RuntimeError("no more")


@pytest.mark.parametrize("kind", [Spoilt, Rooted])
def test_data_that_are_not_finite_are_the_only_cause(kind):
    ((other),) = bench.quadratics(1, task=kind)
    said = Case().explained(Trouble("y", 3, 7, of_point=False), (3, other))
    assert "direction of y on agent 3 was first not finite in iteration 7; the losses" in said
    assert "look at its data and its loss" in said
    assert "likely" not in said


def test_the_batch_of_another_iteration_or_agent_is_not_to_blame():
    ((other),) = bench.quadratics(1, task=Spoilt)
    for agent, k in ((3, 6), (2, 7)):
        said = Case().explained(Trouble("y", agent, k, of_point=False), (3, other))
        assert "likely, in this order: a step that is too long (step_y = 0.05, step_x" in said
        assert "a loss without a finite gradient" in causes(said)[-1]


def test_code_that_fails_when_asked_again_does_not_hide_the_trouble():
    ((other),) = bench.quadratics(1, task=Failing)
    said = Case().explained(Trouble("x", 2, 7, of_point=True), (2, other))
    assert "x itself on agent 2 was first not finite in iteration 7; likely" in said


def test_half_precision_messages_are_named():
    said = Case(wire="fp16").explained(Trouble("x", 0, 3, of_point=False))
    assert "wire = fp16, in which 65504" in causes(said)[0]
    assert "fp16" not in Case(wire="bf16").explained(Trouble("x", 0, 3, of_point=False))


def test_what_the_rows_showed_before_decides_what_comes_first():
    trouble = Trouble("y", 0, 30, of_point=False)
    options = {"compressor": "top-k", "gamma_c": 1.0}
    assert "top-k" not in causes(Case(**options).explained(trouble))[0]
    case = Case(**options)
    exploding(case, "y")
    error = together(
        1, lambda tally: case.diagnosis.explain(NotFiniteError(trouble), tally.agent, tally)
    )
    assert "top-k" in causes(str(error[0]))[0]


@pytest.mark.parametrize("name", ["d-psgd", "gossip-dsbo", "sparkle-gt", "dsgda-gt", "meha"])
def test_every_kind_of_method_has_an_explanation(name):
    case = Case()
    case.config = resolve(
        Request(flags={"task": {"name": "quadratic"}, "algorithm": {"name": name}})
    )
    case.algorithm = bench.build(name, 1 if name == "meha" else AGENTS)
    said = case.explained(Trouble("y", 0, 3, of_point=False))
    assert "a step that is too long (step_y = " in said

"""Every built-in task is what ``tasks.base.Task`` says, as ``sundsbo-mpi task check`` sees it."""

import pytest

from sundsbo_mpi.taskcheck import Verdict, check_task
from sundsbo_mpi.tasks import TASKS

VARIANTS = {
    "hyper-cleaning": [("task.hidden=20",)],
    "hyper-representation": [("task.hidden=20",)],
    "hyperparameter": [("task.dataset=digits",), ("task.features=7", "task.train=400")],
    "meta-learning": [("task.channels=4", "task.pool=8", "task.evaluation_tasks=5")],
    "quadratic": [("task.noise=0.5",), ()],
}
"""Settings, small where the size says nothing; a task that is not named is checked as it is."""

EVERY = [(name, sets) for name in TASKS for sets in VARIANTS.get(name, [()])]


NAMES = ["-".join([name, *sets]) for name, sets in EVERY]


@pytest.mark.parametrize(("name", "sets"), EVERY, ids=NAMES)
def test_it_passes(name, sets):
    findings = check_task(name, 3, sets)
    assert not [f for f in findings if f.verdict is Verdict.FAIL]
    remarked = {f.what for f in findings if f.verdict is Verdict.REMARK}
    # Exact gradients have one batch.
    assert remarked <= ({"sample"} if name == "toy" or (name, sets) == ("quadratic", ()) else set())

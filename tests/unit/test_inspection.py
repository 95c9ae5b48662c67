import bench
import numpy as np
import pytest
import torch
from together import complaints

from sundsbo_mpi.errors import AgreedError, UsageError
from sundsbo_mpi.measuring.metrics import report
from sundsbo_mpi.running.inspection import construct, inspect_task


class Good:
    """A task that is what it must be; the tests break one thing at a time."""

    sizes = {"x": 2, "y": 3}  # noqa: RUF012  (as a user would write it)

    def __init__(self, *, agent, agents, seed):
        self.agent = agent

    def start(self):
        return torch.zeros(2), torch.zeros(3)

    def sample(self, k, draw=0):
        return 1.0

    def upper(self, x, y, batch):
        return (x.sum() - 1) ** 2 + batch * y.square().sum()

    def lower(self, x, y, batch):
        return (y.sum() - x.sum()) ** 2

    def report(self, x, y):
        return {"loss": 1.0, "share": (1.0, 2)}


def said_of(what, **broken):
    """Break members of the second of two agents; return what both are told."""
    good = {"agents": 2, "seed": 0}
    tasks = [Good(agent=i, **good) for i in range(2)]
    for name, member in broken.items():
        setattr(tasks[1], name, member)
    return complaints(2, lambda tally: what(tally, tasks[tally.agent]), AgreedError)


def inspected(tally, task):
    inspect_task(tally, task, bench.CPU, torch.float32)


def test_a_good_task_passes():
    assert said_of(inspected) == [None, None]


BROKEN = [
    ("no mapping", {"sizes": None}, "sizes are None: expected"),
    ("no y", {"sizes": {"x": 2}}, "sizes are"),
    ("zero", {"sizes": {"x": 0, "y": 3}}, "integers above 0"),
    ("three", {"start": lambda: (torch.zeros(2),) * 3}, r"start\(\) .* expected \(x, y\)"),
    ("list", {"start": lambda: [0.0, 0.0]}, r"returns list: expected \(x, y\)"),
    (
        "length",
        {"start": lambda: (torch.zeros(2), torch.zeros(4))},
        r"expected shape \(3,\), .*sizes\['y'\] = 3 agree",
    ),
    ("dtype", {"start": lambda: (torch.zeros(2).double(), torch.zeros(3))}, "expected shape"),
    ("nan", {"start": lambda: (torch.zeros(2), torch.full((3,), torch.nan))}, "not finite"),
    ("grad", {"start": lambda: (torch.zeros(2, requires_grad=True), torch.zeros(3))}, "gradients"),
    ("apart", {"start": lambda: (torch.ones(2), torch.zeros(3))}, "must be equal on all agents"),
    ("vector", {"upper": lambda x, y, batch: x * 2}, r"upper\(\) .* expected a scalar tensor"),
    ("float", {"lower": lambda x, y, batch: 1.0}, r"lower\(\) .* float: expected a scalar"),
]


@pytest.mark.parametrize(("broken", "words"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_what_a_task_lacks_is_said_to_all(broken, words):
    first, second = said_of(inspected, **broken)
    assert first == second
    with pytest.raises(UsageError, match=words):
        raise UsageError(first)


def test_losses_that_depend_on_nothing_anywhere_are_refused():
    def constant(*_):
        return torch.zeros(())

    assert said_of(inspected, upper=constant) == [None, None]  # an agent without validation data

    def both(tally, task):
        task.upper = constant
        inspected(tally, task)

    assert all("upper() of the task depends on neither x nor y" in said for said in said_of(both))


def test_a_constructor_that_takes_no_keywords_is_refused():
    class Positional:
        def __init__(self, agent):
            pass

    with pytest.raises(UsageError, match="must take agent, agents, seed"):
        construct(Positional, {"agent": 0, "agents": 1, "seed": 0})


ODD = [None, ["a"], {"loss": "3"}, {"loss": torch.ones(2)}, {"loss": (1, 2, 3)}, {1: 2.0}]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_report_of_another_form_is_refused(odd):
    w = {"x": torch.zeros(2), "y": torch.zeros(3)}
    first, second = said_of(lambda t, task: report(t, task, w, w), report=lambda x, y: odd)
    assert first == second
    assert "the task's report" in first


def test_scalars_of_all_kinds_are_floats():
    w = {"x": torch.zeros(2), "y": torch.zeros(3)}
    values = {"a": np.float32(1), "b": torch.tensor(2.0), "c": np.array(3.0), "d": 4}

    def work(tally, task):
        task.report = lambda x, y: values
        found = report(tally, task, w, w)
        assert [found[name] for name in values] == [1.0, 2.0, 3.0, 4.0]

    assert said_of(work) == [None, None]

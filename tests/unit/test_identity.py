"""Which settings make two runs the same."""

import pytest

from sundsbo_mpi.config.identity import identity, same_task
from sundsbo_mpi.config.resolving import Request, resolve


def of(*sets):
    return identity(resolve(Request(sets=sets)).as_dict())


def test_where_and_how_safely_it_runs_does_not_count():
    usual = of()
    for text in ("run.device=cpu", "run.on_nan=skip", "output.file=a.h5", "task.data_dir=there"):
        assert of(text) == usual
    assert of("topology.file=here/ring.npz") == of("topology.file=there/ring.npz")
    assert of("run.seed=1") != usual
    assert of("topology.file=ring.npz") != of("topology.file=path.npz")


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [
        ("mine.py:Task", "../there/mine.py:Task", True),
        ("mine.py:Task", "mine.py:Other", False),
        ("mine.py:Task", "yours.py:Task", False),
        ("package.tasks:Task", "tasks:Task", False),
        ("toy", "toy", True),
        ("toy", None, False),
    ],
)
def test_a_task_file_may_lie_elsewhere(name, other, same):
    assert same_task(name, other) is same

"""What a task raises is its own, whatever it calls it."""

import pytest
import torch
from bench import quadratics
from together import together

from sundsbo_mpi.comm.agreement import jointly
from sundsbo_mpi.errors import AgreedError, DivergedError, UsageError
from sundsbo_mpi.running.guarding import call_alone, guarded


class Pretending:
    """A task that raises what only all ranks together may."""

    def __init__(self, error=None):
        if error is not None:
            raise error
        self.sizes = {"x": 1, "y": 2}

    def start(self):
        raise DivergedError("too far")

    def report(self, x, y):
        raise AgreedError(f"bad {x} {y}")

    def sample(self, k, draw=0):
        raise ZeroDivisionError(k, draw)

    @property
    def reference(self):
        raise DivergedError("nowhere")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda task: task.start(), "too far"),
        (lambda task: task.report(1, y=2), "bad 1 2"),
        (lambda task: hasattr(task, "reference"), "nowhere"),
        (lambda _: call_alone(Pretending, AgreedError("made")), "made"),
    ],
)
def test_no_rank_leaves_alone_on_an_error_of_all(call, words):
    with pytest.raises(UsageError, match=words) as caught:
        call(guarded(Pretending()))
    assert type(caught.value) is UsageError
    assert isinstance(caught.value.__cause__, AgreedError | DivergedError)


def test_one_that_all_hear_of_is_refused_on_all():
    tasks = [guarded(quadratics(2)[0]), guarded(Pretending())]

    def begin(tally):
        with pytest.raises(AgreedError, match="too far"):
            jointly(tally, tasks[tally.agent].start)

    together(2, begin)


def test_other_errors_and_members_are_as_they_were():
    task = guarded(Pretending())
    with pytest.raises(ZeroDivisionError) as caught:
        task.sample(3, draw=4)
    assert caught.value.args == (3, 4)
    assert task.sizes == {"x": 1, "y": 2}
    assert not hasattr(task, "saddle")
    plain = quadratics(3)[1]
    x, y = plain.start()
    for name in ("upper", "lower"):
        expected = getattr(plain, name)(x, y, plain.sample(5))
        assert torch.equal(getattr(guarded(plain), name)(x, y, guarded(plain).sample(5)), expected)

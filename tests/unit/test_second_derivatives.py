"""A method that needs second derivatives is not run where autograd has none, on any agent."""

import pytest
import torch
from together import complaints
from torch.autograd.function import once_differentiable

from sundsbo_mpi.algorithms import METHODS, by_default, second_order
from sundsbo_mpi.composition.directions import soba
from sundsbo_mpi.errors import AgreedError
from sundsbo_mpi.running.second_derivatives import inspect_twice, obstacle


def squaring(backward):
    """Return v -> v^2, entry by entry, with a backward of one's own."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return v.square()

    Square.backward = staticmethod(backward)
    return Square.apply


def sound(ctx, slope):
    return 2 * ctx.saved_tensors[0] * slope


def raising(ctx, slope):
    if torch.is_grad_enabled():
        raise RuntimeError("not\nimplemented")
    return sound(ctx, slope)


class Near:
    """y is to be near x; the tests square the distance in ways of their own."""

    def __init__(self, backward, middle=False):
        self._square, self._middle = squaring(backward), middle

    def start(self):
        return torch.full((2,), 0.5), torch.ones(2)

    def sample(self, k, draw=0):
        return None

    def upper(self, x, y, batch):
        return (y - 2).square().sum()

    def lower(self, x, y, batch):
        found = self._square(y - x).sum()
        return found.square() if self._middle else found


def hessian_vector_product(task):
    x, y = task.start()
    z = torch.tensor([1.0, 2.0])
    return soba(task, {"x": x, "y": y, "z": z}, None)["z"] - 2  # f_y is -2


MARKED = once_differentiable(sound)


@pytest.mark.parametrize("middle", [False, True])
def test_autograd_says_nothing_of_what_it_leaves_out(middle):
    """Why one has to look; should PyTorch say it one day, this module has less to do."""
    assert hessian_vector_product(Near(sound, middle)).abs().min() > 1
    assert hessian_vector_product(Near(MARKED, middle)).abs().max() == 0


def said(method, broken):
    """Return what two agents are told, of which the second one has the broken loss."""
    tasks = [Near(sound), broken]
    return complaints(2, lambda t: inspect_twice(t, tasks[t.agent], method), AgreedError)


@pytest.mark.parametrize("method", METHODS)
def test_methods_with_second_derivatives_are_refused_and_no_others(method):
    price = by_default(METHODS[method]).oracles
    first, second = said(method, Near(MARKED))
    assert first == second
    if price.hvp or price.jvp:
        assert f"{method} needs second derivatives of lower()" in first
        assert "the backward of Square is marked once_differentiable" in first
    else:
        assert first is None


@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.parametrize(
    ("backward", "words"),
    [
        (sound, ""),
        (MARKED, "the backward of Square is marked once_differentiable"),
        (raising, "it cannot be differentiated twice (not implemented)"),
    ],
)
def test_what_is_in_the_way_is_named(backward, middle, words):
    task = Near(backward, middle)
    assert obstacle(task, task.start()) == words


def test_what_does_not_lead_to_the_variables_is_not_in_the_way():
    class Aside(Near):
        def lower(self, x, y, batch):
            return (y - x).square().sum() * self._square(torch.ones(2)).sum()

    class Linear(Near):
        def lower(self, x, y, batch):
            return y.sum()  # no second derivatives, which is no fault of autograd's

    for task in (Aside(MARKED), Linear(sound)):
        assert obstacle(task, task.start()) == ""


def test_a_lack_of_memory_is_no_lack_of_derivatives():
    def exhausted(ctx, slope):
        raise torch.cuda.OutOfMemoryError("out of memory")

    task = Near(exhausted)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        obstacle(task, task.start())


def test_the_names_are_those_of_the_prices():
    assert {"sparkle-gt", "d-soba", "mdbo", "gossip-dsbo"} <= {*second_order()}
    assert not {"d-soba-fo", "sun-dsbo-gt", "meha", "d-psgd"} & {*second_order()}

"""The average of a round beside one formed exactly."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from sundsbo_mpi.comm.averaging import FEW, average_over
from sundsbo_mpi.topology import Links

SUMMING_TO_ONE = {
    "alone": [1.0],
    "one neighbour": [0.3, 0.7],
    "a ring": [1 / 3, 1 / 3, 1 / 3],
    "nothing of its own": [0.0, 0.25, 0.75],
    "mostly its own": [0.999, 0.0004, 0.0006],
    "a torus": [0.2] * 5,
}
WEIGHTS = SUMMING_TO_ONE | {"many": [0.05] * 20, "six digits": [0.333333] * 3}
DTYPES = torch.float32, torch.float64


def vectors(count, length, dtype):
    return torch.randn(count, length, generator=torch.Generator().manual_seed(length)).to(dtype)


def average(weights, vectors):
    links = Links(weights[0], dict(enumerate(weights[1:], 1)), ())
    return average_over(links)(vectors[0], list(vectors[1:]))


def exactly(weights, at):
    """Return the average of one coordinate."""
    return float(sum(Fraction(w) * Fraction(v) for w, v in zip(weights, at, strict=True)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 7, 16, 33, 1001])
@pytest.mark.parametrize("name", WEIGHTS)
def test_it_is_the_average_up_to_rounding(name, length, dtype):
    weights = WEIGHTS[name]
    sent = vectors(len(weights), length, dtype)
    found = average(weights, sent)
    assert (found.shape, found.dtype) == ((length,), dtype)
    at = sent.double()
    want = [exactly(weights, column) for column in at.T.tolist()]
    # In every step a weight, a difference, twice as large, and the result are rounded.
    bound = 5 * len(weights) * torch.finfo(dtype).eps / 2 * at.abs().amax(dim=0).numpy()
    assert (np.abs(found.double().numpy() - want) <= bound).all()


@pytest.mark.parametrize("count", [2, FEW + 1, FEW + 2, 200])
def test_the_news_of_late_neighbours_are_not_rounded_away(count):
    """One of them weighs little beside the mean of all before it, but they are many."""
    eps = torch.finfo(torch.float32).eps
    before = (1 + vectors(1, 2000, torch.float32).abs() / 4).repeat(count, 1)
    after = before.clone()
    after[count // 2 :] += 40 * eps
    weights = [1 / count] * count
    news = (average(weights, after) - average(weights, before)).double().mean() / eps
    assert abs(news - 40 * (1 - count // 2 / count)) <= 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SUMMING_TO_ONE)
def test_equal_vectors_have_themselves_as_average(name, dtype):
    (v,) = vectors(1, 1001, dtype)
    assert torch.equal(average(WEIGHTS[name], v.repeat(len(WEIGHTS[name]), 1)), v)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_number_does_not_depend_on_where_in_the_message_it_lies(name, dtype):
    sent = vectors(len(WEIGHTS[name]), 80_001, dtype)  # more than a thread does by itself
    whole = average(WEIGHTS[name], sent)
    for begin, end in ((0, 1), (3, 40), (5, 80_001), (79_990, 80_000)):
        cut = slice(begin, end)
        assert torch.equal(average(WEIGHTS[name], sent[:, cut]), whole[cut])


@pytest.mark.parametrize("name", WEIGHTS)
def test_it_is_a_new_tensor_and_changes_none(name):
    sent = vectors(len(WEIGHTS[name]), 50, torch.float32)
    kept = sent.clone()
    average(WEIGHTS[name], sent).fill_(float("nan"))
    assert torch.equal(sent, kept)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("name", ["a ring", "six digits"])
def test_what_is_not_finite_is_not_hidden(name, which, value):
    sent = vectors(3, 5, torch.float32)
    sent[which, 2] = value
    assert average(WEIGHTS[name], sent).isfinite().tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("name", ["a ring", "six digits"])
def test_a_neighbour_without_a_message_is_an_error(name):
    for count in (1, 2):
        with pytest.raises(ValueError, match="zip"):
            average(WEIGHTS[name], vectors(count, 5, torch.float32))

"""The weighted mean of a round beside one formed exactly."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from sundsbo_mpi.comm.weighted_mean import weighted_mean
from sundsbo_mpi.topology import Links

WEIGHTS = {
    "alone": [1.0],
    "one neighbour": [0.3, 0.7],
    "a ring": [1 / 3, 1 / 3, 1 / 3],
    "nothing of its own": [0.0, 0.25, 0.75],
    "mostly its own": [0.999, 0.0004, 0.0006],
    "many": [0.05] * 20,
    "six digits": [0.333333, 0.333333, 0.333333],
}


def vectors(count, length, dtype):
    return torch.randn(count, length, generator=torch.Generator().manual_seed(length)).to(dtype)


def links(weights):
    return Links(weights[0], dict(enumerate(weights[1:], 1)), ())


def exactly(weights, at):
    """Return the mean of one coordinate."""
    terms = [Fraction(w) * Fraction(v) for w, v in zip(weights, at, strict=True)]
    return float(sum(terms) / sum(map(Fraction, weights)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 7, 16, 33, 1001])
@pytest.mark.parametrize("name", WEIGHTS)
def test_it_is_the_mean_up_to_rounding(name, length, dtype):
    weights = WEIGHTS[name]
    own, *arrived = vectors(len(weights), length, dtype)
    mean = weighted_mean(links(weights), own, arrived)
    assert (mean.shape, mean.dtype) == (own.shape, dtype)
    at = torch.stack([own, *arrived]).double()
    want = [exactly(weights, column) for column in at.T.tolist()]
    # In every step a share, a difference, twice as large, and the result are rounded.
    bound = 5 * len(weights) * torch.finfo(dtype).eps / 2 * at.abs().amax(dim=0).numpy()
    assert (np.abs(mean.double().numpy() - want) <= bound).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", WEIGHTS)
def test_equal_vectors_have_themselves_as_mean(name, dtype):
    (own,) = vectors(1, 1001, dtype)
    arrived = [own.clone() for _ in WEIGHTS[name][1:]]
    assert torch.equal(weighted_mean(links(WEIGHTS[name]), own, arrived), own)


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_number_does_not_depend_on_where_in_the_message_it_lies(name):
    own, *arrived = vectors(len(WEIGHTS[name]), 1001, torch.float32)
    whole = weighted_mean(links(WEIGHTS[name]), own, arrived)
    for begin, end in ((0, 1), (3, 40), (5, 1001), (990, 1000)):
        cut = slice(begin, end)
        part = weighted_mean(links(WEIGHTS[name]), own[cut], [v[cut] for v in arrived])
        assert torch.equal(part, whole[cut])


@pytest.mark.parametrize("name", WEIGHTS)
def test_it_is_a_new_tensor_and_changes_none(name):
    own, *arrived = vectors(len(WEIGHTS[name]), 50, torch.float32)
    kept = [v.clone() for v in (own, *arrived)]
    weighted_mean(links(WEIGHTS[name]), own, arrived).fill_(float("nan"))
    assert all(map(torch.equal, (own, *arrived), kept))


@pytest.mark.parametrize("which", range(3))
def test_what_is_not_finite_is_not_hidden(which):
    sent = vectors(3, 5, torch.float32)
    sent[which, 2] = float("nan")
    assert weighted_mean(links(WEIGHTS["a ring"]), sent[0], list(sent[1:]))[2].isnan()


def test_a_neighbour_without_a_message_is_an_error():
    own, first = vectors(2, 5, torch.float32)
    for arrived in ([], [first]):
        with pytest.raises(ValueError, match="zip"):
            weighted_mean(links(WEIGHTS["a ring"]), own, arrived)

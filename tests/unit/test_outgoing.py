"""What is sent, written straight into a message."""

import pytest
import torch

from sundsbo_mpi.comm.writing import write
from sundsbo_mpi.outgoing import Difference, Outgoing


def vectors(count, length, dtype):
    return torch.randn(count, length, generator=torch.Generator().manual_seed(length)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("c", [1, 1.0, 0.1, -3.7])
@pytest.mark.parametrize("offset", [1, 3, 8, 64])
def test_a_difference_in_a_message_is_the_one_by_itself_bit_for_bit(dtype, c, offset):
    """Wherever in the message it begins, also where no vector register would."""
    for length in (1, 7, 64, 1001, 50_003):
        a, b, v = vectors(3, length, dtype)
        first = vectors(1, offset, dtype)[0]
        outgoing = Outgoing((first, Difference(a, c, b), Difference(Difference(a, -1, b), c, v), a))
        message = torch.full((offset + 3 * length,), float("nan"), dtype=dtype)
        write(outgoing.parts, message.split_with_sizes(outgoing.lengths))
        expected = first, a.sub(b, alpha=c), (a + b).sub(v, alpha=c), a
        assert torch.equal(message, torch.cat(expected))
        assert torch.equal(message, torch.cat(outgoing.tensors))


def test_the_shape_of_a_message_is_known_before_it_is_computed():
    a, b = vectors(2, 5, torch.float64)
    outgoing = Outgoing((Difference(a, 0.5, b), torch.zeros(2, dtype=torch.float64)))
    assert outgoing.lengths == (5, 2)
    assert outgoing.dtype == torch.float64
    nested = Outgoing((Difference(Difference(a, 1, b), 1, b),))
    assert (nested.lengths, nested.dtype) == ((5,), torch.float64)
    assert Outgoing((b.half(),)).dtype == torch.float16


def test_what_is_sent_is_left_as_it_was():
    sent = vectors(3, 9, torch.float32)
    kept = sent.clone()
    a, b, v = sent
    write((Difference(Difference(a, 2.0, b), 1, v),), [torch.empty(9)])
    assert torch.equal(sent, kept)

"""Small integers in few bits, and numbers as bytes: what a compressed message is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

LANES = 8
"""Codes of which one byte holds one bit each."""


def packed_size(length: int, bits: int) -> int:
    """Return the bytes of ``length`` codes: 8 codes take as many bytes as a code has bits."""
    return bits * -(-length // LANES)


def pack(codes: Tensor, bits: int) -> Tensor:
    """Return codes below 2^bits, uint8 of shape (d,), as ``packed_size(d, bits)`` bytes.

    The codes lie in 8 rows one after the other; bit j of byte c of plane t is bit t of the code in
    row j and column c.
    """
    import torch

    width = -(-len(codes) // LANES)
    rows = torch.nn.functional.pad(codes, (0, LANES * width - len(codes))).view(LANES, width)
    t, j = _places(codes, bits)
    return (((rows >> t) & 1) << j).sum(dim=1, dtype=torch.uint8).view(-1)


def unpack(message: Tensor, length: int, bits: int) -> Tensor:
    """Return the ``length`` codes that ``pack`` made bytes of."""
    import torch

    t, j = _places(message, bits)
    planes = message.view(bits, 1, -1)
    return (((planes >> j) & 1) << t).sum(dim=0, dtype=torch.uint8).view(-1)[:length]


def _places(like: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Return the numbers of planes and rows, to be combined with (plane, row, column)."""
    import torch

    numbers = torch.arange(LANES, dtype=torch.uint8, device=like.device)
    return numbers[:bits].view(-1, 1, 1), numbers.view(1, -1, 1)


def as_bytes(numbers: Tensor) -> Tensor:
    """Return the bytes of contiguous numbers of any dtype, uint8."""
    import torch

    return numbers.view(torch.uint8)


def from_bytes(message: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the numbers whose bytes these are, wherever in a message they stand."""
    return message.clone().view(dtype)  # a copy, since a view would have to be aligned

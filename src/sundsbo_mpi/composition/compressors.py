"""Compressors: vectors in fewer bytes, at the price of an error that the next message makes up for.

Each is a pair of pure functions.  Let Q be decode after encode.  For a finite v, ‖v - Q(v)‖ is at
most ‖v‖, up to the rounding of bfloat16, and less unless all that is sent is zero; by being sent
what is left, again and again, neighbours come to know all of v.  A number that is not finite shows
in Q(v) when it is sent: at once, but with random-k only when it is drawn.  Scales and values travel
as bfloat16, which has the range of float32.

Adding a compressor is one function and its line in COMPRESSORS; an option of its own is a field of
``Coarseness``, which all methods then have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sundsbo_mpi.composition.packing import as_bytes, from_bytes, pack, packed_size, unpack
from sundsbo_mpi.options import require_integer, require_positive
from sundsbo_mpi.randomness import Stream, generator

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Key: TypeAlias = tuple[int, ...]
"""The seed of the run and what a vector is: iteration, round and place in the message."""
INDEX_BYTES, VALUE_BYTES = 4, 2


class Compressor(NamedTuple):
    """One way to send a vector."""

    size: Callable[[int], int]
    """Bytes of a vector of d numbers."""
    encode: Callable[[Tensor, Key], Tensor]
    """(v of shape (d,), key) -> ``size(d)`` bytes, uint8."""
    decode: Callable[[Tensor, int, Key], Tensor]
    """(bytes, d, key) -> Q(v), float32 of shape (d,), the same bits wherever it is computed."""


@dataclass(frozen=True)
class Coarseness:
    """The options of compressors.

    Args:
        bits: Bits of each number that the quantiser sends.
        block: Numbers that share a scale, sent by the quantiser.
        fraction: Share of a vector's numbers that the other compressors send.
    """

    bits: int = 3
    block: int = 512
    fraction: float = 0.1

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require_integer("algorithm.bits", self.bits, 2, 8)
        require_integer("algorithm.block", self.block, 1)
        require_positive("algorithm.fraction", self.fraction, 1)


def quantiser(coarseness: Coarseness) -> Compressor:
    """Round every number to one of 2^bits - 1 multiples of its block's scale.

    For a block of ``block`` numbers with s the largest ``|v_j|`` and m = 2^(bits-1) - 1,

        Q(v)_j = (s / m) round(m v_j / s)

    s / m travels as bfloat16 and every multiple in ``bits`` bits: 2 ceil(d / block) +
    bits ceil(d / 8) bytes.  Zero is among the multiples, so of no number more is left than it was.
    """
    bits, block = coarseness.bits, coarseness.block
    most = 2 ** (bits - 1) - 1

    def scale_bytes(d: int) -> int:
        return VALUE_BYTES * -(-d // block)

    def encode(v: Tensor, _key: Key) -> Tensor:
        import torch

        blocks = torch.nn.functional.pad(v, (0, -len(v) % block)).view(-1, block)
        scales = (blocks.abs().amax(dim=1) / most).bfloat16()
        # A block of zeros has 0 / 0, and one that is not finite needs a code all the same.
        multiples = (blocks / scales.to(v.dtype)[:, None]).nan_to_num_(0.0).round_()
        codes = multiples.clamp_(-most, most).add_(most).to(torch.uint8).view(-1)[: len(v)]
        return torch.cat([as_bytes(scales), pack(codes, bits)])

    def decode(message: Tensor, d: int, _key: Key) -> Tensor:
        import torch

        scales = from_bytes(message[: scale_bytes(d)], torch.bfloat16).float()
        v = unpack(message[scale_bytes(d) :], d, bits).float().sub_(most)
        whole = d - d % block
        v[:whole].view(-1, block).mul_(scales[: d // block, None])
        v[whole:].mul_(scales[-1])
        return v

    return Compressor(lambda d: scale_bytes(d) + packed_size(d, bits), encode, decode)


def top_k(coarseness: Coarseness) -> Compressor:
    """Send the k = ceil(fraction d) numbers that are largest in absolute value.

    Where they stand takes 32 bits each, or d bits for all where that is less; values take 2 bytes.
    """

    def as_map(d: int) -> bool:
        return packed_size(d, 1) < INDEX_BYTES * kept(d, coarseness)

    def index_bytes(d: int) -> int:
        return packed_size(d, 1) if as_map(d) else INDEX_BYTES * kept(d, coarseness)

    def encode(v: Tensor, _key: Key) -> Tensor:
        import torch

        # To torch NaN is larger than any number.
        places = v.abs().topk(kept(len(v), coarseness)).indices.sort().values
        where = places.int()
        if as_map(len(v)):
            where = pack(torch.zeros_like(v, dtype=torch.uint8).index_fill_(0, places, 1), 1)
        return torch.cat([as_bytes(where), as_bytes(v[places].bfloat16())])

    def decode(message: Tensor, d: int, _key: Key) -> Tensor:
        import torch

        where, values = message[: index_bytes(d)], message[index_bytes(d) :]
        if as_map(d):
            places = unpack(where, d, 1).nonzero().view(-1)
        else:
            places = from_bytes(where, torch.int32).long()
        return _scatter(places, values, d)

    return Compressor(lambda d: index_bytes(d) + VALUE_BYTES * kept(d, coarseness), encode, decode)


def random_k(coarseness: Coarseness) -> Compressor:
    """Send k = ceil(fraction d) numbers, the same on all agents, drawn anew for every message.

    Which they are follows from the key and does not travel; values take 2 bytes.
    """

    @lru_cache(maxsize=8)  # the tensors of a message, each read once for every neighbour
    def places(d: int, key: Key, device: torch.device) -> Tensor:
        import torch

        seed, *rest = key
        rng = generator(seed, Stream.COMPRESSION, *rest)
        drawn = rng.choice(d, kept(d, coarseness), replace=False, shuffle=False)
        return torch.from_numpy(drawn).to(device)

    def encode(v: Tensor, key: Key) -> Tensor:
        return as_bytes(v[places(len(v), key, v.device)].bfloat16())

    def decode(message: Tensor, d: int, key: Key) -> Tensor:
        return _scatter(places(d, key, message.device), message, d)

    return Compressor(lambda d: VALUE_BYTES * kept(d, coarseness), encode, decode)


def kept(d: int, coarseness: Coarseness) -> int:
    """Return how many of d numbers are sent, at least one."""
    return math.ceil(coarseness.fraction * d)


def _scatter(places: Tensor, values: Tensor, d: int) -> Tensor:
    """Return zeros of shape (d,) with bfloat16 values, given as bytes, at their places."""
    import torch

    v = torch.zeros(d, dtype=torch.float32, device=values.device)
    return v.index_copy_(0, places, from_bytes(values, torch.bfloat16).float())


class Offer(NamedTuple):
    """A line of COMPRESSORS."""

    build: Callable[[Coarseness], Compressor]
    gamma_c: float
    """The share of the way to the neighbours' average that is gone, unless the user says."""
    dense: bool
    """Whether every message tells something of every number, as EXTRA and ED need it."""
    options: tuple[str, ...]
    """Which of the fields of ``Coarseness`` it heeds."""


COMPRESSORS: Mapping[str, Offer] = {
    "quantiser": Offer(quantiser, gamma_c=0.6, dense=True, options=("bits", "block")),
    "top-k": Offer(top_k, gamma_c=0.3, dense=False, options=("fraction",)),
    "random-k": Offer(random_k, gamma_c=0.1, dense=False, options=("fraction",)),
}

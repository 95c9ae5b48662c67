"""What a method hands to the network in one round, and what it expects back.

Both sides know this much of each other and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def nothing() -> None:
    """Stand for local work where there is none to do."""


def as_sent(message: Tensor) -> Tensor:
    """Stand for the reading of a message that is the vector itself."""
    return message


@dataclass(frozen=True, slots=True)
class Difference:
    """The vector a - c b, computed when it is written and where: into the message itself.

    To compute it first and copy it then would move the vector through memory once more in every
    round.  All tensors are flat, of one length, dtype and device; a may be such a vector itself,
    and with c = -1 it is a sum.
    """

    a: Part
    c: float
    b: Tensor

    @property
    def tensor(self) -> Tensor:
        """The vector by itself."""
        return _vector(self.a).sub(self.b, alpha=self.c)

    def numel(self) -> int:
        """Return how many numbers it has, as a tensor does."""
        return self.b.numel()


Part: TypeAlias = "Tensor | Difference"
"""A vector that is sent."""


def _vector(part: Part) -> Tensor:
    return part.tensor if isinstance(part, Difference) else part


class Outgoing(NamedTuple):
    """One message to all neighbours; its sender is handed sum_j w_ij decode(m_j), cut up again."""

    parts: tuple[Part, ...]
    """Flat vectors of one dtype and device, of the same lengths on all agents: with their ends
    joined they are the message m_i."""
    meanwhile: Callable[[], object] = nothing
    """Local work that does not need the answer: it may be done while the message travels, and so
    may be called once or not at all."""
    decode: Callable[[Tensor], Tensor] = as_sent
    """Turns a whole message into the vector that it stands for, in the dtype of the average."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The parts, computed if they are not yet."""
        return tuple(_vector(v) for v in self.parts)

    @property
    def dtype(self) -> torch.dtype:
        """The message's dtype."""
        first = self.parts[0]
        return (first.b if isinstance(first, Difference) else first).dtype

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many numbers every part has."""
        return tuple([v.numel() for v in self.parts])

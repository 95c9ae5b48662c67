"""What a method hands to the network in one round, and what it expects back.

Both sides know this much of each other and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


def nothing() -> None:
    """Stand for local work where there is none to do."""


def as_sent(message: Tensor) -> Tensor:
    """Stand for the reading of a message that is the vector itself."""
    return message


class Outgoing(NamedTuple):
    """One message to all neighbours; its sender is handed sum_j w_ij decode(m_j), cut up again."""

    tensors: tuple[Tensor, ...]
    """Flat tensors of one dtype and device, of the same lengths on all agents: with their ends
    joined they are the message m_i."""
    meanwhile: Callable[[], object] = nothing
    """Local work that does not need the answer: it may be done while the message travels, and so
    may be called once or not at all."""
    decode: Callable[[Tensor], Tensor] = as_sent
    """Turns a whole message into the vector that it stands for, in the dtype of the average."""

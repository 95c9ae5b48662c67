"""Messages in half as many bytes: numbers travel as 16-bit floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.composition.wrapped import Wrapped, relayed
from sundsbo_mpi.errors import unknown
from sundsbo_mpi.outgoing import Outgoing

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.algorithm import State
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds
    from sundsbo_mpi.tasks.base import Task

WIRE_DTYPES = {"fp16": "float16", "bf16": "bfloat16"}
"""Names and their dtypes: fp16 is finer, bf16 reaches as far as float32."""
WIRE_BYTES = 2


@dataclass(frozen=True)
class Rounded(Wrapped):
    """A method that is answered, where it yields v, with v_i + sum_j w_ij Q(v_j) - Q(v_i).

    Q rounds to a 16-bit float, moved as a 16-bit integer.  The columns of W sum to one, so the
    agents' mean of the answers is that of v, and what a method conserves is conserved; what agents
    differ by is mixed down to about the rounding of v (relatively 2^-11 with fp16 and 2^-8 with
    bf16) and no further.  Nothing is remembered, so W may change.  Numbers beyond the range of the
    dtype (65,504 for fp16) travel as its largest.

    Args:
        method: The method.
        wire: A name of ``WIRE_DTYPES``.

    Raises:
        UsageError: there is no such dtype.
    """

    wire: str

    def __post_init__(self) -> None:
        """Refuse an unknown dtype."""
        if self.wire not in WIRE_DTYPES:
            raise unknown("wire dtype", self.wire, WIRE_DTYPES)

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Do the method's step with every message rounded."""
        return (yield from relayed(self.method.step(task, k, w, state), self._exchange))

    def _exchange(self, outgoing: Outgoing) -> Rounds[tuple[Tensor, ...]]:
        import torch

        half = getattr(torch, WIRE_DTYPES[self.wire])
        v = torch.cat(outgoing.tensors)
        most = torch.finfo(half).max
        message = v.clamp(-most, most).to(half).view(torch.int16)  # NaN stays NaN
        decode = partial(_decode, half, v.dtype)
        (mixed,) = yield Outgoing((message,), outgoing.meanwhile, decode)
        answer: Tensor = v + (mixed - decode(message))
        return answer.split_with_sizes(outgoing.lengths)


def _decode(half: Any, dtype: Any, message: Tensor) -> Tensor:
    return message.view(half).to(dtype)

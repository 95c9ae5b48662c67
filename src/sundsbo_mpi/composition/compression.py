"""Compressed gossip with error feedback: any method with far fewer bytes per round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi.composition.wrapped import Wrapped, relayed
from sundsbo_mpi.outgoing import Outgoing

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.algorithm import State
    from sundsbo_mpi.composition.compressors import Compressor, Key
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds
    from sundsbo_mpi.tasks.base import Task


class Replica(NamedTuple):
    """What an agent remembers of one round of an iteration, from one iteration to the next.

    In float64, whatever the dtype of v.
    """

    v_hat: Tensor
    """v̂_i, the sum of all that it has sent: what its neighbours know of its v."""
    gap: Tensor
    """sum_j w_ij v̂_j - v̂_i."""


class Feedback(NamedTuple):
    """The estimator's memory of a compressed method."""

    estimate: Any
    """That of the method itself."""
    replicas: tuple[Replica, ...]
    """One for each round of an iteration; zero before the first iteration."""


@dataclass(frozen=True)
class Compressed(Wrapped):
    """A method that is answered, where it yields v, with about (1 - γ_c) v + γ_c W v.

    In the r-th round of every iteration, with replicas that start at zero,

        q_i = Q(v_i - v̂_i)                                  what travels
        v̂_i <- v̂_i + q_i
        e_i <- e_i + sum_j w_ij q_j - q_i                    = sum_j w_ij v̂_j - v̂_i
        answer  v_i + γ_c e_i

    The columns of W sum to one, so the agents' mean of the answers is that of v, and what a method
    conserves is conserved.  W must not change.  Each tensor of a message is compressed on its own;
    the message is the bytes of all.  An agent needs two more vectors, of float64, as long as what
    it sends in an iteration.

    Args:
        method: The method; the outermost, with all its rounds.
        compressor: Q.
        gamma_c: γ_c, above 0 and at most 1.
        seed: Of what the compressor draws.

    Source: Koloskova, Stich and Jaggi, 2019, arXiv 1902.00340 (CHOCO-Gossip).

    Differences from the source:
        1. It compresses the iterate of SGD; here every vector that a method sends has its replica,
           the gradient trackers too, as in compressed gradient tracking (Liao, Li, Huang and Pu,
           2022, arXiv 2103.13748).
        2. The difference e_i is kept in place of sum_j w_ij v̂_j: it vanishes as the agents come to
           agree, and with it what rounding does to their mean.
        3. v̂_i and e_i are kept, and q_j averaged, in float64: what rounding leaves in the sum of
           the e_i stays there, so that in K iterations a gradient tracker's mean strays by some
           K^1.5 roundings, which in float32 would be seen.
    """

    compressor: Compressor
    gamma_c: float
    seed: int = 0

    def start(self, task: Task) -> tuple[Variables, State]:
        """Return the start of the method: nobody has sent anything."""
        w, state = self.method.start(task)
        return w, self._unheard(w, state)

    def anew(self, w: Variables, state: State) -> State:
        """Return the state with which the method goes on over other links: all is told again."""
        before = state.estimate.estimate
        return self._unheard(w, self.method.anew(w, state._replace(estimate=before)))

    def _unheard(self, w: Variables, state: State) -> State:
        """Return the method's state with replicas of agents that have sent nothing."""
        import torch

        like = next(iter(w.values()))
        nothing = [
            like.new_zeros(sum(sent), dtype=torch.float64) for sent in self.lengths(w, state)
        ]
        replicas = tuple(Replica(zeros, zeros) for zeros in nothing)
        return state._replace(estimate=Feedback(state.estimate, replicas))

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Do the method's step; its rounds are answered through the replicas."""
        before, replicas = state.estimate
        after: list[Replica] = []

        def exchange(outgoing: Outgoing) -> Rounds[tuple[Tensor, ...]]:
            r = len(after)
            answer, replica = yield from self._exchange(outgoing, replicas[r], (self.seed, k, r))
            after.append(replica)
            return answer

        step = self.method.step(task, k, w, state._replace(estimate=before))
        w, state = yield from relayed(step, exchange)
        return w, state._replace(estimate=Feedback(state.estimate, tuple(after)))

    def _exchange(
        self, outgoing: Outgoing, replica: Replica, key: Key
    ) -> Rounds[tuple[tuple[Tensor, ...], Replica]]:
        """Do one round."""
        import torch

        lengths, v = outgoing.lengths, torch.cat(outgoing.tensors)
        news = (v - replica.v_hat).to(v.dtype).split_with_sizes(lengths)
        message = torch.cat(
            [self.compressor.encode(part, (*key, t)) for t, part in enumerate(news)]
        )
        decode = partial(self._decode, lengths, key)
        own = cache(partial(decode, message))  # as all others read it

        def read(any_message: Tensor) -> Tensor:
            return own() if torch.equal(any_message, message) else decode(any_message)

        (mixed,) = yield Outgoing((message,), _both(outgoing.meanwhile, own), read)
        q = own()
        replica = Replica(replica.v_hat + q, replica.gap + (mixed - q))
        return v.add_(replica.gap, alpha=self.gamma_c).split_with_sizes(lengths), replica

    def _decode(self, lengths: tuple[int, ...], key: Key, message: Tensor) -> Tensor:
        """Return the vector that a message stands for, in float64."""
        import torch

        parts = torch.split(message, [self.compressor.size(d) for d in lengths])
        decoded = [
            self.compressor.decode(part, d, (*key, t))
            for t, (part, d) in enumerate(zip(parts, lengths, strict=True))
        ]
        return torch.cat(decoded).to(torch.float64)

    def defect(
        self, k: int, w_next: Variables, w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Return the invariants of the method, which are its own to the rounding."""
        return self.method.defect(k, w_next, w, state._replace(estimate=state.estimate.estimate))


def _both(*works: Callable[[], object]) -> Callable[[], None]:
    """Return the work of doing all of ``works``."""

    def work() -> None:
        for each in works:
            each()

    return work

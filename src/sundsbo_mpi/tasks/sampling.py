"""Minibatches, each a function of the seed, the agent and the iteration."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.randomness import generator

if TYPE_CHECKING:
    import numpy.typing as npt

    from sundsbo_mpi.randomness import Stream


class Epochs:
    """Minibatches cut one after the other from an endless row of shuffled epochs.

    Batch k holds the places k b, ..., (k + 1) b - 1 of the row pi_0, pi_1, ..., where pi_e is a
    random permutation of the samples: every sample comes once per epoch, and none is left out when
    b does not divide their number.  Each draw within an iteration has a row of its own.

    Args:
        samples: Number of samples of the agent.
        batch: Number b of samples in a minibatch; it may exceed ``samples``.
        seed: The seed of the run.
        agent: The agent's rank.
        stream: Distinguishes rows of one agent, such as training and validation.
    """

    REMEMBERED = 4
    """Permutations kept: two (a batch may straddle epochs) for each of two draws."""

    def __init__(self, samples: int, batch: int, *, seed: int, agent: int, stream: Stream) -> None:
        self.samples = samples
        self.batch = batch
        self._seed = seed
        self._agent = agent
        self._stream = stream
        self._permutations: OrderedDict[tuple[int, int], npt.NDArray[np.int64]] = OrderedDict()

    def indices(self, k: int, draw: int = 0) -> npt.NDArray[np.int64]:
        """Return the indices, shape (batch,), of the samples in batch k of a draw."""
        epoch, within = divmod(k * self.batch, self.samples)
        pieces: list[npt.NDArray[np.int64]] = []
        missing = self.batch
        while missing:
            pieces.append(self._permutation(draw, epoch)[within : within + missing])
            missing -= len(pieces[-1])
            epoch, within = epoch + 1, 0
        return np.concatenate(pieces)

    def _permutation(self, draw: int, epoch: int) -> npt.NDArray[np.int64]:
        key = (draw, epoch)
        if key not in self._permutations:
            rng = generator(self._seed, self._stream, self._agent, draw, epoch)
            self._permutations[key] = rng.permutation(self.samples)
            if len(self._permutations) > self.REMEMBERED:
                self._permutations.popitem(last=False)
        return self._permutations[key]

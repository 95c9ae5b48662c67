"""A fully connected network whose parameters are one flat vector."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import linear

if TYPE_CHECKING:
    from torch import Tensor


class MLP:
    """Layers h <- relu(A h + b), the last one without relu.

    The flat vector holds A and b of the first layer, then of the second, and so on.

    Args:
        widths: Number of inputs, of units in each hidden layer, and of outputs.
    """

    def __init__(self, *widths: int) -> None:
        self._layers = list(pairwise(widths))
        self._shapes = [shape for i, o in self._layers for shape in ((o, i), (o,))]
        self._lengths = [math.prod(shape) for shape in self._shapes]
        self.size = sum(self._lengths)
        """Number of parameters."""

    def initial(self, rng: np.random.Generator) -> Tensor:
        """Draw parameters as ``torch.nn.Linear`` does: uniform in +-1/sqrt(inputs), float64."""
        pieces = [
            rng.uniform(-(inputs**-0.5), inputs**-0.5, (inputs + 1) * outputs)
            for inputs, outputs in self._layers
        ]
        return torch.from_numpy(np.concatenate(pieces))

    def __call__(self, parameters: Tensor, inputs: Tensor) -> Tensor:
        """Return the outputs, (samples, last width), for inputs of shape (samples, first width)."""
        # One split: the gradient of a slice per layer would allocate the whole vector each time.
        pieces = torch.split(parameters, self._lengths)
        layers = [piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]
        hidden = inputs
        for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
            hidden = linear(hidden, weight, bias).relu()
        return linear(hidden, layers[-2], layers[-1])

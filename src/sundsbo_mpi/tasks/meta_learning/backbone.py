"""The 4-layer convolutional backbone of meta-learning, its parameters one flat vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import batch_norm, conv2d, max_pool2d, pad

if TYPE_CHECKING:
    from torch import Tensor

LAYERS = 4

MOST_CHANNELS = 1_000
"""Of each layer; a layer's parameters grow with their square."""


class Backbone:
    """Four layers of convolution, normalisation, ReLU and pooling, applied to each task alone.

    A layer is, with * a 3 x 3 convolution and N the normalisation over the images and places of
    one task, for every channel,

        h <- pool(relu(scale N(A * h) + shift)),   N(u) = (u - mean(u)) / sqrt(var(u) + 1e-5)

    The pooling takes the largest of 2 x 2 values, and is left out of a layer whose images are less
    than two pixels high or wide.  The flat vector holds A, scale and shift of the first layer, then
    of the second, and so on.

    The mean and the variance are those of the images at hand: there are no running statistics, so
    the features are a function of parameters and images alone, and those of a task do not depend
    on which tasks share its batch.  The convolutions have no bias, which N would remove.

    Args:
        shape: Channels, height and width of an image.
        channels: Channels of every layer.
    """

    def __init__(self, shape: tuple[int, int, int], channels: int) -> None:
        depth, height, width = shape
        self._inputs = (depth, *[channels] * (LAYERS - 1))
        self._channels = channels
        self._lengths = [n for i in self._inputs for n in (channels * i * 9, channels, channels)]
        self._pooled = []
        for _ in range(LAYERS):
            self._pooled.append(min(height, width) >= 2)
            if self._pooled[-1]:
                height, width = height // 2, width // 2
        self.size = sum(self._lengths)
        """Number of parameters."""
        self.features = channels * height * width + 1
        """Number of features of an image, the constant one included."""

    def initial(self, rng: np.random.Generator) -> Tensor:
        """Draw A as ``torch.nn.Conv2d`` does, uniform in +-1/sqrt(9 inputs); scale 1, shift 0."""
        pieces = []
        for inputs in self._inputs:
            bound = (9 * inputs) ** -0.5
            pieces.append(rng.uniform(-bound, bound, 9 * inputs * self._channels))
            pieces.append(np.repeat([1.0, 0.0], self._channels))
        return torch.from_numpy(np.concatenate(pieces))

    def __call__(self, parameters: Tensor, images: Tensor) -> Tensor:
        """Return the features of each task's images.

        Args:
            parameters: The flat vector, shape (size,).
            images: Shape (images of a task, tasks, channels, height, width).

        Returns:
            Shape (tasks, images of a task, features); the last feature is 1, whose weight in a
            linear head is the head's bias.
        """
        number, tasks = images.shape[:2]
        pieces = torch.split(parameters, self._lengths)
        hidden = images.flatten(0, 1)
        layers = zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
        for (weight, scale, shift), inputs, pooled in zip(
            layers, self._inputs, self._pooled, strict=True
        ):
            hidden = conv2d(hidden, weight.view(-1, inputs, 3, 3), padding=1)
            # The channels of each task side by side, so that each task has its own statistics.
            apart = hidden.view(number, -1, *hidden.shape[2:])
            apart = batch_norm(apart, None, None, scale.repeat(tasks), shift.repeat(tasks), True)
            hidden = apart.view_as(hidden)
            hidden = (max_pool2d(hidden, 2) if pooled else hidden).relu()  # in either order
        return pad(hidden.view(number, tasks, -1).transpose(0, 1), (0, 1), value=1.0)

"""Networks without state, whose parameters are one flat vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import torch
from torch.nn.functional import conv2d, linear, max_pool2d

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.saddle import Scaled

if TYPE_CHECKING:
    from torch import Tensor

MOST_UNITS = 10_000
"""In a hidden layer, whose size is an option."""

Pull: TypeAlias = "Callable[[Tensor], Tensor]"
"""Takes the gradient of a scalar at a network's outputs, returns that at its parameters, flat."""


class PullOnto(Protocol):
    """A ``Pull`` that can add what it returns to a vector, which it then returns."""

    def __call__(self, slopes: Tensor, onto: Scaled | None = None) -> Tensor:
        """Pull."""
        ...


class Layers:
    """Weight tensors, each followed by its biases, in one flat vector.

    Args:
        weights: Shape of each weight tensor, (outputs, inputs, ...).
    """

    def __init__(self, weights: Sequence[tuple[int, ...]]) -> None:
        self._weights = weights
        self._lengths = [n for weight in weights for n in (math.prod(weight), weight[0])]
        self._inputs = [math.prod(weight[1:]) for weight in weights]
        self.size = sum(self._lengths)
        """Number of parameters."""

    def initial(self, rng: np.random.Generator) -> Tensor:
        """Draw parameters as torch.nn's layers do: uniform in +-1/sqrt(inputs), float64."""
        lengths = [sum(pair) for pair in zip(self._lengths[::2], self._lengths[1::2], strict=True)]
        pieces = [
            rng.uniform(-(inputs**-0.5), inputs**-0.5, length)
            for inputs, length in zip(self._inputs, lengths, strict=True)
        ]
        return torch.from_numpy(np.concatenate(pieces))

    def cut(self, parameters: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's weights and biases, as views."""
        # One split: the gradient of a slice per layer would allocate the whole vector each time.
        pieces = parameters.split_with_sizes(self._lengths)
        layers = zip(pieces[::2], self._weights, pieces[1::2], strict=True)
        return [(weight.view(shape), bias) for weight, shape, bias in layers]


class MLP(Layers):
    """Layers h <- relu(A h + b), the last one without relu.

    Args:
        widths: Number of inputs, of units in each hidden layer, and of outputs.
    """

    def __init__(self, *widths: int) -> None:
        super().__init__([(outputs, inputs) for inputs, outputs in pairwise(widths)])

    def __call__(self, parameters: Tensor, inputs: Tensor) -> Tensor:
        """Return the outputs, (samples, last width), for inputs of shape (samples, first width)."""
        return _fully_connected(self.cut(parameters), inputs)

    def traced(self, parameters: Tensor, inputs: Tensor) -> tuple[Tensor, PullOnto]:
        """Return the outputs, and what takes gradients from them back to the parameters.

        The gradient is a new tensor, unless it is to be added to one.  Written out, with every
        matrix product put where it belongs in the flat gradient: autograd would take half as long
        again, in calls and in copies.
        """
        layers = self.cut(parameters)
        values = [inputs]
        for weight, bias in layers[:-1]:
            values.append(linear(values[-1], weight, bias).relu_())

        def pull(slopes: Tensor, onto: Scaled | None = None) -> Tensor:
            # With beta = 0 what is there before counts for nothing, not even NaN.
            flat, beta = onto or Scaled(torch.empty_like(parameters), 0.0)
            ones = slopes.new_ones(len(slopes))
            for place, (weight, bias) in reversed(tuple(enumerate(self.cut(flat)))):
                by_unit = slopes.t()
                weight.addmm_(by_unit, values[place], beta=beta)
                bias.addmv_(by_unit, ones, beta=beta)
                if place > 0:  # the slope of relu is the sign of its value
                    slopes = slopes.mm(layers[place][0]).mul_(values[place].sign())
            return flat

        return linear(values[-1], *layers[-1]), pull


class CNN(Layers):
    """LeNet-5 up to its last layer, for images of any size and number of channels.

    Twice a 5 x 5 convolution (6, then 16 channels), relu and 2 x 2 max pooling, then fully
    connected layers of 120 and 84 units, the last one without relu.  With a relu and a linear
    layer from 84 units to the classes it is the whole network of seven layers.

    Args:
        shape: Channels, height and width of an image, at least 16 x 16.

    Raises:
        UsageError: The images are smaller.

    Source: LeCun, Bottou, Bengio and Haffner (1998), "Gradient-based learning applied to document
    recognition".  Differences from the source: (1) relu in place of the scaled tanh; (2) max
    pooling without parameters; (3) every channel of the second convolution sees all six of the
    first; (4) colour images have three channels.
    """

    CHANNELS = (6, 16)
    KERNEL = 5
    WIDTHS = (120, 84)

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self._shape = shape
        channels, *sides = shape
        for _ in self.CHANNELS:
            sides = [(side - self.KERNEL + 1) // 2 for side in sides]
        if min(sides) < 1:
            raise UsageError(
                f"images of {shape[1]} x {shape[2]} pixels are too small for the convolutional "
                "network, which takes at least 16 x 16: choose another data set."
            )
        kernel = (self.KERNEL, self.KERNEL)
        convolutions = [
            (outputs, inputs, *kernel) for inputs, outputs in pairwise((channels, *self.CHANNELS))
        ]
        widths = (self.CHANNELS[-1] * math.prod(sides), *self.WIDTHS)
        super().__init__(
            [*convolutions, *((outputs, inputs) for inputs, outputs in pairwise(widths))]
        )

    def __call__(self, parameters: Tensor, inputs: Tensor) -> Tensor:
        """Return the outputs, (samples, 84), for flat images, channel-major, (samples, pixels)."""
        layers = self.cut(parameters)
        maps = inputs.view(-1, *self._shape)
        for weight, bias in layers[: len(self.CHANNELS)]:
            maps = max_pool2d(conv2d(maps, weight, bias).relu(), 2)
        return _fully_connected(layers[len(self.CHANNELS) :], maps.flatten(1))

    def traced(self, parameters: Tensor, inputs: Tensor) -> tuple[Tensor, Pull]:
        """Return the outputs, and what takes gradients from them back to the parameters, once."""
        at = parameters.detach().requires_grad_()
        outputs = self(at, inputs)
        return outputs.detach(), lambda slopes: torch.autograd.grad(outputs, at, slopes)[0]


def _fully_connected(layers: list[tuple[Tensor, Tensor]], inputs: Tensor) -> Tensor:
    hidden = inputs
    for weight, bias in layers[:-1]:
        hidden = linear(hidden, weight, bias).relu()
    return linear(hidden, *layers[-1])

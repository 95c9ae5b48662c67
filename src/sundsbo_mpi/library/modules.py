"""Networks of ``torch.nn`` as functions of flat vectors, which tasks are made of."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch.func import functional_call

from sundsbo_mpi.errors import UsageError, unknown

if TYPE_CHECKING:
    from torch import Tensor, nn


class SplitModule:
    """A ``torch.nn.Module`` as a function of the flat variables x and y.

        model(x, y, inputs) = module(inputs), with its parameters taken from x and y

    The parameters whose names match a pattern are in x, all others in y; each group stands in the
    order of ``module.named_parameters()``, row by row.  Those that require no gradient are left as
    they are: constants, in neither.  Where all parameters are in y, x is not looked at, and may be
    whatever else the upper level chooses; likewise y, where all are in x.

    A loss must be a function of x, y and the batch alone, the same on every call.  So a module that
    changes a buffer when it is called, as batch norm with running statistics does in training, is
    refused at the first call; after ``module.eval()``, or with ``track_running_stats=False``, it
    serves.  Buffers that do not change are constants.  Modules that draw random numbers, such as
    dropout in training, need ``module.eval()`` too ('sundsbo-mpi task check' notices).

    The start is the module's own: make it from the run's seed alone, by ``torch.manual_seed(seed)``
    just before, so that it is equal on all agents.

    Args:
        module: What is called; its parameters stay as they are.
        x: Patterns of ``fnmatch`` for the names in x, such as "body.*"; none puts all into y.

    Raises:
        UsageError: A pattern matches no parameter that requires gradients.
    """

    def __init__(self, module: nn.Module, x: str | Sequence[str] = ()) -> None:
        patterns = (x,) if isinstance(x, str) else tuple(x)
        shapes = {
            name: tuple(parameter.shape)
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in shapes):
                raise unknown("parameter of the module", pattern, shapes)
        chosen = {name for name in shapes if any(fnmatchcase(name, p) for p in patterns)}
        self._module = module
        self._x = {name: shape for name, shape in shapes.items() if name in chosen}
        self._y = {name: shape for name, shape in shapes.items() if name not in chosen}
        self.names = {"x": tuple(self._x), "y": tuple(self._y)}
        """The names of the parameters of each variable, in order."""
        self.sizes = {"x": _length(self._x), "y": _length(self._y)}
        """Numbers of x and of y that are the module's."""

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move the module, and with it the start, the constants and the buffers."""
        self._module.to(device, dtype)

    def start(self) -> tuple[Tensor, Tensor]:
        """Return the module's own parameters as x of shape (d_x,) and y of shape (d_y,), copied."""
        parameters = dict(self._module.named_parameters())
        x, y = (
            torch.cat([torch.empty(0).to(like), *(parameters[n].detach().flatten() for n in names)])
            for names in self.names.values()
            for like in [next(iter(parameters.values()))]
        )
        return x, y

    def __call__(self, x: Tensor, y: Tensor, *inputs: Any, **named: Any) -> Any:
        """Return what the module returns for the inputs, differentiable in x and y.

        Raises:
            UsageError: The call has changed a buffer of the module.
        """
        buffers = dict(self._module.named_buffers())
        versions = {name: buffer._version for name, buffer in buffers.items()}
        outputs = functional_call(self._module, self._parameters(x, y), inputs, named)
        for name, buffer in self._module.named_buffers():
            if buffer is not buffers.get(name) or buffer._version != versions[name]:
                raise UsageError(
                    f"the module changes its buffer '{name}' when it is called, as batch norm does "
                    "in training: call eval() on the module, or make the layer with "
                    "track_running_stats=False, so that a loss depends on x, y and the batch alone."
                )
        return outputs

    def filled(self, x: Tensor, y: Tensor) -> nn.Module:
        """Return a copy of the module with these parameters, to use or to keep what was found."""
        module = copy.deepcopy(self._module)
        with torch.no_grad():
            parameters = dict(module.named_parameters())
            for name, value in self._parameters(x, y).items():
                parameters[name].copy_(value)
        return module

    def _parameters(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        return _cut(x, self._x) | _cut(y, self._y)


def _cut(flat: Tensor, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Return the parameters of a flat vector by name, as views; of one that holds none, nothing."""
    if not shapes:
        return {}
    # One split: the gradient of a slice per layer would allocate the whole vector each time.
    pieces = flat.split_with_sizes([math.prod(shape) for shape in shapes.values()])
    return {
        name: piece.view(shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)
    }


def _length(shapes: Mapping[str, tuple[int, ...]]) -> int:
    return sum(map(math.prod, shapes.values()))

"""Nested states of tensors, taken apart into plain values and tensors and put together again.

A state is made of named tuples, tuples, dicts with text keys, tensors, numbers and None.  Its
description is what JSON can hold; a named tuple is described by the class that this package has
under a name, and nothing is imported or called for it but that class.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.errors import printable

if TYPE_CHECKING:
    from torch import Tensor

PACKAGE = __name__.partition(".")[0]
Description = Any


def take_apart(state: object, tensors: list[Tensor]) -> Description:
    """Describe a state, adding its tensors to the list in the order of the description.

    Raises:
        TypeError: it holds something else.
    """
    import torch

    if isinstance(state, torch.Tensor):
        tensors.append(state)
        return {"tensor": len(tensors) - 1}
    if state is None or isinstance(state, bool | int | float):
        return {"value": state}
    if isinstance(state, dict):
        return {"dict": [[key, take_apart(part, tensors)] for key, part in state.items()]}
    if isinstance(state, tuple):
        parts = [take_apart(part, tensors) for part in state]
        kind = type(state)
        if kind is tuple:
            return {"tuple": parts}
        return {"named": f"{kind.__module__}:{kind.__qualname__}", "parts": parts}
    raise TypeError(f"a state holds a {type(state).__name__}, which no checkpoint can keep")


def put_together(description: Description, tensors: Sequence[Tensor]) -> Any:
    """Return the state of a description with these tensors.

    Raises:
        ValueError: it is no description, or one of classes that this version does not have.
    """
    match description:
        case {"tensor": int(number)} if 0 <= number < len(tensors):
            return tensors[number]
        case {"value": None | bool() | int() | float() as value}:
            return value
        case {"dict": list(items)}:
            return {str(key): put_together(part, tensors) for key, part in items}
        case {"tuple": list(parts)}:
            return tuple(put_together(part, tensors) for part in parts)
        case {"named": str(name), "parts": list(parts)}:
            kind = _named_tuple(name)
            if len(parts) == len(kind._fields):
                return kind._make(put_together(part, tensors) for part in parts)
    raise ValueError("its description of the state is none that this version knows")


def require_like(found: object, model: object, name: str) -> None:
    """Check that a state has the form of another: its names, its classes, its shapes and dtypes.

    Raises:
        ValueError: it has not; says which part, whose name begins with ``name``.
    """
    import torch

    same = type(found) is type(model)
    parts: list[tuple[str, object, object]] = []
    if isinstance(found, torch.Tensor) and isinstance(model, torch.Tensor):
        same = (found.shape, found.dtype) == (model.shape, model.dtype)
    elif isinstance(found, dict) and isinstance(model, dict):
        same = found.keys() == model.keys()
        parts = [(key, found.get(key), part) for key, part in model.items()]
    elif isinstance(found, tuple) and isinstance(model, tuple):
        same = same and len(found) == len(model)
        names = getattr(model, "_fields", range(len(model)))
        parts = [*zip(map(str, names), found, model, strict=False)]
    if not same:
        raise ValueError(f"{name} is {_described(found)}, expected {_described(model)}")
    for key, one, other in parts:
        require_like(one, other, f"{name}.{key}")


def _described(part: object) -> str:
    import torch

    if isinstance(part, torch.Tensor):
        numbers = " x ".join(map(str, part.shape))
        return f"{numbers} numbers of {str(part.dtype).removeprefix('torch.')}"
    if isinstance(part, dict):
        return f"one of {', '.join(map(printable, part)) or 'nothing'}"
    return f"a {type(part).__name__} of {len(part)}" if type(part) is tuple else type(part).__name__


def _named_tuple(name: str) -> Any:
    """Look up a named tuple of this package; whoever uses a state has imported its classes."""
    module, _, kind = name.partition(":")
    found = getattr(sys.modules.get(module), kind, None)
    own = module.partition(".")[0] == PACKAGE
    if own and isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
        return found
    raise ValueError(f"its state has a {name}, which this version does not know")

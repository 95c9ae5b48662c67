"""What an object holds: a batch, a shard, or a task itself, whatever it is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

NOT_ENTERED = (ModuleType, FunctionType, BuiltinFunctionType, MethodType, type, torch.dtype)

PLAIN = (bool, int, float, complex, str, bytes, slice, range)
"""Written as Python does, they say all that there is."""


def contents(held: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object holds, through containers and attributes, each object once.

    Every piece comes with the path that leads to it, such as ``.cache[2]``, in a fixed order.
    """
    seen: list[Any] = []  # kept, since the number of an object that is gone may be used again
    known: set[int] = set()
    waiting = [("", held)]
    while waiting:
        path, piece = waiting.pop()
        if id(piece) in known or isinstance(piece, NOT_ENTERED):
            continue
        seen.append(piece)
        if not _is_plain(piece):  # equal numbers may be one object
            known.add(id(piece))
        parts = _parts(piece)
        if parts is None:
            yield path, piece
        else:
            waiting += [(path + step, part) for step, part in reversed(parts)]


def _parts(piece: Any) -> list[tuple[str, Any]] | None:
    """Return the steps into an object, None where it is a piece itself."""
    if _is_plain(piece) or isinstance(piece, torch.Tensor | np.ndarray | np.generic):
        return None
    if isinstance(piece, Mapping):
        return [(f"[{key!r}]", part) for key, part in piece.items()]
    if isinstance(piece, tuple | list):
        names = getattr(piece, "_fields", None)
        steps = [f".{n}" for n in names] if names else [f"[{i}]" for i in range(len(piece))]
        return list(zip(steps, piece, strict=True))
    attributes = getattr(piece, "__dict__", None)
    return None if attributes is None else [(f".{n}", part) for n, part in attributes.items()]


def _is_plain(piece: Any) -> bool:
    return piece is None or isinstance(piece, PLAIN)


def fingerprint(held: Any) -> str:
    """Return a digest of the values that an object holds, and of how it holds them.

    Objects without attributes that can be looked at count by their type alone.
    """
    digest = hashlib.sha256()
    for path, piece in contents(held):
        digest.update(f"{path} {type(piece).__name__} ".encode())
        if isinstance(piece, torch.Tensor | np.ndarray | np.generic):
            array = piece.numpy(force=True) if isinstance(piece, torch.Tensor) else piece
            digest.update(f"{array.dtype} {array.shape} ".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        elif _is_plain(piece):
            digest.update(repr(piece).encode())
    return digest.hexdigest()


def memory(*held: Any) -> int:
    """Return the bytes of the tensors and arrays that objects hold, shared ones once."""
    sizes = {}
    for _, piece in contents(list(held)):
        if isinstance(piece, torch.Tensor):
            storage = piece.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
        elif isinstance(piece, np.ndarray):
            whole = piece if not isinstance(piece.base, np.ndarray) else piece.base
            sizes[whole.__array_interface__["data"][0]] = whole.nbytes
    return sum(sizes.values())

"""What a pickle's types and functions are taken for, few and harmless, in place of NumPy's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


class UnpicklingError(ValueError):
    """The pickle is damaged, or holds something else than arrays, lists, strings and numbers."""


class ArrayType:
    """An array's type: one of whole numbers, little-endian where it matters."""

    KNOWN = ("u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8")

    def __init__(self, text: str) -> None:
        if text.lstrip("|<") not in self.KNOWN:
            raise UnpicklingError(f"an array of type {text[:60]!r} is not one of whole numbers")
        self.dtype = np.dtype(text)


class Array:
    """An array whose contents follow later in the pickle."""

    value: np.ndarray[Any, Any] | None = None


def text_of(key: object) -> str:
    """Return the string that Python 2's and 3's strings and names hold."""
    if isinstance(key, bytes):
        return key.decode("latin-1")
    if isinstance(key, str):
        return key
    raise UnpicklingError(f"got a {type(key).__name__}, expected a string")


def _bytes(value: object) -> bytes:
    """Return what Python 2's strings and Python 3's bytes hold."""
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise UnpicklingError(f"got a {type(value).__name__}, expected bytes")


def filled(content: object, dtype: object, shape: object, column_major: bool) -> Any:
    """Return an array that is exactly as long as its content."""
    raw = _bytes(content)
    lengths = shape if isinstance(shape, tuple) else ()
    if not lengths or not isinstance(dtype, ArrayType):
        raise UnpicklingError("an array has no type or no shape")
    if not all(type(length) is int and length >= 0 for length in lengths):
        raise UnpicklingError("the lengths of an array are no numbers")
    return np.frombuffer(raw, dtype.dtype).reshape(lengths, order="F" if column_major else "C")


def _encode(text: object, encoding: object = "latin1") -> bytes:
    """Return the bytes that Python 3 writes as a string, for Python 2 to read."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise UnpicklingError("a string is encoded in an unexpected way")
    return text.encode("latin-1")


def _from_buffer(content: object, dtype: object, shape: object, order: object) -> Array:
    result = Array()
    result.value = filled(content, dtype, shape, order == "F")
    return result


def _of_type(text: object, *_flags: object) -> ArrayType:
    return ArrayType(text_of(text))


def _later(*_arguments: object) -> Array:
    return Array()


FUNCTIONS: dict[str, Callable[..., object]] = {
    "_codecs encode": _encode,
    "numpy dtype": _of_type,
    "numpy.core.multiarray _reconstruct": _later,
    "numpy._core.multiarray _reconstruct": _later,
    "numpy.core.numeric _frombuffer": _from_buffer,
    "numpy._core.numeric _frombuffer": _from_buffer,
}
"""What stands for each name that may be called."""

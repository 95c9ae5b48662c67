"""Reads pickles that hold arrays, and nothing that could do anything.

A pickle is a program.  Here it is run by a machine that knows those of its instructions that build
dictionaries, lists, tuples, strings, bytes, numbers and NumPy's arrays of whole numbers, and no
others.  No name in a pickle is ever looked up: the few that NumPy and Python write for an array or
for bytes are recognised by their spelling, and stand for functions of ``pickled``.
"""

from __future__ import annotations

import pickletools
import warnings
from dataclasses import dataclass
from typing import Any

from sundsbo_mpi.datasets.pickled import (
    FUNCTIONS,
    Array,
    ArrayType,
    UnpicklingError,
    filled,
    text_of,
)

MAX_ITEMS = 1_000_000
"""How many instructions a pickle may have; a batch of CIFAR-10 has some 30,000."""


@dataclass(frozen=True)
class _Name:
    """A name that the pickle mentions, as it is spelt."""

    text: str


def unpickle(content: bytes) -> dict[str, Any]:
    """Return the dictionary of a pickle; its keys and strings as str, arrays as NumPy's.

    Args:
        content: A pickle of protocol 0 to 5, from Python 2 or 3.

    Raises:
        UnpicklingError: It is cut off, or needs an instruction or a name that is not admitted.
    """
    machine = _Machine(4 * len(content))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # damaged strings of protocol 0
            for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
                if count >= MAX_ITEMS:
                    raise UnpicklingError(f"it has more than {MAX_ITEMS:,} instructions")
                machine.do(instruction.name, argument)
        result = machine.stack.pop()
    except UnpicklingError:
        raise
    except (ValueError, TypeError, LookupError, MemoryError, OverflowError) as error:
        raise UnpicklingError(f"it is damaged: {str(error)[:200]}") from None
    if not isinstance(result, dict):
        raise UnpicklingError(f"it holds a {type(result).__name__}, expected a dictionary")
    return {
        key: value.value if isinstance(value, Array) else value for key, value in result.items()
    }


_NAMES = {*FUNCTIONS, "numpy ndarray"}
_PUSHED = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BYTEARRAY8"),
}
_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_IGNORED = {"PROTO", "FRAME", "STOP"}
_MARK = object()


class _Machine:
    """The stack and the memory that the instructions of a pickle work on.

    Bytes may be made from ``budget`` characters in total, so that a short pickle cannot fill the
    memory by making the same bytes again and again.
    """

    def __init__(self, budget: int) -> None:
        self.stack: list[Any] = []
        self._memory: dict[int, Any] = {}
        self._budget = budget

    def do(self, instruction: str, argument: Any) -> None:
        """Follow an instruction."""
        if instruction in _PUSHED:
            self.stack.append(argument)
        elif instruction in _CONSTANTS:
            self.stack.append(_CONSTANTS[instruction])
        elif instruction not in _IGNORED:
            self._act(instruction, argument)

    def _act(self, instruction: str, argument: Any) -> None:  # noqa: C901, PLR0912  (one table)
        push, pop = self.stack.append, self.stack.pop
        match instruction:
            case "MARK":
                push(_MARK)
            case "EMPTY_LIST" | "EMPTY_DICT" | "EMPTY_TUPLE":
                push({"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}[instruction]())
            case "LIST":
                push(self._since_mark())
            case "DICT":
                items = self._since_mark()
                push({})
                self._set(items)
            case "TUPLE":
                push(tuple(self._since_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                push(tuple(reversed([pop() for _ in range(int(instruction[-1]))])))
            case "APPEND" | "APPENDS":
                self._extend([pop()] if instruction == "APPEND" else self._since_mark())
            case "SETITEM" | "SETITEMS":
                self._set([pop(), pop()][::-1] if instruction == "SETITEM" else self._since_mark())
            case "GLOBAL" | "STACK_GLOBAL":
                push(_named(argument or " ".join([text_of(pop()), text_of(pop())][::-1])))
            case "REDUCE":
                arguments, function = pop(), pop()
                push(self._call(function, arguments))
            case "BUILD":
                self._build(pop(), self.stack[-1])
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self._memory[argument] = self.stack[-1]
            case "MEMOIZE":
                self._memory[len(self._memory)] = self.stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                push(self._memory[argument])
            case _:
                raise UnpicklingError(f"the instruction {instruction} is not admitted")

    def _since_mark(self) -> list[Any]:
        """Take what was pushed since the last mark, and the mark."""
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def _extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise UnpicklingError("something is appended to what is not a list")
        self.stack[-1].extend(items)

    def _set(self, items: list[Any]) -> None:
        """Set keys and values that alternate; only strings may be keys."""
        if type(self.stack[-1]) is not dict or len(items) % 2:
            raise UnpicklingError("something is set in what is not a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            self.stack[-1][text_of(key)] = value

    def _call(self, function: object, arguments: object) -> object:
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise UnpicklingError("something is called that is no function")
        if function.text not in FUNCTIONS:
            raise UnpicklingError(f"{function.text} is called")
        self._spend(*arguments)
        return FUNCTIONS[function.text](*arguments)

    def _build(self, state: object, target: object) -> None:
        """Complete an array, or the type of one, as NumPy's ``__setstate__`` would."""
        if not isinstance(state, tuple):
            raise UnpicklingError("the state of an array is not a tuple")
        if isinstance(target, Array) and target.value is None:
            _, shape, dtype, column_major, raw = state
            self._spend(raw)
            target.value = filled(raw, dtype, shape, column_major is True)
        elif not isinstance(target, ArrayType) or state[1] not in ("|", "<", b"|", b"<"):
            raise UnpicklingError("something else than an array of little-endian numbers is built")

    def _spend(self, *values: object) -> None:
        self._budget -= sum(len(v) for v in values if isinstance(v, str | bytes | bytearray))
        if self._budget < 0:
            raise UnpicklingError("it makes more bytes than it holds")


def _named(text: str) -> _Name:
    if text not in _NAMES:
        raise UnpicklingError(f"the name {text[:60]!r} is not admitted")
    return _Name(text)

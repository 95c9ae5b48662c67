import builtins
import contextlib
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

from sundsbo_mpi.datasets.pickled import UnpicklingError
from sundsbo_mpi.datasets.unpickling import MAX_ITEMS, unpickle


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.int32, np.uint16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_admitted_comes_back(protocol, dtype, order):
    array = np.asarray(np.arange(24).reshape(4, 6), dtype, order)
    content = {"a": array, "b": [1, -7, 2**40, 2.5, None, True], "c": ["x", b"\xff"], "d": (1, [2])}
    found = unpickle(pickle.dumps(content, protocol))
    np.testing.assert_array_equal(found.pop("a"), array, strict=True)
    assert found == {key: value for key, value in content.items() if key != "a"}


def test_what_python_2_wrote_comes_back():
    # cPickle of Python 2 with protocol 2: strings of bytes, and NumPy's module of that time.
    raw = bytes(range(250, 256))
    written = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
        b"q\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87R"
        b"q\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<i", len(raw))
        + raw
        + b"tbU\x06labelsq\x08]q\x09(K\x06K\x09eu."
    )
    found = unpickle(written)
    assert found["labels"] == [6, 9]
    np.testing.assert_array_equal(found["data"], np.array([[250, 251, 252], [253, 254, 255]]))


class Calls:
    """Pickles to a call of a function, which whoever unpickles it carelessly makes."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: {"data": v}, lambda v: {"labels": [v]}])
@pytest.mark.parametrize(
    "hostile",
    [
        Calls(os.system, "touch MARK"),
        Calls(builtins.eval, "open('MARK', 'w')"),
        Calls(builtins.exec, "open('MARK', 'w')"),
        Calls(subprocess.check_call, ["touch", "MARK"]),
        Calls(getattr, "", "join"),
        Calls(np.load, "MARK"),
        Calls(bytearray, 10**15),
        os.system,
        np.float64,
    ],
)
def test_nothing_is_called(tmp_path, monkeypatch, hostile, wrap, protocol):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnpicklingError, match=r"name .* is not admitted"):
        unpickle(pickle.dumps(wrap(hostile), protocol))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, "a", None], object),
        np.array([1.5]),
        np.array(["text"]),
        np.array([(1, 2)], [("a", "i4"), ("b", "O")]),
        np.arange(3, dtype=">i4"),
        np.array(["2020-01-01"], "M8[D]"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_other_arrays_are_refused(array, protocol):
    with pytest.raises(UnpicklingError):
        unpickle(pickle.dumps({"data": array}, protocol))


@pytest.mark.parametrize("value", [{1, 2}, frozenset({1}), 1j, range(3), UnpicklingError])
def test_other_values_are_refused(value):
    with pytest.raises(UnpicklingError):
        unpickle(pickle.dumps({"data": value}, 4))


@pytest.mark.parametrize("content", [[1], "text", 3, None, np.zeros(3, np.uint8)])
def test_only_dictionaries_are_handed_back(content):
    with pytest.raises(UnpicklingError):
        unpickle(pickle.dumps(content, 2))


@pytest.mark.parametrize("protocol", range(6))
def test_every_truncation_is_refused(protocol):
    content = pickle.dumps({"data": np.arange(4, dtype=np.uint8), "labels": [1, 2]}, protocol)
    for length in range(len(content)):
        with pytest.raises(UnpicklingError):
            unpickle(content[:length])


def test_no_single_changed_byte_gets_out_of_hand():
    content = pickle.dumps({"data": np.arange(4, dtype=np.uint8), "labels": [1, 2]}, 2)
    rng = np.random.default_rng(0)
    for place in range(len(content)):
        for value in rng.integers(256, size=12):
            changed = content[:place] + bytes([value]) + content[place + 1 :]
            with contextlib.suppress(UnpicklingError):
                assert isinstance(unpickle(changed), dict)


GREEDY = {
    "a string longer than the file": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",
    "text longer than the file": b"\x80\x04\x8d" + struct.pack("<Q", 2**40) + b"x.",
    "a frame longer than the file": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"].",
    "a far place of the memory": b"\x80\x02]r\xff\xff\xff\xff.",
    "a shape without bytes": (
        b"\x80\x02}U\x01acnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01\x8a\x06\x00\x00\x00\x00\x00\x10\x85cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R\x89U\x00tbs."
    ),
    "the same bytes again and again": (
        b"\x80\x02}(U\x01a](X" + struct.pack("<i", 10**6) + b"a" * 10**6 + b"q\x00X\x06\x00\x00\x00"
        b"latin1q\x01" + b"c_codecs\nencode\nh\x00h\x01\x86R" * 5_000 + b"eu."
    ),
    "endless lists": b"\x80\x02" + b"]" * (5 * MAX_ITEMS) + b".",
    "lists in lists as a name": (
        b"\x80\x04" + b"(]" * 400_000 + b"e" * 399_999 + b"\x8c\x01x\x93."
    ),
    "tuples in tuples as lengths": (
        b"\x80\x02}U\x01acnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01" + b")" + b"\x85" * 400_000 + b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R\x89U\x00tbs."
    ),
    "tuples in tuples": b"\x80\x02}K\x01" + b"\x85" * 500_000 + b"K\x02s.",
}


MEASURED = """
import resource, sys
from sundsbo_mpi.datasets.pickled import UnpicklingError
from sundsbo_mpi.datasets.unpickling import unpickle

content = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
try:
    unpickle(content)
except UnpicklingError:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
"""Prints by how many MiB the process grew over a pickle that it refused."""


@pytest.mark.parametrize("content", GREEDY.values(), ids=GREEDY)
def test_a_short_pickle_cannot_take_much_memory(content):
    result = subprocess.run(
        [sys.executable, "-c", MEASURED], input=content, capture_output=True, timeout=60
    )
    assert result.returncode == 0, result.stderr.decode()
    assert int(result.stdout) < 200

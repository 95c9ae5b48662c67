"""What accidents and attackers do to a file: one change or several, decided by a seed."""

from __future__ import annotations

import gzip
import io
import re
import zipfile

import numpy as np

LARGEST = 200_000
"""Bytes of a mutated file: hostile files are small, and so must be the work for them."""
NUMBERS = re.compile(rb"\d+(?:\.\d+)?")
ODD_NUMBERS = (
    *(b"0", b"-1", b"1", b"2", b"1000", b"1000000000", b"2147483648", b"9223372036854775808"),
    *(b"1e999", b"-0.0", b"nan", b"inf", b"1e-400", b"0x10", b"1_0", b"9" * 5000, b"\xc2\xb2"),
)
ODD_BYTES = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n" * 50, b"\r", b" ", b"\t", b"\x1b[31m", b"\x85"),
    *(b"\xe2\x80\xa8", b"\xed\xa0\x80", b'"', b"'", b"[", b"]", b"{", b"}", b"<", b">", b"&"),
    *(b"#", b"%", b",", b";", b"(", b"\\", b"graph [", b"node [ id 0 ]", b"multigraph 1", b"id"),
    *(b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<graph>", b"<node/>", b"<port/>", b"<data/>", b"&b;"),
    *(b"symmetric", b"skew-symmetric", b"complex", b"pattern", b"array", b"coordinate"),
    *(b"0 1 {'w': 0.5}", b"{'w': -(((1)))}", b"\x80\x05.", b"cposix\nsystem\n", b"\x93NUMPY"),
)
DTYPES = ("f8", "f4", "f2", "i8", "i4", "u8", "u1", "i1", "c16", "?", "U3", "S2", "V8", "M8[D]")


def flip(rng, content, _other):
    changed = bytearray(content)
    for at in rng.integers(len(content), size=rng.integers(1, 9)):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(rng, content, _other):
    return content[: rng.integers(len(content))]


def drop(rng, content, _other):
    start, end = sorted(rng.integers(len(content) + 1, size=2))
    return content[:start] + content[end:]


def splice(rng, content, other):
    start, end = sorted(rng.integers(len(other) + 1, size=2))
    at = rng.integers(len(content) + 1)
    over = rng.integers(2) * (end - start)
    return content[:at] + other[start:end] + content[at + over :]


def repeat(rng, content, _other):
    start = int(rng.integers(len(content)))
    piece = content[start : start + int(rng.integers(1, 60))]
    times = int(10 ** rng.uniform(0, 4))
    return content[:start] + piece * times + content[start:]


def number(rng, content, _other):
    found = list(NUMBERS.finditer(content))
    if not found:
        return flip(rng, content, b"")
    where = found[rng.integers(len(found))]
    return content[: where.start()] + _any(rng, ODD_NUMBERS) + content[where.end() :]


def integer(rng, content, _other):
    """Put a large or a negative number where four or eight bytes may hold one."""
    value = int(_any(rng, (0, 1, 255, 10**9, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)))
    size = 4 if value < 2**32 and rng.integers(2) else 8
    at = rng.integers(len(content))
    order = "little" if rng.integers(2) else "big"
    return content[:at] + value.to_bytes(size, order) + content[at + size :]


def insert(rng, content, _other):
    at = rng.integers(len(content) + 1)
    return content[:at] + _any(rng, ODD_BYTES) + content[at:]


def lines(rng, content, _other):
    rows = content.splitlines(keepends=True)
    order = rng.permutation(len(rows))[: rng.integers(1, len(rows) + 1)]
    return b"".join(rows[i] for i in (np.sort(order) if rng.integers(2) else order))


CHANGES = (flip, cut, drop, splice, repeat, number, number, integer, insert, insert, lines)


def damaged(rng, content):
    """Return what an accident leaves of a file: some bits flipped, an end or a part missing."""
    return _any(rng, (flip, flip, cut, drop, integer))(rng, content, b"")


def mutated(rng, content, other):
    """Return the content after one to four changes, with parts of the other where they fit.

    What is packed is changed within as often as without: gzip and zip would notice the latter at
    once.
    """
    if content[:2] == b"\x1f\x8b" and rng.integers(2):
        return gzip.compress(mutated(rng, gzip.decompress(content), other), 1)
    if content[:4] == b"PK\x03\x04" and rng.integers(4):
        return _repacked(rng, content, other)
    for _ in range(rng.integers(1, 5)):
        content = _any(rng, CHANGES)(rng, content or b"0", other or b"0")[:LARGEST]
    return content


def _repacked(rng, content, other):
    """Change, drop, exchange or invent members of an archive, whose checksums are right again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.integers(1, 3)):
        name = _any(rng, sorted(members)) if members else "arr_0.npy"
        what = rng.integers(6)
        if what == 0:
            members.pop(name, None)
        elif what == 1:
            members[name] = _any(rng, sorted(members.values())) if members else b""
        elif what == 2:
            members[name] = mutated(rng, members.get(name, b""), other)
        else:
            members[name] = odd_array(rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", _any(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as to:
        for name, member in members.items():
            to.writestr(name, member)
    return packed.getvalue()


def odd_array(rng):
    """Return an array of any type and shape as .npy, at times with a shape that it has not."""
    dtype = np.dtype(_any(rng, DTYPES))
    shape = tuple(rng.choice([0, 1, 2, 3, 5, 6, 10, 13, 40], size=rng.integers(4)).tolist())
    if dtype.kind in "iu" and rng.integers(2):
        array = rng.integers(-2 if dtype.kind == "i" else 0, 12, size=shape).astype(dtype)
    else:
        size = int(np.prod(shape)) * dtype.itemsize
        array = np.frombuffer(rng.bytes(size), dtype).reshape(shape) if size else np.zeros(shape)
    buffer = io.BytesIO()
    with np.errstate(all="ignore"):
        np.save(buffer, array, allow_pickle=False)
    content = buffer.getvalue()
    if rng.integers(4):
        return content
    claimed = ", ".join(str(_any(rng, (0, 1, 5, 10**5, 10**9, 2**62))) for _ in shape)
    told = f"({claimed}{',' * (len(shape) == 1)})".encode()
    return content.replace(str(shape).encode().ljust(len(told)), told, 1)


def _any(rng, choices):
    return choices[int(rng.integers(len(choices)))]

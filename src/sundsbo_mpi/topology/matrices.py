"""Matrices as bytes: .npz (dense or sparse), .npy, text and MatrixMarket, read and written.

NumPy's formats also hold a stack of matrices, (T, n, n), and .npz the recipe of random ones.  Of
many agents a stack is sparse in .npz, (T n, n) with T in the member ``period``.  No format here can
carry code: pickled objects are refused.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology.archives import NODE_IDS, PERIOD, read_npz, require_rows
from sundsbo_mpi.topology.building import MOST_ENTRIES
from sundsbo_mpi.topology.matrixmarket import read_mtx

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from sundsbo_mpi.topology.mixing import Mixing

DENSE_STACK_UP_TO = 1000
"""Agents up to whom a stack in .npz is one array, which any reader of NumPy's files can take."""


def _read_npy(content: bytes) -> tuple[Any, tuple[str, ...]]:
    if not content.startswith(b"\x93NUMPY"):
        raise ValueError("it is no .npy array")
    return require_rows(np.load(BytesIO(content), allow_pickle=False)), ()


def _read_text(content: bytes) -> tuple[Any, tuple[str, ...]]:
    """Read rows of numbers between commas, semicolons, tabs or spaces; # starts a comment."""
    lines = [line.split("#")[0].strip() for line in content.decode("utf-8-sig").splitlines()]
    rows = [line for line in lines if line]
    if not rows:
        raise ValueError("it holds no numbers")
    mark = next((mark for mark in ",;" if mark in rows[0]), None)
    return np.loadtxt(rows, delimiter=mark, ndmin=2), ()


def _read_mtx(content: bytes) -> tuple[Any, tuple[str, ...]]:
    return read_mtx(content), ()


READERS: dict[str, Callable[[bytes], tuple[Any, tuple[str, ...]]]] = {
    "npz": read_npz,
    "npy": _read_npy,
    "text": _read_text,
    "mtx": _read_mtx,
}


def read_matrix(content: bytes, form: str) -> tuple[Any, tuple[str, ...]]:
    """Return what is in ``content``, and the node ids stored with it, if any.

    It is a dense or sparse matrix, a dense stack of matrices, or a recipe, which is a mapping.

    Raises:
        UsageError: The content holds pickled Python objects.
        ValueError: The content is damaged or of another format (zipfile.BadZipFile, KeyError, …).
    """
    try:
        return READERS[form](content)
    except ValueError as error:
        # NumPy speaks of pickles both for object arrays and for members that are pickles.
        if "pickle" not in str(error):
            raise
        raise UsageError(
            "it holds Python objects (a pickle), which are never read because they can run code; "
            "save the matrix with numpy.savez(file, W) or scipy.sparse.save_npz(file, W)."
        ) from error


def _write_npz(mixing: Mixing, node_ids: Sequence[str]) -> bytes:
    buffer = BytesIO()
    if mixing.recipe:
        members = {name: np.array(value) for name, value in mixing.recipe.items()}
    elif mixing.steady and mixing.symmetric:
        members = _sparse(mixing.matrices[0])
    elif mixing.agents <= DENSE_STACK_UP_TO:
        members = {"stack": _dense(mixing)}
    else:
        from scipy.sparse import vstack

        stack = vstack(mixing.matrices, format="csr")
        members = {**_sparse(stack), PERIOD: np.array(len(mixing.matrices))}
    if node_ids:
        members[NODE_IDS] = np.array(node_ids)
    np.savez_compressed(buffer, **members)  # type: ignore[arg-type]  # its stub wants a flag
    return buffer.getvalue()


def _sparse(matrix: csr_array) -> dict[str, NDArray[Any]]:
    """Return the members of scipy.sparse.save_npz, whose reader reads past others."""
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape),
        "format": np.array(b"csr"),
        "_is_array": np.array(True),
    }


def _write_npy(mixing: Mixing, node_ids: Sequence[str]) -> bytes:
    buffer = BytesIO()
    alone = mixing.steady and mixing.symmetric
    np.save(buffer, _dense(mixing)[0] if alone else _dense(mixing), allow_pickle=False)
    return buffer.getvalue()


def _dense(mixing: Mixing) -> NDArray[np.float64]:
    """Return the stack (T, n, n) of a period."""
    return np.stack([W.toarray() for W in mixing.matrices])


def _write_text(mixing: Mixing, node_ids: Sequence[str]) -> bytes:
    comments = [f"# {line}\n" for line in _comment(mixing, node_ids).splitlines()]
    return "".join(comments).encode() + _rows(mixing, " ")


def _write_csv(mixing: Mixing, node_ids: Sequence[str]) -> bytes:
    return _rows(mixing, ",")


def _write_mtx(mixing: Mixing, node_ids: Sequence[str]) -> bytes:
    from scipy.io import mmwrite

    buffer, comment = BytesIO(), _comment(mixing, node_ids)
    mmwrite(buffer, mixing.matrices[0], comment=comment, precision=17)
    return buffer.getvalue()


def _comment(mixing: Mixing, node_ids: Sequence[str]) -> str:
    smallest = round(mixing.lambda_min or 0.0, 6) + 0.0  # never -0
    facts = f"{mixing.name}, rho = {mixing.rho_text}, smallest eigenvalue {smallest:.6f}"
    return "\n".join([facts, *(f"agent {i} = node {node}" for i, node in enumerate(node_ids))])


def _rows(mixing: Mixing, mark: str) -> bytes:
    # repr() gives the shortest digits that read back as the same float64.
    return "".join(mark.join(map(repr, row.tolist())) + "\n" for row in _dense(mixing)[0]).encode()


WRITERS: dict[str, Callable[[Mixing, Sequence[str]], bytes]] = {
    ".npz": _write_npz,
    ".npy": _write_npy,
    ".txt": _write_text,
    ".csv": _write_csv,
    ".mtx": _write_mtx,
}


def keeping(mixing: Mixing) -> tuple[str, ...]:
    """Return the suffixes of the formats that can hold it."""
    if mixing.recipe:
        return (".npz",)
    single = mixing.steady and mixing.symmetric
    if len(mixing.matrices) * mixing.agents**2 > MOST_ENTRIES:
        return (".npz", ".mtx") if single else (".npz",)
    return tuple(WRITERS) if single else (".npz", ".npy")

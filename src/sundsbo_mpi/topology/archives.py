"""Archives of arrays (.npz), looked through before NumPy or SciPy believe what they claim.

An archive of a few bytes may claim any number of rows, unpack to gigabytes, or hold indices with
which SciPy's compiled loops read or write beyond their arrays.
"""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import brief
from sundsbo_mpi.topology.content import MOST_BYTES
from sundsbo_mpi.topology.cycle import MOST_MATRICES

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile
    from numpy.typing import NDArray

NODE_IDS = "node_ids"
RECIPE = "kind"
"""The member by which a recipe is known."""
PERIOD = "period"
"""The member by which a sparse stack is known."""
PLACES = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
"""The members with the places of a sparse matrix's entries, by its format."""
DIMENSIONS = {"bsr": 3, "dia": 2}
"""Of the member with the entries, where that is no row."""


def read_npz(content: bytes) -> tuple[Any, tuple[str, ...]]:
    """Read a sparse matrix as saved by SciPy, the only array of a NumPy archive, or a recipe.

    Raises:
        ValueError: It is damaged, or claims what it does not hold (KeyError, TypeError, …).
    """
    if not zipfile.is_zipfile(BytesIO(content)):
        raise ValueError("it is no .npz archive")
    _require_small(content)
    with np.load(BytesIO(content), allow_pickle=False) as archive:
        names = [name for name in archive.files if name != NODE_IDS]
        node_ids = _names(archive) if NODE_IDS in archive else ()
        if RECIPE in names:
            return {name: _value(archive, name) for name in names}, node_ids
        if "format" in names:
            return _sparse(archive, content), node_ids
        if len(names) != 1:
            raise ValueError(f"it holds the arrays {', '.join(names) or '(none)'}, not just W")
        return _array(archive, names[0]), node_ids


def require_rows(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, unless it has more rows than bytes, which cost nothing to claim.

    Raises:
        ValueError: It has.
    """
    if array.ndim and len(array) > array.nbytes:
        raise ValueError(f"it claims {len(array)} rows that hold nothing")
    return array


def _require_small(content: bytes) -> None:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        members = archive.infolist()
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES:,} bytes")
    # Others, which NumPy does not write, may ask for gigabytes in order to be unpacked.
    if not {m.compress_type for m in members} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError("it is packed in another way than NumPy's archives are")


def _array(archive: NpzFile, name: str) -> NDArray[Any]:
    found = archive[name]
    if not isinstance(found, np.ndarray):  # a member that is no array comes as bytes
        raise ValueError(f"its member '{name}' is no array")
    return require_rows(found)


def _value(archive: NpzFile, name: str) -> Any:
    """Return a number, a text or a short list of them."""
    found = _array(archive, name)
    if found.ndim > 1 or found.size > 2:
        raise ValueError(
            f"its member '{name}' has the shape {found.shape}, expected a value or two"
        )
    return found.tolist()


def _names(archive: NpzFile) -> tuple[str, ...]:
    found = _array(archive, NODE_IDS)
    if found.ndim != 1:
        raise ValueError(f"its array {NODE_IDS} has the shape {found.shape}, expected a row")
    return tuple(map(str, found.tolist()))


def _sparse(archive: NpzFile, content: bytes) -> Any:
    """Return the matrix, or the list of matrices that stand one below the other."""
    from scipy.sparse import load_npz

    form = _array(archive, "format").item()
    form = form.decode() if isinstance(form, bytes) else form
    if form not in PLACES:
        raise ValueError(f"its sparse format is {form!r}, expected one of {', '.join(PLACES)}")
    for name in ("shape", *PLACES[form]):
        _integers(archive, name)
    if _array(archive, "data").ndim != DIMENSIONS.get(form, 1):
        raise ValueError(f"its array 'data' has the shape {archive['data'].shape}")
    matrix: Any = load_npz(BytesIO(content))
    if hasattr(matrix, "indptr"):
        # Without entries SciPy's own check would not look at the steps.
        if (np.diff(matrix.indptr) < 0).any():
            raise ValueError("its array 'indptr' decreases")
        matrix.check_format(full_check=True)
    return _apart(matrix, _array(archive, PERIOD)) if PERIOD in archive else matrix


def _integers(archive: NpzFile, name: str) -> None:
    found = _array(archive, name)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise ValueError(
            f"its array '{name}' has the type {found.dtype} and the shape {found.shape}, expected "
            "a row of integers"
        )


def _apart(stack: Any, period: NDArray[Any]) -> list[Any]:
    """Cut what stands one below the other into the matrices of a period."""
    if period.ndim or period.dtype.kind not in "iu" or not 1 <= period <= MOST_MATRICES:
        raise ValueError(f"its period is {brief(period)}, expected 1 to {MOST_MATRICES}")
    rows, agents = stack.shape
    if rows != period * agents:
        raise ValueError(
            f"it holds {rows} rows where {period} matrices of {agents} have {period * agents}"
        )
    # Laid out as rows, also empty ones take memory.
    if stack.data.size < rows:
        raise ValueError(f"it holds {stack.data.size} entries in {rows} rows, expected one in each")
    laid_out = stack.tocsr()
    return [laid_out[t * agents : (t + 1) * agents] for t in range(int(period))]

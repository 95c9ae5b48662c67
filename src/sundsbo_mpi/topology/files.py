"""Files of weights: the format found, the content read, the matrix checked, and the way back."""

from __future__ import annotations

import contextlib
import gzip
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError, printable, reason
from sundsbo_mpi.topology.content import MOST_BYTES, MOST_GRAPH_BYTES, read_file, unpacked
from sundsbo_mpi.topology.cycle import Cycle, require_count
from sundsbo_mpi.topology.graphs import PARSERS, read_graph
from sundsbo_mpi.topology.matrices import WRITERS, keeping, read_matrix
from sundsbo_mpi.topology.mixing import Mixing
from sundsbo_mpi.topology.reading import FORMATS, GRAPH_SUFFIXES, MATRIX_SUFFIXES, Reading
from sundsbo_mpi.topology.redrawn import Redrawn
from sundsbo_mpi.topology.run_files import weights_of_run
from sundsbo_mpi.topology.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

BY_NAME = Reading()
RUN_SUFFIX = ".h5"
LONGEST_REASON = 300
"""Characters of what a parser says, which may quote the whole file."""


@dataclass(frozen=True)
class Loaded:
    """Weights from a file, with what must be said about how it was read.

    Args:
        weights: The checked weights or sequence of weights, named after the file.
        notes: Sentences to say aloud, in order.
        node_ids: The file's name of every agent; "0", "1", … where it has none.
    """

    weights: Mixing
    notes: tuple[str, ...]
    node_ids: tuple[str, ...]


def read_weights(path: str, reading: Reading = BY_NAME) -> Loaded:
    """Read a weight matrix, a sequence, or a graph that gets weights; the file may be gzipped.

    Args:
        path: The file; its suffix (before .gz) says the format unless ``reading`` does.  That of a
            run, .h5, has the weights that its agents mixed with.
        reading: The choices that the file leaves open.

    Raises:
        UsageError: The file is missing, damaged, of no known format, or holds a bad matrix.
    """
    if Path(path).suffix.lower() == RUN_SUFFIX and reading == BY_NAME:
        weights, node_ids = weights_of_run(path)
        return Loaded(weights, (), node_ids)
    return _read(path, reading)


def _read(path: str, reading: Reading) -> Loaded:
    form, name = _format(path, reading), printable(Path(path).name)
    graph = form in PARSERS
    if not graph and (reading.weights is not None or reading.undirected):
        flag = "--undirected" if reading.weights is None else "--weights"
        raise UsageError(f"'{path}' is a matrix, {flag} is for graphs; leave {flag} out.")
    most = MOST_GRAPH_BYTES if graph else MOST_BYTES
    raw = read_file(path, most)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the libraries read nevertheless
            found, notes, node_ids = _parsed(unpacked(raw, most), form, reading)
        recipe = Redrawn.from_recipe(found, name) if isinstance(found, Mapping) else None
    except UsageError as error:
        raise UsageError(f"'{path}': {error}") from error
    # The libraries were not written for damaged files: they raise whatever comes up.
    except Exception as error:
        raise UsageError(
            f"'{path}' cannot be read as {form}: {printable(reason(error))[:LONGEST_REASON]}; "
            f"check the file, or name its format with --format ({', '.join(FORMATS)})."
        ) from error
    weights = recipe or _judged(found, path, name)
    if node_ids and len(node_ids) != weights.agents:
        raise UsageError(
            f"'{path}' names {len(node_ids)} nodes for {weights.agents} agents, expected one name "
            "each; correct its array node_ids or leave it out."
        )
    numbers = tuple(map(str, range(weights.agents)))
    return Loaded(weights, tuple(f"'{path}': {note}." for note in notes), node_ids or numbers)


def _parsed(
    content: bytes, form: str, reading: Reading
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Return the matrix, stack or recipe, the sentences to say aloud, and the node ids if any."""
    if form in PARSERS:
        return read_graph(content, form, reading)
    found, node_ids = read_matrix(content, form)
    return found, (), node_ids


def _judged(found: Any, path: str, name: str) -> Mixing:
    sparse_stack = isinstance(found, list)
    stack = sparse_stack or np.ndim(found) == 3
    if stack:
        require_count(len(found), name)
    try:
        return Cycle(tuple(found), name) if stack else Weights(found, name)
    except MemoryError as error:
        agents = (found[0] if sparse_stack else found).shape[-1]
        raise UsageError(
            f"'{path}' holds {agents} agents, which do not fit into memory; "
            "give a smaller matrix, or a sparse one (.npz of SciPy, .mtx)."
        ) from error


def write_weights(weights: Mixing, path: str, node_ids: Sequence[str] = ()) -> None:
    """Write weights that read back bit by bit; the file appears whole or not at all.

    Args:
        weights: What to write.
        path: The file, replaced if it exists; ends in .npz, .npy, .txt, .csv or .mtx, then perhaps
            in .gz.
        node_ids: Names of the agents, kept in .npz, and as comments in .txt and .mtx.

    Raises:
        UsageError: The suffix is unknown or not one for a sequence, or the file cannot be written.
    """
    suffix, zipped = _suffix(path)
    if suffix not in keeping(weights):
        what = f" for {weights.agents} agents" if weights.steady else " for weights that change"
        raise UsageError(
            f"cannot write '{path}': its suffix is '{suffix}', expected one of "
            f"{', '.join(keeping(weights))}{what} (and .gz after it); change the name."
        )
    content = WRITERS[suffix](weights, node_ids)
    partial = f"{path}.{os.getpid()}.part"
    try:
        Path(partial).unlink(missing_ok=True)  # what is there may be a link to another file
        with Path(partial).open("xb") as file:
            file.write(gzip.compress(content, mtime=0) if zipped else content)
        Path(partial).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(partial).unlink()
        raise UsageError(
            f"cannot write '{path}': {reason(error)}; choose another place."
        ) from error


def _suffix(path: str) -> tuple[str, bool]:
    zipped = path.lower().endswith(".gz")
    return Path(path[:-3] if zipped else path).suffix.lower(), zipped


def _format(path: str, reading: Reading) -> str:
    suffixes = MATRIX_SUFFIXES | GRAPH_SUFFIXES
    form = reading.format or suffixes.get(_suffix(path)[0])
    if form is None:
        raise UsageError(
            f"the name of '{path}' does not say its format, expected one of "
            f"{', '.join(suffixes)} (and .gz after it); rename it, or name its "
            f"format with --format ({', '.join(FORMATS)})."
        )
    return form

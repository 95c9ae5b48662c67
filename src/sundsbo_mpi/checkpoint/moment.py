"""Where an agent stands between two iterations, in memory and in its file."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import torch

from sundsbo_mpi.agent import Position
from sundsbo_mpi.checkpoint.structure import put_together, require_like, take_apart
from sundsbo_mpi.errors import UsageError, printable, reason
from sundsbo_mpi.runfile.disk import Disk
from sundsbo_mpi.runfile.opening import DAMAGED

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from sundsbo_mpi.composition import State
    from sundsbo_mpi.composition.estimators import Variables

FORMAT = "sundsbo-mpi-agent/1"
ALIGNMENT = 64
"""Bytes: where torch's memory begins.  Some matrix products round by where their input lies, which
is another place where it is a part of a message."""


class Spent(NamedTuple):
    """What an agent has spent since the beginning of the run."""

    rounds: int
    messages: int
    words: int
    """Turns in which the agents have exchanged words."""
    wall: float
    network: int
    """Bytes sent to agents on other nodes, by where the agents were when they were sent."""
    shared: int
    """Bytes sent to agents on the same node."""
    saving: float
    """Seconds to set aside for a checkpoint."""
    seconds: dict[str, float]
    bytes_to: dict[str, int]
    """By the receiving agent's number as text."""
    control: int = 0
    """Bytes of words; a checkpoint of a program that did not count them has none."""


class Moment(NamedTuple):
    """Everything that an agent goes on from; the rest follows from the configuration."""

    at: Position
    spent: Spent


class Expected(NamedTuple):
    """What an agent's file must be."""

    agent: int
    done: int
    """Iterations done."""
    digest: str
    """The SHA-256 of its bytes."""


def write_moment(path: Path, moment: Moment, agent: int) -> str:
    """Write an agent's file to the disk; return the SHA-256 of its bytes.

    HDF5 writes through ``Disk``, since it crashes where a disk fails under it; and not to memory,
    where a checkpoint's size once more may be what a large model leaves no room for.

    Raises:
        OSError: it cannot be written.
    """
    disk = Disk(path)
    try:
        with disk.blamed(), h5py.File(disk, "w") as file:
            _fill(file, moment, agent)
        disk.sync()
        disk.check()
        disk.seek(0)
        return hashlib.file_digest(disk, "sha256").hexdigest()
    finally:
        disk.close()


def _fill(file: h5py.File, moment: Moment, agent: int) -> None:
    tensors: list[Tensor] = []
    description = take_apart((moment.at.w, moment.at.state), tensors)
    file.attrs["format"] = FORMAT
    file.attrs["agent"] = agent
    file.attrs["done"] = moment.at.done
    for name, value in (("state", description), ("spent", moment.spent._asdict())):
        file[name] = json.dumps(value)
    for number, v in enumerate(tensors):
        stored = file.create_dataset(f"tensors/{number}", data=v.numpy(force=True))
        stored.attrs["offset"] = v.data_ptr() % ALIGNMENT


def read_moment(
    path: Path, expected: Expected, begun: tuple[Variables, State], device: torch.device
) -> Moment:
    """Read an agent's file.

    Args:
        path: Where it is.
        expected: What it must be.
        begun: What the method begins with on the task, which tells the form of what it goes on
            with.
        device: Where the tensors go.

    Raises:
        UsageError: it is not the file that was written, cannot be read, or is of another form.
    """
    try:
        with path.open("rb") as stored:
            if hashlib.file_digest(stored, "sha256").hexdigest() != expected.digest:
                raise ValueError("its bytes are not those that were written")
        with h5py.File(path, "r", locking=False) as file:
            _require(file, expected)
            found = put_together(json.loads(_own(file, "state")[()]), _tensors(file, path, device))
            spent = _spent(json.loads(_own(file, "spent")[()]))
    except DAMAGED as error:
        raise UsageError(
            f"the checkpoint's '{path}' cannot be used: {printable(reason(error))}; take an "
            "undamaged copy of its folder."
        ) from error
    try:
        w, state = _fitting(found, begun)
    except ValueError as error:
        raise UsageError(
            f"the checkpoint's '{path}' does not fit the task and the method: {error}; bring back "
            "task and program as they were then, or take an undamaged copy of its folder."
        ) from error
    return Moment(Position(expected.done, w, state), spent)


def _require(file: h5py.File, expected: Expected) -> None:
    if (file.attrs["format"], int(file.attrs["agent"])) != (FORMAT, expected.agent):
        raise ValueError(f"expected that of agent {expected.agent} in the format '{FORMAT}'")
    if (done := int(file.attrs["done"])) != expected.done:
        raise ValueError(f"it is of iteration {done}, its manifest of {expected.done}")


def _own(group: h5py.Group, name: str) -> h5py.Dataset:
    """Return a dataset whose numbers are in the file itself, all in one piece."""
    found = group[name] if _is_there(group, name) else None
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"it holds no '{name}'")
    plan = found.id.get_create_plist()
    if plan.get_layout() != h5py.h5d.CONTIGUOUS or plan.get_external_count():
        raise ValueError(f"its '{name}' is stored in another way than it was written")
    return found


def _is_there(group: h5py.Group, name: str) -> bool:
    """Whether the file has a part of that name, rather than a link that leads elsewhere."""
    return isinstance(group.get(name, getlink=True), h5py.HardLink)


def _tensors(file: h5py.File, path: Path, device: torch.device) -> list[Tensor]:
    """Return the tensors in the order of their numbers."""
    group = file["tensors"] if _is_there(file, "tensors") else None
    if not isinstance(group, h5py.Group):
        raise ValueError("it holds no 'tensors'")
    stored = [_own(group, str(number)) for number in range(len(group))]
    room = path.stat().st_size
    if any(v.nbytes != v.id.get_storage_size() or v.nbytes > room for v in stored):
        raise ValueError("it is too short for its tensors")
    return [_tensor(v, device) for v in stored]


def _tensor(stored: h5py.Dataset, device: torch.device) -> Tensor:
    values: np.ndarray[Any, Any] = stored[()]
    offset = int(stored.attrs["offset"])
    room = torch.empty(values.nbytes + 2 * ALIGNMENT, dtype=torch.uint8, device=device)
    begin = (offset - room.data_ptr()) % ALIGNMENT
    kept = torch.from_numpy(values)
    v = room[begin : begin + values.nbytes].view(kept.dtype).view(kept.shape)
    return v.copy_(kept)


def _spent(stored: dict[str, Any]) -> Spent:
    spent = Spent(**stored)
    counts = (spent.rounds, spent.messages, spent.words, spent.control, spent.network, spent.shared)
    counted = all(type(n) is int and 0 <= n < 2**63 for n in (*counts, *spent.bytes_to.values()))
    times = (spent.wall, spent.saving, *spent.seconds.values())
    if not (counted and all(type(t) in (int, float) and math.isfinite(t) for t in times)):
        raise ValueError("what the agent has spent is not in whole numbers and seconds")
    return spent


def _fitting(found: Any, begun: tuple[Variables, State]) -> tuple[Variables, State]:
    """Return w and state, of the form in which the method begins.

    D_hat lacks the variables that have no technique, once an iteration is done.
    """
    w, state = begun
    moved = getattr(found[1], "D_hat", None) if isinstance(found, tuple) and found[1:] else None
    if isinstance(moved, dict):
        kept = {v: D for v, D in state.D_hat.items() if v in moved or v in state.memory}
        state = state._replace(D_hat=kept)
    require_like(found, (w, state), "its state")
    return found  # type: ignore[no-any-return]

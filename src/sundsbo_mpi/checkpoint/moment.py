"""Where an agent stands between two iterations, in memory and in its file."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import torch

from sundsbo_mpi.agent import Position
from sundsbo_mpi.checkpoint.structure import put_together, take_apart
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile.opening import DAMAGED

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

FORMAT = "sundsbo-mpi-agent/1"
ALIGNMENT = 64
"""Bytes: where torch's memory begins.  Some matrix products round by where their input lies, which
is another place where it is a part of a message."""


class Spent(NamedTuple):
    """What an agent has spent since the beginning of the run."""

    rounds: int
    messages: int
    words: int
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


class Moment(NamedTuple):
    """Everything that an agent goes on from; the rest follows from the configuration."""

    at: Position
    spent: Spent


def write_moment(path: Path, moment: Moment, agent: int) -> str:
    """Write an agent's file to the disk; return the SHA-256 of its bytes.

    Raises:
        OSError: it cannot be written.
    """
    tensors: list[Tensor] = []
    description = take_apart((moment.at.w, moment.at.state), tensors)
    with h5py.File(path, "w-", locking=False) as file:
        file.attrs["format"] = FORMAT
        file.attrs["agent"] = agent
        file.attrs["done"] = moment.at.done
        for name, value in (("state", description), ("spent", moment.spent._asdict())):
            file[name] = json.dumps(value)
        for number, v in enumerate(tensors):
            stored = file.create_dataset(f"tensors/{number}", data=v.numpy(force=True))
            stored.attrs["offset"] = v.data_ptr() % ALIGNMENT
    with path.open("rb+") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
        os.fsync(written.fileno())
    return digest


def read_moment(path: Path, agent: int, digest: str, device: torch.device) -> Moment:
    """Read an agent's file.

    Raises:
        UsageError: it is not the file that the digest was taken of, or cannot be read.
    """
    try:
        with path.open("rb") as stored:
            if hashlib.file_digest(stored, "sha256").hexdigest() != digest:
                raise ValueError("its bytes are not those that were written")
        with h5py.File(path, "r", locking=False) as file:
            if (file.attrs["format"], int(file.attrs["agent"])) != (FORMAT, agent):
                raise ValueError(f"expected that of agent {agent} in the format '{FORMAT}'")
            tensors = [_tensor(v, device) for v in _ordered(file)]
            w, state = put_together(json.loads(file["state"][()]), tensors)
            spent = Spent(**json.loads(file["spent"][()]))
            return Moment(Position(int(file.attrs["done"]), w, state), spent)
    except DAMAGED as error:
        said = error.args[0] if isinstance(error, KeyError) else error
        raise UsageError(
            f"the checkpoint's '{path}' cannot be used: {' '.join(str(said).split())}; take an "
            "undamaged copy of its folder."
        ) from error


def _ordered(file: h5py.File) -> list[h5py.Dataset]:
    group = file.get("tensors", {})
    return [group[str(number)] for number in range(len(group))]


def _tensor(stored: h5py.Dataset, device: torch.device) -> Tensor:
    values: np.ndarray[Any, Any] = stored[()]
    room = torch.empty(values.nbytes + 2 * ALIGNMENT, dtype=torch.uint8, device=device)
    begin = (int(stored.attrs["offset"]) - room.data_ptr()) % ALIGNMENT
    kept = torch.from_numpy(values)
    v = room[begin : begin + values.nbytes].view(kept.dtype).view(kept.shape)
    return v.copy_(kept)

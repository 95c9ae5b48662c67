"""Agents' files that are not what was written, though their digests say so; and disks that fail."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from test_checkpoint import CPU, SPENT, moment

from sundsbo_mpi.checkpoint.moment import Expected, read_moment, write_moment
from sundsbo_mpi.errors import UsageError

FULL = f"""
import resource, sys
from pathlib import Path
from threading import Barrier
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
from test_checkpoint import manifest, moment
from together import ThreadTally
from sundsbo_mpi.checkpoint import Folder, Saver
from sundsbo_mpi.errors import AgreedError

tally, folder = ThreadTally(0, 1, Barrier(1), [None]), Folder(Path(sys.argv[1]))
saver = Saver(tally, folder, manifest, 0, print)
for limit in map(int, sys.argv[2:]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for done in (4, 5):
        saver.vital = done == 4
        try:
            saver.save(moment(done, length=20_000))
        except AgreedError as error:
            print(error)
"""


def test_a_disk_that_fills_is_told_in_one_sentence_wherever_it_is_full(tmp_path):
    write_moment(tmp_path / "whole.h5", moment(length=20_000), 0)
    size = (tmp_path / "whole.h5").stat().st_size
    limits = sorted({*range(0, size, size // 20), *range(100, 6000, 500), size - 2000, size - 1})
    words = [sys.executable, "-c", FULL, str(tmp_path), *map(str, limits)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.returncode == 0, "HDF5 crashes at the next use of its files, or at the end"
    said = [
        f"no checkpoint at iteration {k}: '{tmp_path}' cannot take it: File too large; make room, "
        "or choose another --checkpoint."
        for k in (4, 5)
    ]
    assert done.stdout.splitlines() == said * len(limits)
    assert [entry.name for entry in tmp_path.iterdir()] == ["whole.h5"]


def assert_refused(path, said, *, done=4):
    """Refuse what ``path`` holds, with its right digest, in one printable sentence."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    start = moment(0).at
    with pytest.raises(UsageError, match=said) as refused:
        read_moment(path, Expected(0, done, digest), (start.w, start.state), CPU)
    assert str(refused.value).isprintable()
    assert str(path) in str(refused.value)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "agent-00000.h5"
    write_moment(path, moment(), 0)
    return path


def replaced(file, name, **how):
    """Put another dataset in the place of one, with its attributes."""
    kept = dict(file[name].attrs)
    del file[name]
    file.create_dataset(name, **how).attrs.update(kept)


def test_an_iteration_other_than_the_manifests_is_refused(written):
    assert_refused(written, "it is of iteration 4, its manifest of 3", done=3)


@pytest.mark.parametrize(
    "how",
    [
        {"shape": (5,), "dtype": "f4", "external": [("/etc/passwd", 0, 20)]},
        {"data": np.zeros(5, "f4"), "chunks": (5,)},
        {"data": np.zeros(5, "f4"), "chunks": (5,), "compression": "gzip"},
        {"shape": (10**12,), "dtype": "f4"},
        {"shape": (5,), "dtype": "f4"},
    ],
)
def test_numbers_that_are_not_in_the_file_itself_are_not_read(written, how):
    with h5py.File(written, "r+") as file:
        replaced(file, "tensors/0", **how)
    assert_refused(written, "stored in another way than it was written|too short for its tensors")


def test_numbers_of_another_file_are_not_read(written, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["tensors/0"] = np.zeros(5, "f4")
    layout = h5py.VirtualLayout(shape=(5,), dtype="f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "tensors/0", shape=(5,))
    with h5py.File(written, "r+") as file:
        del file["tensors/0"]
        file.create_virtual_dataset("tensors/0", layout).attrs["offset"] = 0
    assert_refused(written, "'0' is stored in another way")


@pytest.mark.parametrize("name", ["tensors", "tensors/0", "state", "spent"])
@pytest.mark.parametrize("kind", ["soft", "external", "group", "gone"])
def test_links_and_other_things_are_not_followed(written, tmp_path, name, kind):
    with h5py.File(tmp_path / "other.h5", "w") as other, h5py.File(written, "r+") as file:
        file.copy(name, other, name)
        links = {
            "soft": h5py.SoftLink("/elsewhere"),
            "external": h5py.ExternalLink(str(tmp_path / "other.h5"), name),
        }
        file.move(name, "elsewhere")
        if kind == "group":
            file.create_group(name)
        elif kind != "gone":
            file[name] = links[kind]
    assert_refused(written, "holds no|description of the state is none")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros(7, "f4"), "its state.0.y is 7 numbers of float32, expected 5 numbers of float32"),
        (np.zeros((5, 1), "f4"), "its state.0.y is 5 x 1 numbers of float32"),
        (np.zeros((), "f4"), "cannot be used"),
        (np.zeros(5, "f8"), "its state.0.y is 5 numbers of float64"),
        (np.zeros(5, "i8"), "its state.0.y is 5 numbers of int64"),
        (np.zeros(5, "c8"), "its state.0.y is 5 numbers of complex64"),
        (np.zeros(5, "S4"), "cannot be used"),
    ],
)
def test_tensors_of_another_form_are_refused(written, values, said):
    with h5py.File(written, "r+") as file:
        replaced(file, "tensors/0", data=values)
    assert_refused(written, said)


NOTHING = {"named": "sundsbo_mpi.composition.techniques:Nothing", "parts": []}
STATE = "sundsbo_mpi.composition.algorithm:State"


def state(estimate=0, memory=0, D_hat=0, name=STATE):
    parts = [{"value": None} if part == 0 else part for part in (estimate, memory, D_hat)]
    return {"tuple": [{"dict": []}, {"named": name, "parts": parts}]}


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ({"value": None}, "its state is NoneType, expected a tuple of 2"),
        ({"tuple": []}, "its state is a tuple of 0, expected a tuple of 2"),
        ({"tuple": [{"dict": []}, {"value": None}]}, "its state.0 is one of nothing, expected"),
        (state(), "its state.0 is one of nothing, expected one of y, x"),
        ({"tuple": [{"dict": [["y"]]}]}, "cannot be used"),
        ({"dict": [["\x1b[31m", {"value": 1}]]}, "expected a tuple"),
        (state(name="sundsbo_mpi.\x1b[31m:State"), "does not know"),
        (json.loads("[" * 800 + "]" * 800), "description of the state is none"),
    ],
)
def test_states_of_another_form_are_refused(written, description, said):
    with h5py.File(written, "r+") as file:
        del file["state"]
        file["state"] = json.dumps(description)
    assert_refused(written, said)


@pytest.mark.parametrize(
    ("place", "part", "said"),
    [
        ((), {"value": None}, "its state.1 is NoneType, expected State"),
        (("memory", "y"), NOTHING, "memory.y is Nothing, expected Tracking"),
        (("memory",), {"dict": []}, "memory is one of nothing, expected one of y, x"),
        (("estimate", 1), {"value": 3.0}, "estimate.1 is float, expected int"),
        (("estimate", 1), {"value": True}, "estimate.1 is bool, expected int"),
        (("estimate", 2), {"value": 1}, "estimate.2 is int, expected bool"),
        (("estimate",), {"tuple": []}, "estimate is a tuple of 0, expected a tuple of 5"),
        (("D_hat",), {"dict": []}, "D_hat is one of nothing, expected one of y, x"),
        (("D_hat",), {"value": 2}, "D_hat is int, expected one of y, x"),
        (("D_hat",), {"dict": [["z", {"tensor": 0}]]}, "D_hat is one of z, expected one of y, x"),
    ],
)
def test_a_part_of_a_state_of_another_form_is_refused(written, place, part, said):
    fields = ("estimate", "memory", "D_hat")
    with h5py.File(written, "r+") as file:
        description = json.loads(file["state"][()])
        holder, key = description["tuple"], 1
        if place:
            holder, key = holder[1]["parts"], fields.index(place[0])
        if len(place) == 2 and "tuple" in holder[key]:
            holder, key = holder[key]["tuple"], place[1]
        elif len(place) == 2:
            pairs = holder[key]["dict"]
            holder, key = next(pair for pair in pairs if pair[0] == place[1]), 1
        holder[key] = part
        del file["state"]
        file["state"] = json.dumps(description)
    assert_refused(written, said)


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": "a"},
        {"messages": None},
        {"words": True},
        {"control": 0.5},
        {"network": -1},
        {"shared": 2**63},
        {"wall": "x"},
        {"wall": float("nan")},
        {"saving": float("inf")},
        {"seconds": {"gradient": "x"}},
        {"seconds": []},
        {"bytes_to": 3},
        {"bytes_to": {"1": 0.5}},
        {"more": 1},
    ],
)
def test_what_was_spent_is_counted(written, change):
    with h5py.File(written, "r+") as file:
        del file["spent"]
        file["spent"] = json.dumps(SPENT._asdict() | change)
    assert_refused(written, "cannot be used: ")


def test_a_variable_without_a_technique_needs_no_direction(written):
    """The method's start has one, of zeros; an iteration does not."""
    kept, begun = moment().at, moment(0).at
    memory = {"y": kept.state.memory["y"]}
    at = kept._replace(state=kept.state._replace(memory=memory, D_hat={"y": kept.w["y"]}))
    digest = write_moment(written.with_name("b.h5"), moment()._replace(at=at), 0)
    start = (begun.w, begun.state._replace(memory={"y": begun.state.memory["y"]}))
    found = read_moment(written.with_name("b.h5"), Expected(0, 4, digest), start, CPU)
    assert list(found.at.state.D_hat) == ["y"]
    assert torch.equal(found.at.state.D_hat["y"], kept.w["y"])

"""Runs that end early and go on from their checkpoints: the command, its file, its refusals."""

import hashlib
import json
import shutil

import h5py
import numpy as np
import pytest
from programs import assert_refused

DIGITS = ("--iterations", 12, "--eval-every", 5, "--save-final", "--estimator", "momentum")


@pytest.fixture
def topology(sundsbo, tmp_path):
    def topology(kind, agents):
        path = tmp_path / f"{kind}{agents}.npz"
        made = sundsbo("topology", kind, "--agents", agents, "-o", path)
        assert made.returncode == 0, made.stderr
        return path

    return topology


def same_run(one, other):
    """Compare every number that is no time, and the last iterates, bit for bit."""
    with h5py.File(one) as a, h5py.File(other) as b:
        assert {a.attrs["status"], b.attrs["status"]} <= {"finished", b"finished"}
        names = []
        a["metrics"].visit(names.append)
        for name in names:
            if isinstance(a["metrics"][name], h5py.Dataset) and not set(
                name.replace("/", "_").split("_")
            ) & {"s", "seconds", "crc32"}:
                found, expected = a["metrics"][name][()], b["metrics"][name][()]
                assert np.array_equal(found, expected, equal_nan=True), name
        for v in a["final"]:
            assert (a["final"][v][()] == b["final"][v][()]).all(), v


def rewrite(folder, agent, change):
    """Change the description of an agent's state, and its digest with it."""
    path, manifest = folder / f"agent-{agent:05}.h5", folder / "manifest.json"
    with h5py.File(path, "r+") as file:
        description = json.loads(file["state"][()])
        change(description)
        del file["state"]
        file["state"] = json.dumps(description)
    told = json.loads(manifest.read_text())
    told["digests"][agent] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(told))


def contents(folder):
    """Return all that is in a folder."""
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def test_what_agents_cannot_go_on_with_is_refused_in_one_sentence(
    mpirun, sundsbo, topology, tmp_path
):
    """In the end one of them has lost what it knows of the second round."""
    first = ("--task", "quadratic", "--iterations", 4, "--set", "algorithm.compressor=quantiser")
    made = mpirun(2, "--topology", topology("ring", 2), *first, "--checkpoint", "saved")
    assert made.returncode == 0, made.stderr
    newest = tmp_path / "saved" / "iteration-000000004"
    shutil.rmtree(tmp_path / "saved" / "iteration-000000000")
    before = contents(tmp_path)
    few = sundsbo("resume", "saved")
    assert_refused(few, "2 agents but 1 rank started: use mpirun -n 2")
    assert_refused(mpirun(2, "resume", "saved", "--iterations", 2), "has done 4 already")
    other = mpirun(2, "resume", "saved", "--set", "run.dtype=float32")
    assert_refused(other, "run.dtype is 'float32', but")
    assert contents(tmp_path) == before

    def forget(description):
        (feedback, *_) = description["tuple"][1]["parts"]
        assert feedback["named"].endswith(":Feedback")
        feedback["parts"][1]["tuple"].pop()

    rewrite(newest, 1, forget)
    refused = mpirun(2, "resume", "saved", "--iterations", 8)
    said = "replicas is a tuple of 1, expected a tuple of 2; bring back task and"
    assert_refused(refused, said)


def test_a_resumed_run_is_one_that_was_not_interrupted(mpirun, topology, tmp_path):
    """On images, whose matrix products round by where their input lies, and another transport."""
    star = topology("star", 3)
    whole = mpirun(3, "--topology", star, *DIGITS, "--output", "whole.h5")
    assert whole.returncode == 0, whole.stderr
    keep = ("--checkpoint", tmp_path / "saved dir", "--checkpoint-every", 7)
    part = mpirun(3, "--topology", star, *DIGITS, *keep, "--output", "run.h5", "--transport", "p2p")
    assert part.returncode == 0, part.stderr
    shutil.rmtree(tmp_path / "saved dir" / "iteration-000000012")
    # As if killed after the last checkpoint: rows and status of the file are of a later time.
    rest = mpirun(3, "resume", "saved dir", "--transport", "neighbor")
    assert rest.returncode == 0, rest.stderr
    assert "resumed after 7 iterations" in rest.stderr
    same_run(tmp_path / "whole.h5", tmp_path / "run.h5")
    assert sorted(p.name for p in (tmp_path / "saved dir").glob("iter*")) == [
        "iteration-000000007",
        "iteration-000000012",
    ]


def test_a_run_is_made_longer_and_goes_on_over_other_links(mpirun, topology, tmp_path):
    ring, star = topology("ring", 3), topology("star", 3)
    first = ("--task", "quadratic", "--iterations", 30, "--eval-every", 10, "--output", "run.h5")
    made = mpirun(3, "--topology", ring, *first, "--checkpoint", "saved")
    assert made.returncode == 0, made.stderr
    longer = mpirun(3, "resume", "saved", "--iterations", 50)
    assert longer.returncode == 0, longer.stderr
    ring.unlink()
    other = mpirun(3, "resume", "saved", "--iterations", 60, "--topology", star)
    assert other.returncode == 0, other.stderr
    assert "the weights are others than before" in other.stderr
    with h5py.File(tmp_path / "run.h5") as run:
        rows = int(run["metrics/rows"][()])
        assert run["metrics/iteration"][:rows].tolist() == [0, 10, 20, 30, 40, 50, 60]
        told = [json.loads(text) for text in run["events"][()]]
        assert [(event["iteration"], event["kind"]) for event in told] == [
            (30, "resumed"),
            (50, "resumed"),
        ]
        assert "rho" not in told[0]["details"]
        assert 0 < told[1]["details"]["rho"] < 1
        defects = run["metrics/invariant/y"][1:rows]
        assert (defects < 1e-10).all(), "kept over the new links, too"
        sent = run["metrics/agents/bytes_payload"][:rows]
        assert (np.diff(sent, axis=0) > 0).all(), "also by those who have fewer neighbours now"
        assert (sent.sum(axis=1) == run["metrics/edges/bytes"][:rows].sum(axis=1)).all()


def test_what_cannot_be_resumed_is_refused_in_one_sentence(sundsbo, in_turn, topology, tmp_path):
    ring = topology("ring", 1)
    first = ("--topology", ring, "--task", "quadratic", "--iterations", 20, "--output", "run.h5")
    keep = ("--checkpoint", "saved")
    assert sundsbo(*first, *keep).returncode == 0
    before = (tmp_path / "run.h5").read_bytes(), sorted((tmp_path / "saved").iterdir())
    cases = [
        (("resume", "nowhere"), "there is no checkpoint in 'nowhere'"),
        (("resume", "saved", "--set", "task.name=toy"), "task.name is 'toy', but"),
        (("resume", "saved", "--checkpoint-every", "often"), "expected iterations, as in 100"),
        ((*first[:-1], "other.h5", *keep), "has checkpoints already: go on from them"),
    ]
    for refused, (_, said) in zip(in_turn([words for words, _ in cases]), cases, strict=True):
        assert_refused(refused, said)
    ring.unlink()
    assert_refused(sundsbo("resume", "saved", "--iterations", 60), "ring1.npz")
    assert before == ((tmp_path / "run.h5").read_bytes(), sorted((tmp_path / "saved").iterdir()))
    assert not (tmp_path / "other.h5").exists()

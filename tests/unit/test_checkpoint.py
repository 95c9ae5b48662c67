"""The folder of a run's checkpoints: what is whole, what is kept, what is refused."""

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import h5py
import pytest
import torch
from together import complaints, together

from sundsbo_mpi.agent import Position
from sundsbo_mpi.checkpoint import About, Folder, Manifest, Saver
from sundsbo_mpi.checkpoint.folder import agent_file
from sundsbo_mpi.checkpoint.moment import (
    ALIGNMENT,
    Expected,
    Moment,
    Spent,
    read_moment,
    write_moment,
)
from sundsbo_mpi.checkpoint.resuming import (
    candidates,
    changed_surroundings,
    load,
    require_agents,
    require_same_run,
)
from sundsbo_mpi.checkpoint.structure import put_together, take_apart
from sundsbo_mpi.composition import State
from sundsbo_mpi.composition.techniques import Extra, Nothing, Tracking
from sundsbo_mpi.errors import AgreedError, UsageError

CPU = torch.device("cpu")
SPENT = Spent(4, 8, 2, 1.5, 0, 64, 0.1, {"gradient": 0.5}, {"1": 64}, 16)
CONFIG = {
    "run": {"iterations": 9, "seed": 0, "transport": "auto"},
    "topology": {"file": "ring.npz"},
    "task": {"name": "quadratic", "noise": 0.1},
    "algorithm": {"name": "sun-dsbo-gt"},
    "output": {"file": None},
}
AGENTS = 3


def moment(done=4, agent=0, length=5):
    w = {
        "y": torch.arange(float(length)) + agent,
        "x": torch.tensor([float(done)], dtype=torch.float64),
    }
    memory = {"y": Tracking(w["y"] + 1, w["y"] * 2), "x": Nothing()}
    state = State((None, 3, True, 0.5, {"deep": (w["y"],)}), memory, w)
    return Moment(Position(done, w, state), SPENT)


def about():
    return About(AGENTS, list(range(AGENTS)), CONFIG, "weights", "task")


def manifest(iteration=0):
    return Manifest(iteration, about(), "run.h5", [1] * AGENTS, [])


def agent_of(tally):
    """Return an agent that begins with what ``moment`` has at iteration 0."""
    start = moment(0, tally.agent).at
    algorithm = SimpleNamespace(start=lambda task: (task.w, task.state))
    return SimpleNamespace(tally=tally, algorithm=algorithm, task=start)


def loaded(tally, found):
    return load(agent_of(tally), found, CPU)


def keep(folder, *dones, every=0):
    """Let three agents keep checkpoints; return what each was told."""

    def work(tally):
        notes = []
        saver = Saver(tally, Folder(folder), manifest, every, notes.append)
        for done in dones:
            saver.save(moment(done, tally.agent))
        return notes

    folder.mkdir(exist_ok=True)
    return together(AGENTS, work)


def test_a_state_comes_back_as_it_was(tmp_path):
    kept = moment()
    digest = write_moment(tmp_path / "a.h5", kept, 0)
    found = read_moment(tmp_path / "a.h5", Expected(0, 4, digest), (kept.at.w, kept.at.state), CPU)
    assert found.spent == SPENT
    assert found.at.done == 4
    assert list(found.at.w) == ["y", "x"], "in their order, by which numbers are blamed"
    assert torch.equal(found.at.w["x"], kept.at.w["x"])
    assert found.at.w["x"].dtype == torch.float64
    memory = found.at.state.memory
    assert isinstance(memory["y"], Tracking)
    assert isinstance(memory["x"], Nothing)
    assert torch.equal(memory["y"].D_hat, kept.at.w["y"] * 2)
    first, second, third, fourth, deep = found.at.state.estimate
    assert (first, second, third, fourth) == (None, 3, True, 0.5)
    assert torch.equal(deep["deep"][0], kept.at.w["y"])
    assert found.at.previous is None


@pytest.mark.parametrize("skipped", [0, 1, 3, 7, 16])
def test_numbers_lie_where_they_lay_within_a_line_of_memory(tmp_path, skipped):
    v = torch.arange(64.0)[skipped:]
    begun = ({"x": v}, State((), {}, {}))
    digest = write_moment(tmp_path / "a.h5", Moment(Position(0, *begun), SPENT), 0)
    found = read_moment(tmp_path / "a.h5", Expected(0, 0, digest), begun, CPU).at.w["x"]
    assert torch.equal(found, v)
    assert found.data_ptr() % ALIGNMENT == v.data_ptr() % ALIGNMENT


def test_what_no_file_can_hold_is_a_mistake_of_the_program():
    with pytest.raises(TypeError, match="holds a list"):
        take_apart({"m": [1]}, [])


@pytest.mark.parametrize(
    "description",
    [
        {"named": "os:system", "parts": []},
        {"named": "sundsbo_mpi.agent:Agent", "parts": []},
        {"named": "sundsbo_mpi.ranks.control:Stop", "parts": [{"value": 1}]},
        {"named": "sundsbo_mpi.nowhere:Extra", "parts": []},
        {"named": f"{Extra.__module__}:Extra", "parts": []},
        {"named": f"{Extra.__module__}:{Extra.__qualname__}._make", "parts": []},
        {"tensor": 1},
        {"tensor": -1},
        {"value": "text"},
        {"dict": 3},
        [],
        None,
    ],
)
def test_nothing_but_states_is_made_of_a_description(description):
    with pytest.raises(ValueError, match="version"):
        put_together(description, [torch.zeros(1)])


def test_the_last_two_are_kept_and_the_newest_is_found(tmp_path):
    folder = tmp_path / "saved"
    assert keep(folder, 0, 3, 6, 9) == [[], [], []]
    names = [path.name for path in Folder(folder).newest_first()]
    assert names == ["iteration-000000009", "iteration-000000006"]
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(names)
    found = candidates(folder)
    assert [c.manifest.iteration for c in found] == [9, 6]
    for agent, (was, said) in enumerate(together(AGENTS, lambda tally: loaded(tally, found))):
        assert said == []
        assert was.at.done == 9
        assert torch.equal(was.at.w["y"], moment(9, agent).at.w["y"])


def test_a_checkpoint_of_the_same_iteration_is_written_once(tmp_path):
    folder = tmp_path / "saved"
    keep(folder, 3, 3)
    first = (folder / "iteration-000000003").stat().st_ino
    keep(folder, 3)
    assert (folder / "iteration-000000003").stat().st_ino != first, "by another run"
    assert len(Folder(folder).newest_first()) == 1


def damage(path, how):
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    else:
        path.write_bytes(b"")


@pytest.mark.parametrize("how", ["gone", "cut", "flipped", "empty"])
def test_where_one_agents_file_is_damaged_all_take_the_checkpoint_before(tmp_path, how):
    folder = tmp_path / "saved"
    keep(folder, 3, 6)
    damage(agent_file(folder / "iteration-000000006", 1), how)
    found = candidates(folder)
    for was, said in together(AGENTS, lambda tally: loaded(tally, found)):
        assert was.at.done == 3
        assert len(said) == 1
        assert "agent-00001.h5' cannot be used" in said[0]
    damage(agent_file(folder / "iteration-000000003", 2), how)
    told = complaints(AGENTS, lambda tally: loaded(tally, found), AgreedError)
    assert len(set(told)) == 1
    assert "iteration-000000006/agent-00001.h5' cannot be used" in told[0]


@pytest.mark.parametrize("how", ["gone", "cut", "empty"])
def test_without_its_manifest_a_checkpoint_does_not_count(tmp_path, how):
    folder = tmp_path / "saved"
    keep(folder, 3, 6)
    damage(folder / "iteration-000000006" / "manifest.json", how)
    assert [c.manifest.iteration for c in candidates(folder)] == [3]
    damage(folder / "iteration-000000003" / "manifest.json", how)
    with pytest.raises(UsageError, match=r"there is no checkpoint|its manifest\.json"):
        candidates(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "sundsbo-mpi-checkpoint/0"}, "has the format"),
        ({"about": {"agents": 2}}, "does not tell of the 3 of 2 agents"),
        ({"about": {"numbers": [0, 1, 1]}}, "does not tell of the 3 of 3 agents"),
        ({"about": {"numbers": []}, "threads": [], "digests": []}, "of the 0 of 3 agents"),
        ({"about": {"numbers": [0, 1, "2"]}}, "something else than numbers"),
        ({"threads": None}, "its manifest.json"),
        ({"about": {"config": {}}}, "lacks 'run'"),
        ({"about": {"config": []}}, "its manifest.json"),
        ({"about": {"config": CONFIG | {"run": 5}}}, "has 5 for the table 'run'"),
        ({"about": {"config": CONFIG | {"foo": 3}}}, "has a table 'foo', which no"),
        ({"about": {"config": CONFIG | {"foo": {"a": 1}}}}, "has a table 'foo', which no"),
        ({"about": {"config": CONFIG | {"task": {"name": 5}}}}, "a setting task.name 5, expected"),
        ({"about": {"config": CONFIG | {"topology": {"file": 5}}}}, "topology.file 5, expected"),
        ({"about": {"config": CONFIG | {"task": {}}}}, "lacks 'name'"),
        ({"about": {"config": CONFIG | {"topology": {"file": "a\0b"}}}}, "topology.file 'a.x00b'"),
        ({"about": {"surroundings": []}}, "what the bits of a result depend on"),
        ({"about": {"surroundings": {"torch": 1}}}, "what the bits of a result depend on"),
        ({"about": {"task_sha256": 1}}, "what the bits of a result depend on"),
        ({"about": {"agents": 3.0}}, "does not tell of the 3 of 3.0 agents"),
        ({"about": 3}, "its manifest.json"),
        ({"iteration": "6"}, "has '6' for its iteration"),
        ({"iteration": True}, "has True for its iteration"),
        ({"iteration": -1}, "has -1 for its iteration"),
        ({"run_file": 5}, "a run file 5, expected text"),
        ({"run_file": "a\0b"}, "a run file 'a.x00b', expected text"),
        ({"run_file": "a\ud800b"}, "a run file 'a.ud800b', expected text"),
        ({"threads": [1, 0, 1]}, "has 0 threads for an agent"),
        ({"threads": [1, 1, -1]}, "has -1 threads for an agent"),
        ({"threads": [200_000, 1, 1]}, "has 200000 threads for an agent, of at most 4096"),
        ({"threads": [1, 10**12, 1]}, "has 1000000000000 threads for an agent"),
        ({"threads": [1, True, 1]}, "something else than numbers"),
        ({"threads": [1, 1]}, "does not tell of the 3 of 3 agents"),
        ({"format": "\x1b[31m"}, "the format '.x1b.31m'"),
        ({"extra": 1}, "unexpected keyword"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(tmp_path, change, said):
    folder = tmp_path / "saved"
    keep(folder, 6)
    path = folder / "iteration-000000006" / "manifest.json"
    content = json.loads(path.read_text())
    inner = change.get("about")
    if isinstance(inner, dict):
        change = change | {"about": content["about"] | inner}
    path.write_text(json.dumps(content | change))
    with pytest.raises(UsageError, match=said):
        candidates(folder)


def test_the_name_of_a_run_file_need_not_be_text(tmp_path):
    folder = tmp_path / "saved"
    keep(folder, 6)
    path = folder / "iteration-000000006" / "manifest.json"
    name = os.fsdecode(b"/tmp/caf\xe9\n.h5")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run_file": name}))
    assert candidates(folder)[0].manifest.run_file == name


@pytest.mark.parametrize("change", [{"numbers": [0, 1]}, {"topology_sha256": "other"}])
def test_a_checkpoint_from_before_a_change_does_not_stand_in_for_one_after_it(tmp_path, change):
    folder = tmp_path / "saved"
    keep(folder, 3, 6)
    path = folder / "iteration-000000003" / "manifest.json"
    content = json.loads(path.read_text())
    content["about"] |= change
    for name in ("threads", "digests"):
        content[name] = content[name][: len(content["about"]["numbers"])]
    path.write_text(json.dumps(content))
    assert [c.manifest.iteration for c in candidates(folder)] == [6]


def test_a_folder_is_known_by_any_path_that_leads_there(tmp_path, monkeypatch):
    keep(tmp_path / "saved", 3)
    (tmp_path / "link").symlink_to("saved")
    monkeypatch.chdir(tmp_path)
    assert Folder(tmp_path / "saved").is_at("link/../saved")
    assert Folder(tmp_path / "link").is_at("saved")
    assert not Folder(tmp_path / "saved").is_at(str(tmp_path))


def test_leftovers_are_removed_and_other_files_are_not(tmp_path):
    folder = tmp_path / "saved"
    keep(folder, 3)
    (folder / ".iteration-000000006.0123abcd.part").mkdir()
    (folder / ".iteration-000000006.0123abcd.part" / "agent-00000.h5").touch()
    (folder / "notes.txt").touch()
    (folder / "iteration-7").mkdir()
    own = Folder(folder)
    own.claim(resumed=True, overwrite=False)
    left = {entry.name for entry in folder.iterdir()} - {".lock"}
    assert left == {"iteration-000000003", "notes.txt", "iteration-7"}
    own.release()


def test_two_runs_never_keep_checkpoints_in_one_folder(tmp_path):
    own, other = Folder(tmp_path / "saved"), Folder(tmp_path / "saved")
    own.claim(resumed=False, overwrite=False)
    with pytest.raises(UsageError, match="another run keeps its checkpoints"):
        other.claim(resumed=True, overwrite=True)
    own.release()
    other.claim(resumed=False, overwrite=False)
    other.release()


def test_a_file_system_without_locks_will_do(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    own = Folder(tmp_path / "saved")
    own.claim(resumed=False, overwrite=False)
    own.release()


def test_checkpoints_of_another_run_are_not_replaced_unasked(tmp_path):
    folder = tmp_path / "saved"
    keep(folder, 3)
    own = Folder(folder)
    with pytest.raises(UsageError, match="has checkpoints already: go on from them"):
        own.claim(resumed=False, overwrite=False)
    own.release()
    own.claim(resumed=False, overwrite=True)
    assert own.newest_first() == []
    own.release()


@pytest.mark.parametrize("where", ["missing/saved", "file", "loop", "loop/saved", "a\0b"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, where):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert not Folder(tmp_path / where).is_at(str(tmp_path / "other"))
    with pytest.raises(UsageError, match="no checkpoints can be kept in"):
        Folder(tmp_path / where).claim(resumed=False, overwrite=False)


class FullDisk:
    """Lets the first ``room`` files of agents be written, and no more."""

    def __init__(self, monkeypatch, room):
        self.room, self._write = room, h5py.File
        monkeypatch.setattr("sundsbo_mpi.checkpoint.saving.write_moment", self.write)

    def write(self, path, kept, agent):
        self.room -= 1
        if self.room < 0:
            path.write_bytes(b"half")
            raise OSError(28, os.strerror(28))
        return write_moment(path, kept, agent)


def test_a_full_disk_leaves_the_checkpoint_before_and_the_run_goes_on(tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    FullDisk(monkeypatch, AGENTS + 1)
    notes = keep(folder, 3, 6)
    assert all(len(told) == 1 and "no checkpoint at iteration 6" in told[0] for told in notes)
    assert notes[0][0] == (
        f"no checkpoint at iteration 6: '{folder}' cannot take it: No space left on device; make "
        "room, or choose another --checkpoint."
    )
    assert [path.name for path in folder.iterdir()] == ["iteration-000000003"]


def test_a_run_whose_first_checkpoint_cannot_be_kept_does_not_begin(tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    folder.mkdir()
    FullDisk(monkeypatch, 1)
    told = complaints(
        AGENTS,
        lambda tally: Saver(tally, Folder(folder), manifest, 0, print).save(moment(0, tally.agent)),
        AgreedError,
    )
    assert len(set(told)) == 1
    assert told[0].startswith(f"no checkpoint at iteration 0: '{folder}' cannot take it: No space")
    assert told[0].count("no checkpoint") == 1
    assert list(folder.iterdir()) == []


def test_checkpoints_are_due_every_so_often(tmp_path):
    tally = SimpleNamespace(is_root=True)
    one = Saver(tally, Folder(tmp_path), manifest, 4, print)
    assert [done for done in range(1, 13) if one.due(done)] == [4, 8, 12]
    assert not any(Saver(tally, Folder(tmp_path), manifest, 0, print).due(d) for d in range(1, 13))


def changed(table, **values):
    return {**CONFIG, table: {**CONFIG[table], **values}}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (changed("task", name="toy"), "task.name is 'toy', but the checkpoint is of a run with"),
        (changed("task", noise=0.2), "task.noise is 0.2"),
        (changed("algorithm", name="sun-dsbo-se"), "algorithm.name"),
        (changed("algorithm", step_x=1.0), "algorithm.step_x is 1.0"),
        (changed("run", seed=1), "run.seed is 1"),
        (changed("run", iterations=3), "has done 4 already"),
    ],
)
def test_another_run_cannot_go_on_from_a_checkpoint(config, said):
    with pytest.raises(UsageError, match=said):
        require_same_run(manifest(4), config)


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        changed("run", iterations=100),
        changed("run", transport="p2p"),
        changed("topology", file="elsewhere/torus.npz"),
        changed("output", file="other.h5"),
    ],
)
def test_what_no_iterate_depends_on_and_the_length_may_change(config):
    require_same_run(manifest(4), config)


def test_another_number_of_ranks_is_refused(tmp_path):
    require_agents(manifest(), tmp_path, AGENTS)
    with pytest.raises(UsageError, match="has 3 agents but 4 ranks started: use mpirun -n 3"):
        require_agents(manifest(), tmp_path, 4)


def test_what_may_change_bits_is_said():
    assert changed_surroundings(about(), about()) == []
    other = replace(about(), surroundings={**about().surroundings, "torch": "1.0"})
    (said,) = changed_surroundings(other, about())
    assert "kept with torch 1.0" in said
    assert len(changed_surroundings(about(), replace(about(), task_sha256="edited"))) == 1


def test_what_a_manifest_says_does_not_steer_a_terminal():
    steering = {"to\x1b[31mrch\n": "x\x1b[0m" + 3000 * "x"}
    said = changed_surroundings(replace(about(), surroundings=steering), about())
    assert "kept with to\\x1b[31mrch\\n x\\x1b[0mxxx" in said[0]
    assert said[0].isprintable()
    assert len(said[0]) < 400
    with pytest.raises(UsageError) as refused:
        require_same_run(
            replace(manifest(4), about=replace(about(), config=changed("task", **{"a\x1b[1m": 1}))),
            changed("task", **{"a\x1b[1m": 2}),
        )
    assert str(refused.value).isprintable()


def test_a_kill_while_old_checkpoints_are_removed_leaves_none_that_is_half(tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    keep(folder, 3, 6)

    def killed(path, **_):
        agent_file(path, 0).unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", killed)
    one = Folder(folder)
    hidden = one.begin(9)
    (hidden / "manifest.json").touch()
    with pytest.raises(KeyboardInterrupt):
        one.publish(hidden)
    for path in one.newest_first()[1:]:
        assert all(agent_file(path, agent).is_file() for agent in range(AGENTS))
    assert [path.name for path in one.newest_first()] == [
        "iteration-000000009",
        "iteration-000000006",
    ]

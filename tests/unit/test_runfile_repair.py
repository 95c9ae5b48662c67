"""Damaged run files: what is whole is found, and nothing that is not."""

from __future__ import annotations

import contextlib
import io
import random
import re

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from printed import line
from rich.console import Console
from synthetic_run import AGENTS, plan, resumption, row
from test_runfile import assert_holds, series_of, write

from sundsbo_mpi.cli.repair import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import (
    DamagedError,
    Event,
    RunFile,
    read_damaged,
    read_final,
    read_run,
    repair,
)
from sundsbo_mpi.runfile.salvaged_rows import ESSENTIAL
from sundsbo_mpi.runfile.schema import values
from sundsbo_mpi.summary import render_summary

ROWS = 5
FINAL = plan(save_final=True)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The path of a file with events and final iterates, and where its series lie in it."""
    path = tmp_path_factory.mktemp("sound") / "a.h5"
    with contextlib.closing(RunFile.create(path, FINAL)) as run:
        run.append(row(0))
        run.note([Event(0, "odd", "said")])
        for index in range(1, ROWS):
            run.append(row(index))
        for variable, d in FINAL.variables.items():
            for agent in range(AGENTS):
                run.write_final(variable, agent, np.full(d, agent + 0.5))
        run.finish("finished")
    return path


def places(path):
    """Where the numbers of a row lie: (series, first byte, bytes of a row)."""
    found = []

    def visit(name, node):
        if isinstance(node, h5py.Dataset) and node.shape:
            found.append((name, node.id.get_offset(), node[:1].nbytes))

    with h5py.File(path) as file:
        file["metrics"].visititems(visit)
    return found


def assert_true(data):
    """Whatever number is there is the one that was written."""
    for index, k in enumerate(data.iteration):
        expected = values(row(int(k) // 10))
        for name, series in series_of(data).items():
            known = ~np.isnan(series[index])
            np.testing.assert_array_equal(
                series[index][known], np.asarray(expected[name])[known], err_msg=name
            )


def shown(data):
    words = Console(width=160, file=io.StringIO())
    words.print(render_summary(data))
    return words.file.getvalue()


def test_a_file_that_is_cut_anywhere(sound, tmp_path):
    content = sound.read_bytes()
    found = {}
    for size in [*range(0, len(content), 211), *range(len(content) - 5, len(content))]:
        cut, out = tmp_path / f"{size}.h5", tmp_path / f"{size}-out.h5"
        cut.write_bytes(content[:size])
        with pytest.raises(DamagedError):
            read_run(cut)
        try:
            data = read_damaged(cut)
        except UsageError as error:
            assert re.search(r"no evaluation in it is whole|as an HDF5 file", str(error))  # noqa: PT017
            with pytest.raises(UsageError):
                repair(cut, out, overwrite=False)
            assert not out.exists()
            found[size] = 0
            continue
        assert_true(data)
        assert f"{data.rows} of 6 planned evaluations are whole" in data.damage
        assert "damaged" in shown(data)
        assert repair(cut, out, overwrite=False) == data.damage
        mended = read_run(out)
        assert_true(mended)
        for name, series in series_of(data).items():
            np.testing.assert_array_equal(series_of(mended)[name], series, err_msg=name)
        assert mended.events[-1].sentence == data.damage
        assert cut.read_bytes() == content[:size]
        found[size] = data.rows
        out.unlink()
        cut.unlink()
    essential = [(place, width) for name, place, width in places(sound) if name in ESSENTIAL]
    for size, rows in found.items():
        there = [(size - place) // width for place, width in essential]
        assert rows == min(max(min(there), 0), ROWS), size
    assert sum(rows == ROWS for rows in found.values()) > 10


def test_what_a_cut_takes_is_named_and_not_a_number(sound, tmp_path):
    cut = tmp_path / "cut.h5"
    starts = {name: (place, size) for name, place, size in places(sound)}
    place, size = starts["agents/seconds_wait"]
    cut.write_bytes(sound.read_bytes()[: place + 2 * size])
    with pytest.raises(UsageError):
        repair(cut, cut, overwrite=False)
    data = read_damaged(cut)
    assert_true(data)
    # Two rows of it are there, the others and what lies behind is not.
    assert np.isfinite(data.agents["seconds_wait"][:2]).all()
    assert np.isnan(data.agents["seconds_wait"][2:]).all()
    assert np.isfinite(data.agents["bytes_payload"]).all()
    assert "agents/seconds_wait" in data.damage
    assert "final/theta" in data.damage or "more" in data.damage


def test_a_cut_behind_the_rows_costs_what_lies_there_alone(sound, tmp_path):
    cut, out = tmp_path / "cut.h5", tmp_path / "out.h5"
    with h5py.File(sound) as file:
        places = {name: file["final"][name].id.get_offset() for name in file["final"]}
    last = max(places, key=places.__getitem__)
    cut.write_bytes(sound.read_bytes()[: places[last] + 8])
    repair(cut, out, overwrite=False)
    kept = read_final(out)
    assert last not in kept
    for variable, saved in kept.items():
        expected = np.arange(AGENTS)[:, None] + np.full(FINAL.variables[variable], 0.5)
        np.testing.assert_array_equal(saved, expected)


@pytest.mark.parametrize("index", [0, 2, ROWS - 1])
def test_a_row_with_an_altered_byte_is_left_out(sound, tmp_path, index):
    draw = random.Random(index)
    for name, place, size in places(sound):
        content = bytearray(sound.read_bytes())
        content[place + index * size + draw.randrange(size)] ^= 1 << draw.randrange(8)
        odd = tmp_path / "odd.h5"
        odd.write_bytes(content)
        with pytest.raises(DamagedError, match="evaluation"):
            read_run(odd)
        data = read_damaged(odd)
        assert data.iteration.tolist() == [10 * i for i in range(ROWS) if i != index], name
        assert_true(data)
        assert data.damage.startswith(f"{ROWS - 1} of 6 planned evaluations are whole, from")


@pytest.mark.parametrize("start", range(4))
def test_any_altered_byte_ends_in_rows_that_are_true_or_in_a_sentence(sound, tmp_path, start):
    content = sound.read_bytes()
    draw = random.Random(start)
    kept = []
    for _ in range(40):
        odd, out = tmp_path / "odd.h5", tmp_path / "out.h5"
        altered = bytearray(content)
        altered[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        odd.write_bytes(altered)
        try:
            data = read_run(odd)
        except UsageError:
            try:
                data = read_damaged(odd)
            except UsageError:
                continue
        assert_true(data)
        kept.append(data.rows)
        with contextlib.suppress(UsageError):
            repair(odd, out, overwrite=True)
            if out.exists():
                assert_true(read_run(out))
    assert len(kept) > 12


def test_a_counter_that_is_lost_costs_nothing(sound, tmp_path):
    path = tmp_path / "a.h5"
    for count in (-7, 99, 0):
        path.write_bytes(sound.read_bytes())
        with h5py.File(path, "r+") as file:
            file["metrics/rows"][()] = count
        assert_holds(read_damaged(path), ROWS)


def test_without_check_sums_the_counter_and_the_order_tell(sound, tmp_path):
    """As in files of earlier releases."""
    path = tmp_path / "a.h5"
    path.write_bytes(sound.read_bytes())
    with h5py.File(path, "r+") as file:
        del file["metrics/crc32"], file["events"]
        file["metrics/rows"][()] = 4
        file["metrics/elapsed_s"][1] = np.nan
        file["metrics/iteration"][2] = 0
    data = read_damaged(path)
    assert data.iteration.tolist() == [0, 30]
    assert data.events == ()


def test_what_is_said_of_the_agents_may_be_lost(sound, tmp_path):
    path = tmp_path / "a.h5"
    path.write_bytes(sound.read_bytes())
    with h5py.File(path, "r+") as file:
        for name in ("agents/host", "topology/weights", "topology/edges"):
            del file[name]
        file.attrs["rho"] = "x"
        del file.attrs["ended"]
    data = read_damaged(path)
    assert data.agents_info["host"].tolist() == ["unknown"] * AGENTS
    assert data.agents_info["threads"].tolist() == [1, 1, 4]
    assert (data.weights.shape, data.edges.shape) == ((0, AGENTS), (0, 2))
    assert data.rows == ROWS
    assert "topology/edges" in data.damage
    assert "rho" not in data.attributes
    assert "2 hosts" not in shown(data)


def test_the_file_of_a_killed_run_says_so_after_the_repair(tmp_path):
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    before = write(path, rows=3, planned=FINAL, status=None)
    assert repair(path, out, overwrite=False).startswith("3 of 6 planned evaluations are whole")
    data = read_run(out)
    assert_holds(data, 3)
    assert data.status == "interrupted"
    assert data.attributes["ended"] == before.modified.isoformat(timespec="seconds")
    assert [event.kind for event in data.events] == ["repaired"]
    assert {**data.attributes, "status": "", "ended": ""} == {
        **before.attributes,
        "status": "",
        "ended": "",
    }
    assert data.config == before.config
    assert data.final == before.final
    with contextlib.closing(RunFile.resume(out, resumption(20))) as run:
        run.append(row(3))
    assert_holds(read_run(out), 4)


def test_a_file_that_is_being_written_is_left_alone(tmp_path):
    path = tmp_path / "a.h5"
    with contextlib.closing(RunFile.create(path, plan())) as run:
        run.append(row(0))
        for output in (path, tmp_path / "out.h5"):
            with pytest.raises(UsageError, match=f"another run is writing '{path}'"):
                repair(path, output, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def test_nothing_is_whole(tmp_path):
    write(tmp_path / "a.h5", rows=0, status=None)
    with pytest.raises(UsageError, match="no evaluation in it is whole"):
        repair(tmp_path / "a.h5", tmp_path / "out.h5", overwrite=False)
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(UsageError, match="cannot be read as an HDF5 file"):
        repair(tmp_path / "text.h5", tmp_path / "out.h5", overwrite=False)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(UsageError, match="no format that can be read"):
        repair(tmp_path / "other.h5", tmp_path / "out.h5", overwrite=False)
    with pytest.raises(UsageError, match="there is no run file"):
        repair(tmp_path / "none.h5", tmp_path / "out.h5", overwrite=False)
    assert not (tmp_path / "out.h5").exists()


def run_command(*words):
    done = CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0
    return " ".join(done.output.split())


def test_the_command(sound, tmp_path):
    path = tmp_path / "my run.h5"
    path.write_bytes(sound.read_bytes())
    assert run_command(path) == f"'{path}' is sound and its run has ended: nothing was written."
    path.write_bytes(sound.read_bytes()[:-8])
    cut = path.read_bytes()
    said = run_command(path)
    assert said.startswith("5 of 6 planned evaluations are whole, from iteration 0 to 40")
    out = tmp_path / "my run-repaired.h5"
    assert said.endswith(f"written to '{out}'.")
    assert_holds(read_run(out), ROWS)
    for output in (out, path):
        with pytest.raises(UsageError, match="exists already: pass --overwrite"):
            run_command(path, "-o", output)
    assert path.read_bytes() == cut
    run_command(path, "-o", out, "--overwrite")
    run_command(path, "-o", path, "--overwrite")
    assert_holds(read_run(path), ROWS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my run-repaired.h5", "my run.h5"]


def test_a_damaged_run_is_shown_with_what_is_wrong(sound, tmp_path):
    path = tmp_path / "my run.h5"
    path.write_bytes(sound.read_bytes()[:-8])
    text = shown(read_damaged(path))
    assert line(text, "damaged").startswith("damaged 5 of 6 planned evaluations are whole")
    assert f"sundsbo-mpi repair '{path}'" in " ".join(text.split())

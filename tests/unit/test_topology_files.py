"""Weights go through every format unchanged, and what is no good file gets one clear sentence."""

import gzip
import io
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import (
    BUILDERS,
    FORMATS,
    SEQUENCES,
    Reading,
    read_weights,
    write_weights,
)
from sundsbo_mpi.topology.matrices import WRITERS

WEIGHTS = BUILDERS["erdos-renyi"](9, seed=3)
W = WEIGHTS.matrix.toarray()


def refusal(path, reading=Reading()):  # noqa: B008  a frozen record
    with pytest.raises(UsageError) as caught:
        read_weights(str(path), reading)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert path.name in sentence
    return sentence


@pytest.mark.parametrize("zipped", ["", ".gz"])
@pytest.mark.parametrize("suffix", WRITERS)
def test_what_is_written_reads_back_bit_by_bit(tmp_path, suffix, zipped):
    path = tmp_path / f"weights{suffix}{zipped}"
    write_weights(WEIGHTS, str(path))
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == bool(zipped)
    loaded = read_weights(str(path))
    np.testing.assert_array_equal(loaded.weights.matrix.toarray(), W)
    assert loaded.weights.sha256 == WEIGHTS.sha256
    assert loaded.weights.name == path.name
    assert loaded.notes == ()
    assert loaded.node_ids == tuple("012345678")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_node_ids_stay_with_npz_and_are_told_in_text(tmp_path):
    names = tuple("abcdefghi")
    write_weights(WEIGHTS, str(tmp_path / "w.npz"), names)
    assert read_weights(str(tmp_path / "w.npz")).node_ids == names
    assert sp.load_npz(tmp_path / "w.npz").shape == (9, 9)
    for suffix in (".txt", ".mtx"):
        write_weights(WEIGHTS, str(tmp_path / f"w{suffix}"), names)
        assert "agent 2 = node c" in (tmp_path / f"w{suffix}").read_text()
        assert read_weights(str(tmp_path / f"w{suffix}")).weights.sha256 == WEIGHTS.sha256


def dump(save, *arguments, **named):
    buffer = io.BytesIO()
    save(buffer, *arguments, **named)
    return buffer.getvalue()


def text(mark):
    return "\n".join(mark.join(map(repr, row.tolist())) for row in W)


FOREIGN = {
    "positional.npz": dump(np.savez, W),
    "named.npz": dump(np.savez_compressed, mixing=W),
    "array.npy": dump(np.save, W),
    "fortran.npy": dump(np.save, np.asfortranarray(W)),
    "spaces.txt": text("  ").encode(),
    "tabs.tsv": text("\t").encode(),
    "commas.csv": text(", ").encode(),
    "semicolons.csv": text(";").encode(),
    "windows.csv": b"\xef\xbb\xbf" + text(",").replace("\n", "\r\n").encode() + b"\r\n\r\n",
    "commented.txt": b"# a, b\n" + text(" ").replace("\n", " # row\n").encode(),
    "array.mtx": dump(scipy.io.mmwrite, W, precision=17),
    "symmetric.mtx": dump(scipy.io.mmwrite, sp.coo_array(W), symmetry="symmetric", precision=17),
    "general.mtx": dump(scipy.io.mmwrite, sp.coo_array(W), symmetry="general", precision=17),
    **{
        f"{kind}.npz": dump(sp.save_npz, getattr(sp, f"{kind}_{family}")(W))
        for kind in ("csr", "csc", "coo", "bsr", "dia")
        for family in ("array", "matrix")
    },
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_programs_are_read(tmp_path, name, zipped):
    path = tmp_path / (name + ".gz" * zipped)
    path.write_bytes(gzip.compress(FOREIGN[name]) if zipped else FOREIGN[name])
    assert read_weights(str(path)).weights.sha256 == WEIGHTS.sha256


def test_the_format_flag_overrules_the_suffix(tmp_path):
    path = tmp_path / "weights.dat"
    path.write_text(text(" "))
    assert "does not say its format" in refusal(path)
    assert read_weights(str(path), Reading(format="text")).weights.sha256 == WEIGHTS.sha256
    with pytest.raises(UsageError, match="did you mean 'graphml'"):
        Reading(format="graphm")


def test_single_precision_files_are_read_as_they_are(tmp_path):
    path = tmp_path / "w.npy"
    np.save(path, np.full((3, 3), 1 / 3, dtype=np.float32))
    matrix = read_weights(str(path)).weights.matrix.toarray()
    np.testing.assert_array_equal(matrix, np.float64(np.float32(1 / 3)))


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_never_opened(tmp_path):
    objects = np.array([[Bomb()]], dtype=object)
    np.save(tmp_path / "w.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "w.npz", objects, allow_pickle=True)
    sparse = {
        "data": objects[0],
        "indices": [0],
        "indptr": [0, 1],
        "shape": [1, 1],
        "format": "csr",
    }
    np.savez(tmp_path / "sparse.npz", **sparse, allow_pickle=True)
    for name in ("w.npy", "w.npz", "sparse.npz"):
        assert "pickle" in refusal(tmp_path / name)
    for suffix in (".npy", ".npz", ".txt", ".mtx", ".gml", ".edges", ".graphml"):
        path = tmp_path / f"raw{suffix}"
        path.write_bytes(pickle.dumps(Bomb()))
        refusal(path)
    path = tmp_path / "w.pkl"
    path.write_bytes(pickle.dumps(W))
    assert "does not say its format" in refusal(path)


OUT_OF_RANGE = {
    "data": np.ones(2),
    "indices": np.array([0, 900_000_000]),
    "indptr": np.array([0, 1, 2]),
    "shape": np.array([2, 2]),
    "format": np.array(b"csr"),
}
WRONG = {
    "picture.npz": (b"\x89PNG....", "no .npz archive"),
    "text.npy": (b"0.5 0.5", "no .npy array"),
    "two.npz": (dump(np.savez, W, W), "arrays arr_0, arr_1"),
    "none.npz": (dump(np.savez), "arrays (none)"),
    "vector.npy": (dump(np.save, np.ones(3)), "is a vector of 3, a weight matrix is n x n"),
    "scalar.npy": (dump(np.save, np.float64(1)), "is a single number"),
    "zero.npy": (
        dump(np.save, np.zeros((1, 1))),
        "row 0 sums to 0, expected 1 within 1e-06 (rows c",
    ),
    "zero.txt": (b"0\n", "correct the matrix"),
    "names.npz": (dump(np.savez, W=W, node_ids=["a", "b"]), "names 2 nodes for 9 agents"),
    "deep.gml": (b"graph [\n" + b"a [\n" * 5000 + b"]\n" * 5001, "cannot be read as gml"),
    "huge.mtx": (
        b"%%MatrixMarket matrix coordinate real symmetric\n1000000000 1000000000 1\n1 1 1\n",
        "1 entries for 1000000000 agents",
    ),
    "header.edges": (b"source,target\n0,1\n1,2\n", "looks like a header"),
    "nested.graphml": (
        b"<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph edgedefault='undirected'>"
        b"<node id='a'><graph edgedefault='undirected'><node id='b'/></graph></node>"
        b"</graph></graphml>",
        "holds 2 graphs",
    ),
    "undeclared.graphml": (
        b"<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph edgedefault='undirected'>"
        b"<node id='a'/><edge source='a' target='b'/></graph></graphml>",
        "the node 'b', which it does not declare",
    ),
    "strings.npy": (dump(np.save, np.array([["a"]])), "entries of type <U1"),
    "dates.npy": (dump(np.save, np.array([["2020-01-01"]], dtype="M8[D]")), "entries of type"),
    "cut.npy": (dump(np.save, W)[:200], "cannot be read as npy"),
    "cut.npz": (dump(np.savez, W)[:200], "cannot be read as npz"),
    "far.npz": (dump(np.savez, **OUT_OF_RANGE), "cannot be read as npz"),
    "words.txt": (b"agents\n10\n", "'agents'"),
    "ragged.csv": (b"0.5,0.5\n0.5\n", "columns"),
    "empty.txt": (b"# nothing\n\n", "no numbers"),
    "edges.txt": (b"0 1\n1 2\n2 0\n", "3 x 2"),
    "latin.txt": (b"\xff\xfe0\x00", "cannot be read as text"),
    "cut.mtx": (FOREIGN["general.mtx"][:-40], "cannot be read as mtx"),
    "bare.mtx": (b"1 2 3\n", "banner"),
    "complex.mtx": (dump(scipy.io.mmwrite, np.eye(2) * 1j), "complex"),
    "cut.npy.gz": (gzip.compress(FOREIGN["array.npy"])[:60], "cannot be read as npy"),
    "junk.npy.gz": (b"\x1f\x8b\x08\x00" + b"junk" * 9, "cannot be read as npy"),
    "page.graphml": (b"<html><p></html>", "cannot be read as graphml"),
    "page.gml": (b"<html>", "cannot be read as gml"),
    "nodes.gml": (b"graph [ ]", "no nodes"),
    "nothing.edges": (b"# none\n", "no nodes"),
    "lonely.edges": (b"0 1\n7\n", "line 2 is '7'"),
    "mixed.edges": (b"0 1 0.5\n1 2 0.5 7\n", "cannot be read as edges"),
    "code.edges": (b"0 1 {'w': __import__('os')}\n", "cannot be read as edges"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_get_one_clear_sentence(tmp_path, name):
    content, words = WRONG[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert words.lower() in refusal(path).lower()


@given(
    st.sampled_from(FORMATS),
    st.one_of(st.binary(max_size=60), st.sampled_from(sorted(FOREIGN.values()))),
    st.integers(0, 60),
)
def test_any_content_is_read_or_refused_in_a_sentence(form, content, cut):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any"
        path.write_bytes(content[: len(content) - cut])
        outcome = "read"
        try:
            weights = read_weights(str(path), Reading(form)).weights
        except UsageError as error:
            outcome = str(error)
    if outcome == "read":
        np.testing.assert_allclose(weights.matrix.sum(axis=1), 1, atol=1e-5)
    else:
        assert path.name in outcome
        assert "\n" not in outcome


def test_missing_files_and_folders_are_named(tmp_path):
    assert "there is no topology file" in refusal(tmp_path / "gone.npz")
    (tmp_path / "folder.npz").mkdir()
    assert "Is a directory; give a file" in refusal(tmp_path / "folder.npz")


def test_flags_for_graphs_are_refused_for_matrices(tmp_path):
    path = tmp_path / "w.npz"
    write_weights(WEIGHTS, str(path))
    assert "--weights is for graphs" in refusal(path, Reading(weights="weight"))
    assert "--undirected is for graphs" in refusal(path, Reading(undirected=True))


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(UsageError, match=r"'\.pkl'"):
        write_weights(WEIGHTS, str(tmp_path / "w.pkl"))
    with pytest.raises(UsageError, match="No such file or directory"):
        write_weights(WEIGHTS, str(tmp_path / "gone" / "w.npz"))
    (tmp_path / "w.npz").write_bytes(b"precious")
    with pytest.raises(UsageError, match="Not a directory; choose another place"):
        write_weights(WEIGHTS, f"{tmp_path / 'w.npz'}/")
    (tmp_path / "w.npz").unlink()
    (tmp_path / "w.npz").mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        write_weights(WEIGHTS, str(tmp_path / "w.npz"))
    assert [file.name for file in tmp_path.iterdir()] == ["w.npz"]


def test_a_matrix_that_does_not_fit_into_memory(tmp_path, monkeypatch):
    def full(matrix, name):
        raise MemoryError

    write_weights(WEIGHTS, str(tmp_path / "w.npz"))
    monkeypatch.setattr("sundsbo_mpi.topology.files.Weights", full)
    assert "9 agents, which do not fit into memory" in refusal(tmp_path / "w.npz")


def test_no_known_names_are_said_to_be_none(tmp_path):
    (tmp_path / "g.edges").write_text("0 1\n")
    assert "'w': there are none." in refusal(tmp_path / "g.edges", Reading(weights="w"))


def test_sequences_of_many_agents_are_written_sparse(tmp_path):
    path = str(tmp_path / "W.npz")
    written = SEQUENCES["one-peer"](1500)
    write_weights(written, path)
    read = read_weights(path).weights
    assert read.sha256 == written.sha256
    assert len(read.matrices) == 11
    assert (tmp_path / "W.npz").stat().st_size < 1_000_000
    with np.load(path) as archive:
        members = dict(archive)
    np.savez(path, **(members | {"period": np.array(7)}))
    with pytest.raises(UsageError, match="16500 rows where 7 matrices of 1500 have 10500"):
        read_weights(path)


def test_dense_files_of_many_agents_are_refused(tmp_path):
    weights = BUILDERS["random-regular"](5000)
    for suffix in (".npy", ".txt", ".csv"):
        path = tmp_path / f"W{suffix}"
        with pytest.raises(UsageError, match=r"expected one of \.npz, \.mtx for 5000 agents"):
            write_weights(weights, str(path))
        assert not path.exists()

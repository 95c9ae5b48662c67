"""Files made by hand to take all memory or time, to crash the interpreter, or to run code."""

import gzip
import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from PIL import Image
from real_files import Command, dump

GRAPHML = "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'>{}</graphml>"
PAIR = "<graph edgedefault='undirected'>{}<node id='a'/><node id='b'/></graph>"
PLAIN = GRAPHML.format(PAIR.format("<edge source='a' target='b'/>"))
LAUGHS = "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 12))
FILE = "<!DOCTYPE g [<!ENTITY f SYSTEM 'file:///etc/passwd'>]>"
MTX = "%%MatrixMarket matrix {} real {}\n"


def csr(data=(), places=(), indptr=(0,), shape=(2, 2), **others):
    members = {
        "data": np.array(data, dtype=float),
        "indices": np.array(places, dtype=np.int32),
        "indptr": np.array(indptr, dtype=np.int32),
        "shape": np.array(shape),
        "format": np.array(b"csr"),
    }
    return dump(np.savez_compressed, **(members | others))


def coo(shape, rows=(), columns=(), **others):
    places = {"row": np.array(rows, dtype=np.int64), "col": np.array(columns, dtype=np.int64)}
    return csr(np.ones(len(rows)), shape=shape, format=np.array(b"coo"), **places, **others)


def claimed(content, size, claim):
    """Claim another size in the archive's directory."""
    return content.replace(size.to_bytes(4, "little"), claim.to_bytes(4, "little"))


def archive(members, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return buffer.getvalue()


W = dump(np.save, np.full((2, 2), 0.5))
LAZY = np.full(4, 0.5)
ATTACKS = {
    # more than there is
    "nodes.mtx": (MTX.format("coordinate", "symmetric") + f"{10**9} {10**9} 1\n1 1 1\n", "1 entr"),
    "entries.mtx": (MTX.format("coordinate", "general") + f"2 2 {10**9}\n1 1 1\n", "claims 300"),
    "dense.mtx": (MTX.format("array", "general") + "1000000 1000000\n1\n", "claims 1000000000000"),
    "dense.npy": (W.replace(b"(2, 2), }" + b" " * 20, b"(99999999, 99999999), }      "), "npy"),
    "many.npy.gz": (gzip.compress(bytes(2**20), 1) * 513, "holds more than 536,870,912 bytes"),
    "many.edges.gz": (gzip.compress(b"0 1\n" * 2**18) * 33, "holds more than 33,554,432 bytes"),
    "edges.edges.gz": (gzip.compress(b"0 1\n" * (2**20 + 1)), "1,048,577 lines, expected at most"),
    "unpacked.npz": (claimed(archive({"W.npy": W}), len(W), 2**31), "unpacks to more than"),
    "packed.npz": (archive({"W.npy": W}, zipfile.ZIP_LZMA), "packed in another way"),
    "rows.npz": (coo((10**9, 10**9)), "0 entries for 1000000000 agents"),
    "stack.npz": (coo((10**9, 10**9), period=np.array(1)), "0 entries in 1000000000 rows"),
    "period.npz": (csr(indptr=[0], shape=(0, 0), period=np.array(10**9)), "period is"),
    "turns.npz": (csr(indptr=np.zeros(10**6 + 1), shape=(10**6, 1), period=10**6), "period is"),
    "nothing.npy": (dump(np.save, np.zeros((10**9, 0, 0))), "1000000000 rows that hold nothing"),
    "long.npy.gz": (
        gzip.compress(dump(np.save, np.ones((2**23, 1, 1), "u1")), 1),
        "holds 8388608 matrices, expected at most",
    ),
    "voids.npz": (dump(np.savez, W=np.eye(2), node_ids=np.zeros(10**9, "V0")), "hold nothing"),
    "recipe.npz": (dump(np.savez, kind="random", agents=np.zeros((10**9, 0))), "hold nothing"),
    "lists.npz": (dump(np.savez, kind="random", agents=np.zeros((2, 10**6), "i1")), "or two"),
    # places at which there is nothing
    "falling.npz": (csr(indptr=[0, 10**6, 0]), "'indptr' decreases"),
    "uneven.npz": (csr(LAZY, [0, 1, 0, 1], [0, 3, 2, 4], (3, 3)), "'indptr' decreases"),
    "far.npz": (csr(LAZY, [0, 1, 0, 10**9], [0, 2, 4]), "indices must be < 2"),
    "before.npz": (csr(LAZY, [0, 1, 0, -(10**9)], [0, 2, 4]), "indices must be >= 0"),
    "beyond.npz": (csr(LAZY, [0, 1, 0, 1], [0, 2, 10**9]), "less than the size"),
    "far-coo.npz": (coo((2, 2), [0, 1], [0, 10**9]), "exceeds matrix dimension"),
    "halves.npz": (csr(LAZY, (), [0, 2, 4], indices=LAZY), "row of integers"),
    "blocks.npz": (
        csr(indptr=[0, 0], format=np.array(b"bsr"), data=np.zeros((0, 0, 2))),
        "cannot be read as npz",
    ),
    # time
    "lines.gml": ("\n" * 200_000 + "graph [ node [ id 0 ] ]", ""),
    "tabs.gml": ("graph [ node [ id 0 ] " + "\t\n" * 100_000 + "]", ""),
    "blanks.edges": (" " * 200_000 + "0 1\n", ""),
    "keys.edges": (
        "0 1 " + str({f"{'x' * 500}{i}": 0 for i in range(300)}),
        "edge attribute 'w'",
    ),
    # depth
    "deep.gml": ("graph [\n" + "a [\n" * 50_000 + "]\n" * 50_001, "cannot be read as gml"),
    "deep.graphml": (GRAPHML.format("<a>" * 50_000 + "</a>" * 50_000), "cannot be read as graphml"),
    "deep.edges": ("0 1 {'a': " + "[" * 50_000, "cannot be read as edges"),
    "minus.edges": ("0 1 {'a': " + "-" * 50_000 + "1}", "cannot be read as edges"),
    # document types and encodings
    "laughs.graphml": (f"<!DOCTYPE g [<!ENTITY l0 'l'>{LAUGHS}]>{PLAIN}", "document type"),
    "file.graphml": (FILE + PLAIN.replace("id='a'/", "id='a'>&f;</node"), "document type"),
    "late.graphml": ("<!-- -->\n<?p?>\n<!DOCTYPE graphml>\n" + PLAIN, "document type"),
    "wide.graphml": (("<!DOCTYPE graphml>" + PLAIN).encode("utf-16"), "document type"),
    "code.graphml": ("<?xml version='1.0' encoding='rot13'?>" + PLAIN, "cannot be read as"),
    # names
    "twice.gml": ("graph [ node [ id 0 ] node [ id 0 ] ]", "duplicated"),
    "alike.gml": ('graph [ node [ id 1 ] node [ id "1" ] ]', "2 nodes have the id '1'"),
    "zeros.edges": ("1 2\n2 01\n", "the same number, such as 1 and 01"),
    "names.edges": (f"a {'b' * 10**5}\n", "a node id has 100000 characters"),
    "digits.edges": (f"1 {'9' * 10**5}\n", "a node id has 100000 characters"),
    "line.edges": ("x" * 10**5, "(100002 characters) where an edge has two node ids"),
    # code
    "objects.npy": (dump(np.save, np.array([Command()]), allow_pickle=True), "pickle"),
    "objects.npz": (dump(np.savez, np.array([Command()]), allow_pickle=True), "pickle"),
    "member.npz": (archive({"W": pickle.dumps(Command())}), "is no array"),
    "call.edges": ("0 1 {'w': __import__('os').system('true')}", "cannot be read as edges"),
    **{
        f"pickle{suffix}": (pickle.dumps(Command()), "cannot be read as")
        for suffix in (".npy", ".npz", ".txt", ".mtx", ".gml", ".edges", ".graphml")
    },
}


def refused(outcome, words):
    assert outcome.fault is None, outcome.fault
    assert outcome.outcome == "refused"
    assert words in outcome.lines[0], outcome.lines[0]


@pytest.mark.parametrize("name", ATTACKS)
def test_topologies(jail, tmp_path, name):
    content, words = ATTACKS[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    weights = "w" if name == "keys.edges" else None
    outcome = jail.ask("topology", path=str(path), weights=weights)
    assert outcome.fault is None, outcome.fault
    if words:
        refused(outcome, words)


def test_names_that_steer_a_terminal(jail, tmp_path):
    path = tmp_path / "a.edges"
    path.write_text("\x1b[2Ja b\nb \x1b]0;title\x07\n\x1b[2Ja \x1b]0;title\x07\n")
    assert jail.ask("topology", path=str(path)).fault is None


def test_what_is_no_file(jail, tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "circle.npz").symlink_to(tmp_path / "circle.npz")
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    for name, words in {
        "pipe.npz": "a device or a pipe",
        "zero.npy": "a device or a pipe",
        "circle.npz": "symbolic links",
        f"{'long' * 100}.npz": "name too long",
    }.items():
        refused(jail.ask("topology", path=str(tmp_path / name)), words)


def bomb(side):
    return dump(Image.new("1", (side, side)).save, format="PNG")


def test_pictures(jail, tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
        Image.new("L", (3, 3)).save(tmp_path / name / "0.png")
    for side in (12_000, 14_000):
        (tmp_path / "b" / "1.png").write_bytes(bomb(side))
        outcome = jail.ask("data", name="folder", folder=str(tmp_path))
        refused(outcome, "b/1.png is not a picture that can be read (Image size")


def test_labelled_images(jail, tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(2**20)) * 1000)
    outcome = jail.ask("data", name="mnist", folder=str(tmp_path))
    refused(outcome, "has more than 376 bytes")
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(Command()))
    outcome = jail.ask("data", name="cifar-10", folder=str(tmp_path))
    refused(outcome, "'posix system' is not admitted")


SETTINGS = {
    "deep.toml": ("[task]\na = " + "[" * 500 + "]" * 500, "not TOML"),
    "dots.toml": ("[task]\n" + "a." * 500 + "a = 1", "more than 8 tables or lists within one"),
    "zero.toml": ('[topology]\nfile = "a\\u0000b"', "a text with a zero byte"),
    "date.toml": ("[output]\nfile = 2026-11-28", "has the date 2026-11-28, expected text"),
    "huge.toml": ("#" * 2**21, "more than 1,048,576 bytes"),
    "count.toml": ("[run]\niterations = 1e18", "run.iterations is 1e+18: expected an integer"),
    "nan.toml": ("[algorithm]\ngamma = nan", "gamma is nan: expected a number"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(settings_jail, tmp_path, name):
    content, words = SETTINGS[name]
    path = tmp_path / name
    path.write_text(content)
    refused(settings_jail.ask("settings", file=str(path)), words)


def test_settings_that_are_no_file(settings_jail, tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    refused(settings_jail.ask("settings", file=str(tmp_path / "pipe.toml")), "a device or a pipe")
    refused(settings_jail.ask("settings", file=str(tmp_path)), "Is a directory")

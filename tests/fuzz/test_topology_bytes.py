"""Whatever a topology file holds, it is read or refused in a sentence."""

from pathlib import Path

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from cases import many
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated
from real_files import dump, topology_files

from sundsbo_mpi.topology import FORMATS


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return topology_files(tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="module")
def told(jail, tmp_path_factory):
    """Ask what comes of a content under a format."""
    path = tmp_path_factory.mktemp("spoilt") / "any"

    def ask(content, form, **reading):
        path.write_bytes(content)
        return jail.ask("topology", path=str(path), form=form, **reading)

    return ask


def sound(outcome):
    assert outcome.fault is None, outcome.fault


def test_sound_files_are_read(jail, files, tmp_path):
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        outcome = jail.ask("topology", path=str(path), undirected=name.startswith("d."))
        sound(outcome)
        assert outcome.outcome == ("refused" if "objects" in name else "read"), (name, outcome)


def test_spoilt_files_are_read_or_refused(jail, files, tmp_path, attack):
    names = sorted(files)

    def one(rng):
        name, other = (names[i] for i in rng.integers(len(names), size=2))
        path = tmp_path / f"any{''.join(Path(name).suffixes[-2:])}"
        path.write_bytes(mutated(rng, files[name], files[other]))
        graph = Path(name).suffix in (".graphml", ".gml", ".edges")
        reading = {"undirected": graph, "weights": "weight" if graph and name[0] == "w" else None}
        return jail.ask("topology", path=str(path), **reading)

    counts = attack(one)
    assert counts["refused"] > counts["read"] > 0


@many
@given(st.sampled_from(FORMATS), st.binary(max_size=200))
def test_any_bytes(told, form, content):
    sound(told(content, form))


WORDS = st.one_of(
    st.integers(-3, 12).map(str),
    st.floats(width=32).map(str),
    st.text(max_size=4),
    st.sampled_from(["{'w': 1}", "{}", "1e999", "9" * 5000, "#", "%", "a,b", "{'w': [" * 90]),
)


@many
@given(
    st.lists(st.lists(WORDS, max_size=5).map(" ".join), max_size=8).map("\n".join),
    st.sampled_from(["edges", "text", "mtx"]),
    st.sampled_from([None, "weight", "w"]),
)
def test_lines_of_words(told, text, form, weights):
    head = "%%MatrixMarket matrix coordinate real general\n" if form == "mtx" else ""
    content = (head + text).encode(errors="surrogatepass")
    sound(told(content, form, weights=weights if form == "edges" else None))


KEYS = st.sampled_from(
    ["graph", "node", "edge", "id", "label", "source", "target", "weight", "directed", "multigraph"]
)
VALUES = st.recursive(
    st.one_of(
        st.integers(-1, 4).map(str),
        st.floats().map(str),
        st.text(max_size=5).map(lambda text: f'"{text}"'),
    ),
    lambda inner: st.lists(st.tuples(KEYS, inner).map(" ".join), max_size=6).map(
        lambda pairs: f"[ {' '.join(pairs)} ]"
    ),
    max_leaves=25,
)


@many
@given(st.lists(st.tuples(KEYS, VALUES).map(" ".join), max_size=4).map("\n".join))
def test_nested_gml(told, text):
    sound(told(text.encode(errors="surrogatepass"), "gml", undirected=True))
    inner = f"graph [\n node [ id 0 ]\n node [ id 1 ]\n edge [ source 0 target 1 ]\n {text}\n]"
    sound(told(inner.encode(errors="surrogatepass"), "gml", undirected=True, weights="weight"))


TAGS = st.sampled_from(["graph", "node", "edge", "data", "key", "port", "hyperedge", "default"])
NAMES = st.sampled_from(
    ["id", "source", "target", "key", "for", "attr.name", "attr.type", "edgedefault"]
)
TOLD = st.sampled_from(
    ["0", "1", "2", "a", "", "directed", "undirected", "double", "int", "boolean", "string", "edge"]
)
ATTRIBUTES = st.dictionaries(NAMES, TOLD, max_size=4).map(
    lambda pairs: "".join(f' {name}="{value}"' for name, value in pairs.items())
)
ELEMENTS = st.recursive(
    st.one_of(TOLD, st.floats().map(str)),
    lambda inner: st.tuples(TAGS, ATTRIBUTES, st.lists(inner, max_size=5).map("".join)).map(
        lambda parts: "<{0}{1}>{2}</{0}>".format(*parts)
    ),
    max_leaves=25,
)


@many
@given(st.lists(ELEMENTS, max_size=4).map("".join), st.sampled_from([None, "a"]))
def test_nested_graphml(told, text, weights):
    content = f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{text}</graphml>'.encode()
    sound(told(content, "graphml", undirected=True, weights=weights))


INDICES = hnp.arrays(
    st.sampled_from([np.int32, np.int64, np.uint64, np.float64, np.int8]),
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=6),
    elements=st.integers(0, 7) | st.sampled_from([100]),
)
SPARSE = st.fixed_dictionaries(
    {
        "format": st.sampled_from([b"csr", b"csc", b"coo", b"bsr", b"dia", b"lil", "csr", b"eval"]),
        "shape": st.sampled_from([(2, 2), (3, 3), (6, 3), (5,), (2, 2, 2), (10**9, 10**9), (0, 0)])
        | INDICES,
        "data": hnp.arrays(
            st.sampled_from([np.float64, np.float32, np.int8, np.complex64, np.dtype("S1")]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
        ),
        "indices": INDICES,
        "indptr": INDICES | st.integers(0, 6).map(np.arange),
    },
    optional={
        **{"row": INDICES, "col": INDICES, "coords": INDICES, "offsets": INDICES},
        "period": st.sampled_from([0, 1, 2, -1, 10**9, 1.5, (1, 2)]) | INDICES,
        "_is_array": st.booleans(),
        "node_ids": st.lists(st.text(max_size=3), max_size=4),
    },
)


@many
@given(SPARSE)
def test_sparse_archives_of_anything(told, members):
    sound(told(dump(np.savez, **members), "npz"))


@many
@given(
    hnp.arrays(
        hnp.scalar_dtypes() | st.just(np.dtype("f8")),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    st.booleans(),
)
def test_arrays_of_anything(told, array, packed):
    sound(told(dump(np.savez if packed else np.save, array), "npz" if packed else "npy"))


RECIPES = st.dictionaries(
    st.sampled_from(["kind", "agents", "neighbours", "every", "seed", "halvings", "x"]),
    st.sampled_from(["random", 3, 5, [2, 3], [2, 2], 0, 1, 2**63 - 1, 10**9, -1, 0.5, True, ""])
    | INDICES,
)
RECIPE = {"kind": "random", "agents": 5, "neighbours": [2, 3], "every": 1, "seed": 0, "halvings": 0}


@many
@given(RECIPES)
def test_recipes_of_anything(told, changes):
    sound(told(dump(np.savez, **(RECIPE | changes)), "npz"))

"""Sound files of every format that is read, small, for the mutations to start from."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import scipy.io
import scipy.sparse as sp
from stored_data import picture

from sundsbo_mpi.topology import BUILDERS, SEQUENCES, write_weights

PAPER = Path(__file__).parents[2] / "topologies"
WEIGHTS = BUILDERS["erdos-renyi"](7, seed=3)


class Command:
    """A pickle that would run a command, if anybody opened it."""

    def __reduce__(self):
        import os

        return (os.system, ("true",))


def dump(save, *arguments, **named):
    buffer = io.BytesIO()
    save(buffer, *arguments, **named)
    return buffer.getvalue()


def _graphs():
    weighted = nx.cycle_graph(6)
    nx.set_edge_attributes(weighted, 0.25, "weight")
    named = nx.relabel_nodes(nx.path_graph(4), dict(enumerate(["a", "b", "c & d", "é"])))
    several = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2), (2, 0)])
    directed = nx.DiGraph([("1", "2"), ("2", "3"), ("3", "1")])
    for name, graph in {"w": weighted, "n": named, "m": several, "d": directed}.items():
        yield f"{name}.graphml", "\n".join(nx.generate_graphml(graph)).encode()
        yield f"{name}.gml", "\n".join(nx.generate_gml(graph)).encode()
        data = ["weight"] if name == "w" else name == "n"
        text = "\n".join(nx.generate_edgelist(nx.Graph(graph), data=data, delimiter=" "))
        yield f"{name}.edges", text.replace("c & d", "c").encode()


def _written(folder):
    for suffix in (".npz", ".npy", ".txt", ".csv", ".mtx", ".npz.gz", ".txt.gz", ".mtx.gz"):
        yield f"written{suffix}", WEIGHTS
    yield "turns.npz", SEQUENCES["one-peer"](6)
    yield "turns.npy", SEQUENCES["one-peer"](6)
    yield "drawn.npz", SEQUENCES["random"](6, neighbours=3)


def topology_files(folder):
    """Return the contents of topology files by name, and a pickle under the names of NumPy's.

    Args:
        folder: An empty one, for what the package writes.
    """
    files = dict(_graphs())
    for name, mixing in _written(folder):
        write_weights(mixing, str(folder / name))
        files[name] = (folder / name).read_bytes()
    W = WEIGHTS.matrix
    for form in ("csr", "csc", "coo", "bsr", "dia"):
        files[f"{form}.npz"] = dump(sp.save_npz, getattr(sp, f"{form}_array")(W), compressed=False)
    stack = sp.save_npz, sp.vstack([W, W], format="csr")
    with np.load(io.BytesIO(dump(*stack))) as archive:
        files["stack.npz"] = dump(np.savez, **archive, period=np.array(2))
    files["dense.npz"] = dump(np.savez, W.toarray(), node_ids=np.array(list("abcdefg")))
    files["single.npy"] = dump(np.save, W.toarray().astype("f4"))
    files["general.mtx"] = dump(scipy.io.mmwrite, W, symmetry="general")
    files["array.mtx"] = dump(scipy.io.mmwrite, W.toarray(), symmetry="general")
    objects = np.array([[Command()]], dtype=object)
    files["objects.npy"] = dump(np.save, objects, allow_pickle=True)
    files["objects.npz"] = dump(np.savez, objects, allow_pickle=True)
    files["member.npz"] = files["dense.npz"] + pickle.dumps(Command())
    for path in sorted(PAPER.glob("*.txt")):
        files[path.name] = path.read_bytes()
    return files


PICTURES = {
    **{".bmp": ("BMP", "RGB"), ".gif": ("GIF", "L"), ".jpg": ("JPEG", "RGB"), ".webp": ("WEBP",)},
    **{".png": ("PNG", "P"), ".pgm": ("PPM", "L"), ".ppm": ("PPM", "RGB"), ".tif": ("TIFF", "1")},
}
"""Format and mode of a picture by its suffix."""


def pictures():
    """Return a small picture of every format by its suffix."""
    rng = np.random.default_rng(1)
    return {
        suffix: dump(picture(rng, mode="RGB").convert(*mode).save, format=form)
        for suffix, (form, *mode) in PICTURES.items()
    }

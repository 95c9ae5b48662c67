"""Whatever the files of a data set hold, they are read, or refused in a sentence."""

import shutil

import pytest
from mutations import mutated
from real_files import pictures
from stored_data import cifar_set, idx_set, omniglot_set, pickled, put, put_binary, zipped


@pytest.fixture
def spoil(jail, attack, tmp_path):
    """Spoil one file at a time of a data set below the folder of the test."""

    def spoil(name, share=1.0):
        files = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
        sound = jail.ask("data", name=name, folder=str(tmp_path))
        assert sound.outcome == "read", sound
        paths = list(files)

        def one(rng):
            path, other = (paths[i] for i in rng.integers(len(paths), size=2))
            path.write_bytes(mutated(rng, files[path], files[other]))
            outcome = jail.ask("data", name=name, folder=str(tmp_path))
            path.write_bytes(files[path])
            return outcome

        counts = attack(one, share)
        assert counts["refused"] > 0

    return spoil


@pytest.mark.parametrize("compressed", [True, False])
def test_idx_files(spoil, tmp_path, monkeypatch, compressed):
    put(idx_set(monkeypatch, "mnist"), tmp_path, compressed=compressed)
    spoil("mnist", 0.5)


def test_binary_batches(spoil, tmp_path, monkeypatch):
    put_binary(cifar_set(monkeypatch), tmp_path)
    spoil("cifar-10", 0.5)


@pytest.mark.parametrize("compressed", [True, False])
def test_pickled_batches(spoil, tmp_path, monkeypatch, compressed):
    batches = enumerate(cifar_set(monkeypatch).items())
    files = {name: pickled(batch, protocol) for protocol, (name, batch) in batches}
    put(files, tmp_path, compressed=compressed)
    spoil("cifar-10")


def test_folders_of_pictures(spoil, tmp_path):
    for number in range(3):
        (tmp_path / f"class {number}").mkdir()
        for suffix, content in pictures().items():
            (tmp_path / f"class {number}" / f"a{suffix}").write_bytes(content)
    spoil("folder")


def test_archives_of_pictures(spoil, tmp_path, monkeypatch):
    omniglot_set(monkeypatch, tmp_path)
    for part in ("images_background", "images_evaluation"):
        content = zipped(tmp_path / part)
        shutil.rmtree(tmp_path / part)
        (tmp_path / f"{part}.zip").write_bytes(content)
    spoil("omniglot", 0.5)

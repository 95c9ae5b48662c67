import gzip
import hashlib
import io
import shutil
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from stored_data import cifar_set, idx_set, omniglot_set, put, zipped

from sundsbo_mpi.datasets import catalogue, load_characters, load_dataset
from sundsbo_mpi.datasets.catalogue import Download
from sundsbo_mpi.datasets.fetching import fetch
from sundsbo_mpi.datasets.survey import survey
from sundsbo_mpi.errors import UsageError

FILES = ("train-images", "train-labels", "t10k-images", "t10k-labels")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        self.server.asked.append(self.path)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a directory; ``asked`` are the paths that were asked for."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    root = tmp_path / "served"
    root.mkdir()
    handler = partial(Quiet, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.asked, http.root = [], root
        http.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield http
        http.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


def stored(directory):
    return sorted(p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file())


def md5(content):
    return f"md5:{hashlib.md5(content).hexdigest()}"


@pytest.fixture
def mnist(monkeypatch, server):
    """Serve MNIST's files below the addresses that the catalogue has."""
    contents = idx_set(monkeypatch, "mnist")
    put(contents, server.root)
    downloads = tuple(
        Download(f"{server.url}/{name}.gz", md5((server.root / f"{name}.gz").read_bytes()))
        for name in contents
    )
    entry = catalogue.ENTRIES["mnist"]._replace(downloads=downloads)
    monkeypatch.setitem(catalogue.ENTRIES, "mnist", entry)
    return contents


def test_a_missing_set_is_fetched_and_can_be_read(mnist, target):
    written = fetch("mnist", str(target))
    assert stored(target) == sorted(f"MNIST/raw/{name}.gz" for name in mnist)
    assert [path.name for path in written] == [f"{name}.gz" for name in mnist]
    assert len(load_dataset("mnist", str(target), seed=0).test.labels) == 12
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in written)


def test_only_what_is_missing_is_fetched(mnist, server, target):
    kept = dict(list(mnist.items())[:3])
    put(kept, target / "MNIST" / "raw", compressed=False)
    assert len(fetch("mnist", str(target))) == 1
    assert server.asked == ["/t10k-labels-idx1-ubyte.gz"]
    assert fetch("mnist", str(target)) == []
    assert len(server.asked) == 1


def test_a_damaged_file_is_replaced(mnist, target):
    put(mnist, target / "MNIST" / "raw")
    path = target / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
    path.write_bytes(b"damaged")
    assert fetch("mnist", str(target)) == [path]
    assert survey("mnist", str(target)).state == "verified"


def test_a_mirror_takes_the_place_of_the_address(mnist, server, target):
    elsewhere = server.root / "mirror"
    put(mnist, elsewhere)
    for name in mnist:
        (elsewhere / f"{name}.gz").write_bytes((server.root / f"{name}.gz").read_bytes())
    fetch("mnist", str(target), mirror=f"{server.url}/mirror/")
    assert {path.rpartition("/")[0] for path in server.asked} == {"/mirror"}


def test_a_wrong_file_is_refused_and_leaves_nothing(mnist, server, target):
    (server.root / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"something else"))
    with pytest.raises(UsageError, match=r"train-labels-idx1-ubyte\.gz was refused") as error:
        fetch("mnist", str(target))
    assert "\n" not in str(error.value)
    assert stored(target) == ["MNIST/raw/train-images-idx3-ubyte.gz"]


def test_an_absent_file_and_an_absent_server_are_told(mnist, server, target):
    (server.root / "train-images-idx3-ubyte.gz").unlink()
    with pytest.raises(UsageError, match="404"):
        fetch("mnist", str(target))
    with pytest.raises(UsageError, match="could not be fetched"):
        fetch("mnist", str(target), mirror="http://127.0.0.1:9")
    for unknown in ("gopher://127.0.0.1", "nonsense"):
        with pytest.raises(UsageError, match="--mirror"):
            fetch("mnist", str(target), mirror=unknown)
    assert stored(target) == []


@pytest.mark.usefixtures("mnist")
def test_a_directory_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="could not be stored"):
        fetch("mnist", str(tmp_path / "file"))


def archive(batches, extra=()):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in (
            *((f"cifar-10-batches-bin/{n}.bin", b.tobytes()) for n, b in batches.items()),
            ("cifar-10-batches-bin/readme.html", b"read me"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in extra:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return packed.getvalue()


def serve_cifar(monkeypatch, server, content):
    (server.root / "cifar.tar.gz").write_bytes(content)
    download = Download(f"{server.url}/cifar.tar.gz", md5(content))
    entry = catalogue.ENTRIES["cifar-10"]._replace(downloads=(download,))
    monkeypatch.setitem(catalogue.ENTRIES, "cifar-10", entry)


def test_cifar_is_unpacked_and_completed(monkeypatch, server, target):
    batches = cifar_set(monkeypatch)
    serve_cifar(monkeypatch, server, archive(batches))
    folder = target / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    (folder / "test_batch.bin").write_bytes(batches["test_batch"][:2].tobytes())
    assert len(fetch("cifar-10", str(target))) == 6
    assert stored(target) == sorted(f"cifar-10-batches-bin/{name}.bin" for name in batches)
    assert len(load_dataset("cifar-10", str(target), seed=0).test.labels) == 20
    assert fetch("cifar-10", str(target)) == []


def hostile_members():
    outside = tarfile.TarInfo("../outside.bin")
    absolute = tarfile.TarInfo("/tmp/outside-of-the-archive.bin")
    link = tarfile.TarInfo("cifar-10-batches-bin/link.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    device = tarfile.TarInfo("cifar-10-batches-bin/device.bin")
    device.type = tarfile.CHRTYPE
    return outside, absolute, link, device


def test_an_archive_cannot_write_elsewhere(monkeypatch, server, target):
    batches = cifar_set(monkeypatch)
    serve_cifar(monkeypatch, server, archive(batches, hostile_members()))
    fetch("cifar-10", str(target))
    assert stored(target) == sorted(f"cifar-10-batches-bin/{name}.bin" for name in batches)
    assert not (target.parent / "outside.bin").exists()


def test_an_archive_with_another_batch_is_refused(monkeypatch, server, target):
    batches = cifar_set(monkeypatch)
    serve_cifar(monkeypatch, server, archive(batches | {"data_batch_1": batches["test_batch"]}))
    with pytest.raises(UsageError, match="data_batch_1 is not the known file"):
        fetch("cifar-10", str(target))
    assert stored(target) == []


def test_an_archive_without_a_batch_is_told(monkeypatch, server, target):
    batches = cifar_set(monkeypatch)
    del batches["test_batch"]
    serve_cifar(monkeypatch, server, archive(batches))
    with pytest.raises(UsageError, match="test_batch"):
        fetch("cifar-10", str(target))


def test_omniglot_s_archives_are_kept_as_they_are(monkeypatch, server, target, tmp_path):
    omniglot_set(monkeypatch, tmp_path / "drawn")
    for part in ("images_background", "images_evaluation"):
        content = zipped(tmp_path / "drawn" / part)
        (server.root / f"{part}.zip").write_bytes(content)
        download = Download(f"{server.url}/{part}.zip", md5(content))
        monkeypatch.setitem(catalogue.OMNIGLOT_DOWNLOADS, part, download)
    fetch("omniglot", str(target))
    assert stored(target) == [f"omniglot-py/images_{p}.zip" for p in ("background", "evaluation")]
    assert survey("omniglot", str(target)).state == "verified"
    assert len(load_characters("omniglot", str(target), seed=0).train) == 6
    server.asked.clear()
    shutil.rmtree(tmp_path / "drawn" / "images_evaluation")
    fetch("omniglot", str(tmp_path / "drawn"))
    assert server.asked == ["/images_evaluation.zip"]


def test_a_damaged_archive_of_omniglot_is_found(monkeypatch, tmp_path):
    omniglot_set(monkeypatch, tmp_path)
    content = bytearray(zipped(tmp_path / "images_background"))
    (tmp_path / "images_background.zip").write_bytes(content)
    assert survey("omniglot", str(tmp_path)).state == "complete"
    content[content.index(b"IDAT") + 20] ^= 1
    (tmp_path / "images_background.zip").write_bytes(content)
    assert survey("omniglot", str(tmp_path)).state == "corrupt"


@pytest.mark.parametrize("name", ["digits", "folder", "minist"])
def test_other_sets_cannot_be_fetched(name, target):
    with pytest.raises(UsageError, match="known are"):
        fetch(name, str(target))
    assert not target.exists()

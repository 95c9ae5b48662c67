"""``sundsbo-mpi data``: what it lists, checks, fetches and refuses, and what it does not import."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from stored_data import cifar_set, idx_set, omniglot_set, put, put_binary, zipped

from sundsbo_mpi.cli import data as cli
from sundsbo_mpi.datasets import fetching
from sundsbo_mpi.datasets import files as stored_files
from sundsbo_mpi.errors import UsageError


@pytest.fixture(autouse=True)
def without_debian(monkeypatch, tmp_path):
    monkeypatch.setattr(stored_files, "DEBIAN", str(tmp_path / "debian"))
    monkeypatch.setenv("COLUMNS", "300")


def data(*arguments):
    return CliRunner().invoke(cli.command, [str(argument) for argument in arguments])


def states(output):
    rows = [line.split() for line in output.splitlines()]
    names = {"digits", "mnist", "fashion-mnist", "cifar-10", "omniglot"}
    return {row[0]: row[1] for row in rows if row and row[0] in names}


@pytest.mark.parametrize("command", [(), ("list",)])
def test_the_list_says_what_is_found(monkeypatch, tmp_path, command):
    put(idx_set(monkeypatch, "mnist"), tmp_path / "MNIST" / "raw")
    fashion = idx_set(monkeypatch, "fashion-mnist")
    put(fashion | {"train-images-idx3-ubyte": b"damaged"}, tmp_path / "FashionMNIST" / "raw")
    batches = cifar_set(monkeypatch)
    short = batches | {"test_batch": batches["test_batch"][:5]}
    put_binary(short, tmp_path / "cifar-10-batches-bin")
    omniglot_set(monkeypatch, tmp_path / "omniglot-py")
    result = data(*command, "--data-dir", tmp_path)
    assert result.exit_code == 0, result.output
    assert states(result.output) == {
        "digits": "embedded",
        "mnist": "verified",
        "fashion-mnist": "corrupt",
        "cifar-10": "incomplete",
        "omniglot": "complete",
    }
    assert "test_batch has 5 of 20 images" in result.output
    assert str(tmp_path / "MNIST" / "raw") in result.output


def test_the_list_needs_no_directory():
    result = data()
    assert result.exit_code == 0, result.output
    assert set(states(result.output).values()) == {"embedded", "missing"}


FLAGS, METHOD = 8, 10
"""Where an archive's directory has these numbers of a member."""


@pytest.mark.parametrize(("at", "number"), [(FLAGS, 1), (METHOD, 99)])
def test_an_archive_of_an_unknown_kind_does_not_end_the_list(monkeypatch, tmp_path, at, number):
    omniglot_set(monkeypatch, tmp_path)
    for part in ("images_background", "images_evaluation"):
        content = bytearray(zipped(tmp_path / part))
        member = content.rindex(b"PK\x01\x02")
        content[member + at : member + at + 2] = number.to_bytes(2, "little")
        (tmp_path / f"{part}.zip").write_bytes(content)
    result = data("list", "--data-dir", tmp_path)
    assert result.exit_code == 0, result.output
    assert states(result.output)["omniglot"] == "corrupt"


@pytest.mark.parametrize("error", [PermissionError, None])
def test_a_directory_that_cannot_be_looked_into_has_nothing(monkeypatch, tmp_path, error):
    place = str(tmp_path) if error else 5000 * "x"
    real = os.stat

    def refusing(path, *arguments, **options):
        if error and str(path).startswith(f"{tmp_path}/"):
            raise error(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refusing)
    result = data("list", "--data-dir", place)
    assert result.exit_code == 0, result.output
    assert set(states(result.output).values()) == {"embedded", "missing"}
    for name in ("mnist", "cifar-10", "omniglot"):
        if error is None:
            refused = data("fetch", name, "--data-dir", place)
            assert isinstance(refused.exception, UsageError)


def test_an_incomplete_omniglot_is_listed_as_such(monkeypatch, tmp_path):
    omniglot_set(monkeypatch, tmp_path)
    next((tmp_path / "images_background").rglob("*.png")).unlink()
    assert states(data("--data-dir", tmp_path).output)["omniglot"] == "incomplete"


def test_a_check_counts_and_notes(monkeypatch, tmp_path):
    batches = cifar_set(monkeypatch)
    put_binary(batches | {"test_batch": batches["test_batch"][:5]}, tmp_path)
    result = data("check", "cifar-10", "--data-dir", tmp_path)
    assert result.exit_code == 0, result.output
    assert "cifar-10 has 80 training, 20 validation and 5 test images." in result.stdout
    assert "test_batch has 5 of 20 images" in result.stderr


def test_a_check_reads_pictures(monkeypatch, tmp_path):
    omniglot_set(monkeypatch, tmp_path)
    result = data("check", "omniglot", "--data-dir", tmp_path)
    assert "6 (24) training, 2 (8) validation and 2 (8) test classes" in result.output
    result = data("check", "folder", "--data-dir", tmp_path / "images_background" / "Aleph")
    assert "folder has 1 (4) training" in result.output
    next((tmp_path / "images_background").rglob("*.png")).write_bytes(b"damaged")
    result = data("check", "omniglot", "--data-dir", tmp_path)
    assert isinstance(result.exception, UsageError)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("check", "minst"), "did you mean 'mnist'"),
        (("check", "mnist"), "was not found"),
        (("fetsh",), "did you mean 'fetch'"),
        (("fetch", "cifar", "--data-dir", "x"), "did you mean 'cifar-10'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(arguments, sentence):
    result = data(*arguments)
    assert isinstance(result.exception, UsageError), result.output
    assert sentence in str(result.exception)


def test_fetching_needs_a_directory():
    result = data("fetch", "mnist")
    assert result.exit_code == 2
    assert "--data-dir" in result.output


def test_fetching_says_what_it_wrote(monkeypatch, tmp_path):
    def fetch(name, data_dir, mirror, *, progress):
        assert (name, data_dir, mirror, progress) == ("mnist", "here", "http://m", False)
        return [tmp_path / "file"]

    monkeypatch.setattr(fetching, "fetch", fetch)
    result = data("fetch", "mnist", "--data-dir", "here", "--mirror", "http://m")
    assert result.output == f"wrote {tmp_path / 'file'}\n"


def test_what_is_there_is_not_fetched(monkeypatch, tmp_path):
    put(idx_set(monkeypatch, "mnist"), tmp_path)
    result = data("fetch", "mnist", "--data-dir", tmp_path, "--mirror", "http://127.0.0.1:9")
    assert result.output == f"mnist is in {tmp_path} already.\n"


def test_the_list_needs_neither_mpi_nor_torch_nor_a_network():
    code = (
        "import sys; from sundsbo_mpi.cli.data import command;"
        "command(['list'], standalone_mode=False);"
        "assert not {'torch', 'sklearn', 'mpi4py', 'pooch', 'PIL'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

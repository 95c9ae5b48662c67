"""The source distribution and the wheel hold what they should, and say what they are."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import import_module

import fenced
import pytest
import yaml
from packaging.requirements import Requirement

from sundsbo_mpi import __version__

LEFT_OUT = shutil.ignore_patterns(
    ".*", "*.egg-info", "*.h5", "*.pyc", "__pycache__", "_build", "build", "demo", "dist", "tmp*"
)
SOURCE_FOLDERS = ("benchmarks", "docs", "examples", "launch", "src", "tests", "topologies")
SOURCE_FILES = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "constraints.txt",
    "pyproject.toml",
)
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"
PROJECT = tomllib.loads((fenced.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def files(folder):
    """Return the files below a folder as paths relative to it."""
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources without what lies about in a working folder."""
    folder = tmp_path_factory.mktemp("checkout") / "sundsbo-mpi"
    shutil.copytree(fenced.ROOT, folder, ignore=LEFT_OUT)
    return folder


@pytest.fixture(scope="module")
def built(checkout, tmp_path_factory):
    """The unpacked source distribution, and the wheel that was made from it alone."""
    dist = tmp_path_factory.mktemp("dist")
    kept = files(checkout)
    build("build_sdist", checkout, dist)
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        # Python 3.11 knows filters from 3.11.4 on, and then some releases warn where none is set.
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
        tar.extractall(dist)
    unpacked = dist / archive.name.removesuffix(".tar.gz")
    inside = files(unpacked)
    build("build_wheel", unpacked, dist)
    (wheel,) = dist.glob("*.whl")
    return kept, inside, zipfile.ZipFile(wheel)


def build(what, source, dist):
    """Build without a network: with the setuptools that is installed."""
    result = subprocess.run(
        [sys.executable, "-c", BUILD, what, str(dist)],
        cwd=source,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-3000:]


def test_the_source_distribution_has_all_sources(built):
    sources, inside, _ = built
    wanted = {f for f in sources if f.startswith(tuple(f"{s}/" for s in SOURCE_FOLDERS))}
    assert len(wanted) > 300
    assert wanted | set(SOURCE_FILES) <= inside
    assert not [f for f in inside if f.endswith((".pyc", ".h5"))]


def test_the_wheel_has_the_package_alone_with_its_data(built):
    sources, _, wheel = built
    package = {f.removeprefix("src/") for f in sources if f.startswith("src/sundsbo_mpi/")}
    inside = set(wheel.namelist())
    assert {f for f in inside if ".dist-info/" not in f} == package
    assert "sundsbo_mpi/py.typed" in inside
    assert "sundsbo_mpi/presets/paper/toy.toml" in inside
    assert [f for f in inside if f.endswith("licenses/LICENSE")]


@pytest.fixture
def metadata(built):
    (name,) = (n for n in built[2].namelist() if n.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(built[2].read(name))


def test_the_metadata_are_complete(metadata):
    assert metadata["Name"] == "sundsbo-mpi"
    assert metadata["Version"] == __version__
    assert metadata["Summary"] == PROJECT["description"]
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload(decode=True).decode() == (fenced.ROOT / "README.md").read_text()
    assert not [c for c in metadata.get_all("Classifier") if c.startswith("License")]
    assert all("https://" in url for url in metadata.get_all("Project-URL"))
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])


def test_requirements_can_be_read_and_have_a_lowest_version(metadata):
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist")]
    assert len(required) > 12
    for requirement in required:
        if requirement.name != "sundsbo-mpi":
            assert [s for s in requirement.specifier if s.operator == ">="], str(requirement)


def test_the_command_is_there():
    module, _, name = PROJECT["scripts"]["sundsbo-mpi"].partition(":")
    assert callable(getattr(import_module(module), name))


def test_the_version_stands_in_one_place(checkout):
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert PROJECT["dynamic"] == ["version"]
    said = re.compile(r"^\W*(?:version|release)\W+" + re.escape(__version__), re.MULTILINE)
    for file in ("pyproject.toml", "CITATION.cff", "README.md", "docs/conf.py", "docs/index.md"):
        assert not said.search((checkout / file).read_text(encoding="utf-8")), file


def test_the_citation_is_of_the_paper(checkout):
    citation = yaml.safe_load((checkout / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors", "year"} <= paper.keys()
    assert paper["url"] == PROJECT["urls"]["Paper"]
    for page in ("docs/algorithms.md", "docs/packaging.md"):
        text = " ".join((checkout / page).read_text(encoding="utf-8").split())
        assert paper["title"] in text
        for author in paper["authors"]:
            assert author["family-names"] in text

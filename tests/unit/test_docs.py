"""The documentation builds without a warning, its links lead somewhere, and it says what is so."""

import os
import re
import subprocess
import sys

import fenced
import pytest

from sundsbo_mpi import cli
from sundsbo_mpi.ranks import control, watchdog

FLAGS = ("-W", "--keep-going", "-n", "-q")
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")


def test_it_builds_and_every_warning_is_an_error(tmp_path):
    """Sphinx itself checks that pages, sections and objects that are referred to exist."""
    out = tmp_path / "html"
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", *FLAGS, "-d", tmp_path / "doctrees", fenced.DOCS, out],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,  # a few seconds where nobody else computes
    )
    assert result.returncode == 0, result.stderr[-5000:]
    methods = (out / "algorithms.html").read_text(encoding="utf-8")
    assert "sun-dsbo-gt" in methods
    assert "◇<sup>k+1</sup> = W" in methods
    assert "registry" not in re.sub(r"<[^>]*>", "", methods)
    commands = (out / "commands.html").read_text(encoding="utf-8")
    for name in (*cli.COMMANDS, "topology-ring"):
        assert f'id="sundsbo-mpi-{name}"' in commands
    for page in fenced.DOCS.glob("*.md"):
        assert (out / f"{page.stem}.html").is_file()


@pytest.mark.parametrize("page", [p for p in fenced.PAGES if p.parent != fenced.DOCS], ids=str)
def test_links_between_files_lead_somewhere(page):
    for target in (a or b for a, b in LINK.findall(fenced.prose(page))):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name}: {target}"


def anchors(page):
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", fenced.prose(page), re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def test_the_failure_guide_has_every_exit_status():
    table = fenced.prose(fenced.DOCS / "failures.md").partition("## Exit status")[2]
    told = {int(n) for n in re.findall(r"^\| (\d+) \|", table, re.M)}
    given = {
        0,
        cli.USAGE_STATUS,
        cli.DIVERGED_STATUS,
        cli.INTERRUPTED_STATUS,
        control.STOPPED_STATUS,
        watchdog.HUNG_STATUS,
    }
    assert told == given


def test_sentences_that_the_failure_guide_quotes_are_in_the_source():
    source = re.sub(r'"\s*\n\s*f?"', "", sources())
    text = fenced.prose(fenced.DOCS / "failures.md")
    quoted = re.findall(r"^\| `([^`]+)`", text, re.M)
    assert len(quoted) > 8
    for sentence in quoted:
        for part in re.split(r"…|\d+ (?:agents|ranks)|\d+", sentence):
            words = part.strip(" :?")
            if len(words.split()) > 1:
                assert words in source, f"'{words}' of `{sentence}`"


def sources():
    return "\n".join(
        path.read_text(encoding="utf-8") for path in (fenced.ROOT / "src").rglob("*.py")
    )

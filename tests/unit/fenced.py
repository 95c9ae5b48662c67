"""The fenced code blocks of Markdown pages, and the commands in them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted((ROOT / "launch").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]

FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=fence)\s*$", re.M | re.S
)
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^>]+) -->\s*\Z")
NAMED = re.compile(r"\A# (?P<name>[\w./-]+\.\w+)\n")
"""The first line of a block that is a file."""
ENDS_A_COMMAND = re.compile(r"[();<>|&\n]+")


class Block(NamedTuple):
    """One block: where it stands, its language, its text, and why it is not run, if it is not."""

    page: Path
    line: int
    language: str
    text: str
    reason: str

    @property
    def where(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def name(self):
        """The file that the block is said to be, or None."""
        found = NAMED.match(self.text)
        return found["name"] if found else None


def blocks(page):
    """Return all fenced blocks of a page but for the directives of MyST."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language = match["language"].strip()
        if language.startswith("{"):
            continue
        before = text[: match.start()]
        marked = NOT_RUN.search(before)
        reason = marked["reason"].strip() if marked else ""
        line = before.count("\n") + 1
        found.append(Block(page, line, language or "sh", match["text"], reason))
    return found


def prose(page):
    """Return a page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def words_of(script):
    """Return the words after ``sundsbo-mpi``, or its stand-in, of a script's commands."""
    return [words for words, _ in commands_of(script)]


def commands_of(script):
    """Return (words, file) of a script's own commands, where the output goes to a file or None."""
    found = []
    joined = re.sub(r"\\\n\s*", " ", script)
    for line in filter(re.compile("sundsbo-mpi|launch/local.sh").search, joined.splitlines()):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        command = []
        for word in [*lexer, ";"]:
            if word == ">" or command[-1:] == [">"]:
                command.append(word)
            elif ENDS_A_COMMAND.fullmatch(word):
                found += _own(command)
                command = []
            else:
                command.append(word)
    return found


def _own(command):
    """Return the program's own command, if it is one, as a list of one."""
    words, target = command, None
    if ">" in words:
        place = words.index(">")
        words, target = words[:place], words[place + 1]
    for place, word in enumerate(words):
        if word == "sundsbo-mpi" or word.endswith("/sundsbo-mpi"):
            return [(words[place + 1 :], target)]
        if word.endswith("launch/local.sh"):
            return [(words[place + 2 :], target)]  # after the number of agents
    return []

"""Every fenced block of the documentation and the README is run, or parsed, or says why not."""

import re
import subprocess
import tomllib
from pathlib import Path

import fenced
import pytest
import torch
from click.testing import CliRunner
from commands import every_command, options, parsed
from found_bench import found_bench

from sundsbo_mpi.bench.file import write_bench
from sundsbo_mpi.cli import COMMANDS, sundsbo_mpi
from sundsbo_mpi.cli.run import request_of
from sundsbo_mpi.composition.techniques import Tracking, gt_step
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.outgoing import Outgoing

SHOWN = ("text", "json", "yaml", "tex")
"""Languages of blocks that are looked at: output, and files of other programs."""
RUN_BY_OTHERS = ("CONTRIBUTING.md",)
"""Pages whose Python is run by a test of its own."""
CHEAP = ("sundsbo-mpi run ", "sundsbo-mpi topology ", "sundsbo-mpi list ", "sundsbo-mpi task ")
"""Of run only what starts nothing."""
OTHERS = ("apptainer ", "flux ", "mpirun --", "pip ", "qsub ", "sbatch ", "srun --", "#SBATCH ")
"""How commands of other programs begin."""
OTHERS_FLAGS = {
    "--cpus-per-task": "sbatch",
    "--no-binary": "pip",
    "--signal": "sbatch",
    "--wait": "srun",
    "--with-ft": "mpirun of Open MPI",
}


def is_excerpt(text):
    """Whether the block is a part of a technique: it yields outside of any function."""
    try:
        compile(text, "block", "exec")
    except SyntaxError as error:
        return "'yield' outside function" in str(error)
    return False


def blocks(*languages):
    return [b for page in fenced.PAGES for b in fenced.blocks(page) if b.language in languages]


def test_every_block_has_a_language_that_is_known():
    known = {"python", "sh", "toml", *SHOWN}
    assert len(blocks("python")) > 5
    assert len(blocks("sh")) > 20
    for page in fenced.PAGES:
        for block in fenced.blocks(page):
            assert block.language in known, block.where


@pytest.mark.parametrize("page", fenced.PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_work_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_bench(Path("here.h5"), found_bench())  # as a bench would that the pages start
    namespace = {"__name__": "block"}
    for block in fenced.blocks(page):
        if block.name:
            Path(block.name).parent.mkdir(parents=True, exist_ok=True)
            Path(block.name).write_text(block.text, encoding="utf-8")
        if block.reason or block.language in SHOWN:
            continue
        try:
            if block.language == "sh":
                commands(block, monkeypatch)
            elif block.language == "toml":
                configuration(block)
            elif page.name not in RUN_BY_OTHERS and not is_excerpt(block.text):
                exec(compile(block.text, block.where, "exec"), namespace)
        except Exception as error:
            pytest.fail(f"{block.where}: {error!r}\n{block.text}")


def commands(block, monkeypatch):
    """Parse every command of a script; run those that are cheap and whose files are there."""
    for words, target in fenced.commands_of(block.text):
        ctx = parsed(words, monkeypatch)
        starts = ctx.command_path == "sundsbo-mpi run" and not ctx.params["print_config"]
        if not all(map(Path.exists, needed(ctx))):
            continue
        if starts:
            resolve(request_of(words[words[:1] == ["run"] :]))
        elif f"{ctx.command_path} ".startswith(CHEAP):
            result = CliRunner().invoke(sundsbo_mpi, words, standalone_mode=False)
            assert result.exception is None, f"{words}: {result.exception!r}"
            assert result.return_value in (None, 0), f"{words}: {result.output}"
            if target:
                Path(target).write_text(result.stdout)


def needed(ctx):
    """Return the files that a command reads: of a run only the run file that may not be there."""
    if ctx.command_path == "sundsbo-mpi run":
        named = (ctx.params["like"],)
    else:
        named = (ctx.params.get("file"), (ctx.params.get("task") or "").partition(":")[0])
    return [Path(name) for name in named if name]


def configuration(block):
    tables = tomllib.loads(block.text)
    if tables.keys() <= {"run", "topology", "task", "algorithm", "output"}:
        Path("block.toml").write_text(block.text, encoding="utf-8")
        resolve(Request(file="block.toml"))


@pytest.mark.parametrize("block", blocks("sh"), ids=lambda block: block.where)
def test_shell_blocks_are_shell(block):
    checked = subprocess.run(
        ["bash", "-n"], input=block.text, capture_output=True, text=True, timeout=10
    )
    assert checked.returncode == 0, checked.stderr


def test_excerpts_of_techniques_are_gradient_tracking():
    excerpts = [block for block in blocks("python") if is_excerpt(block.text)]
    assert excerpts
    s, lam, m = torch.tensor([3.0, 1.0]), 0.25, Tracking(torch.ones(2), torch.tensor([2.0, -1.0]))
    for block in excerpts:
        body = "\n".join(f"    {line}" for line in block.text.splitlines())
        namespace = {}
        exec(f"def step(s, gradient, lam, m):\n{body}\n    return s, D, D_hat", namespace)
        found, D, D_hat = played(namespace["step"](s, lambda: 4 * s, lam, m))
        expected, memory = played(gt_step(s, lambda: 4 * s, lam, m))
        for one, other in ((found, expected), (D, memory.D), (D_hat, memory.D_hat)):
            torch.testing.assert_close(one, other)


def played(step):
    """Answer every yield of one agent by half of what it sent; return what the step returns."""
    answer = None
    while True:
        try:
            (sent,) = Outgoing((step.send(answer),)).tensors
        except StopIteration as end:
            return end.value
        answer = sent / 2


def test_flags_and_commands_in_the_prose_are_known():
    known = {flag for _, command in every_command() for flag in options(command)}
    assert "--topology" in known
    for page in fenced.PAGES:
        for span in re.findall(r"`([^`\n]+)`", fenced.prose(page)):
            where = f"{page.name}: `{span}`"
            if span.startswith(OTHERS):
                continue
            flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", span))
            assert flags <= {*known, *OTHERS_FLAGS}, where
            if named := re.match(r"sundsbo-mpi ([a-z][a-z-]*)", span):
                assert named[1] in COMMANDS, where

"""``sundsbo-mpi topology``: what it writes, prints and refuses, and what it does not import."""

import inspect
import shlex
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

from sundsbo_mpi.cli.topology import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import BUILDERS, SEQUENCES, read_weights

STORED = Path(__file__).parents[2] / "topologies"
OPTIONS = {"circulant": ["--offsets", "1,3"]}


def topology(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def refusal(*arguments):
    result = topology(*arguments)
    assert isinstance(result.exception, UsageError), result.output
    return str(result.exception)


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_is_a_subcommand_with_its_parameters_as_options(tmp_path, name):
    path = tmp_path / "w.npz"
    result = topology(name, "--agents", 8, *OPTIONS.get(name, []), "-o", path)
    assert result.exit_code == 0, result.output
    loaded = read_weights(str(path)).weights
    options = {"offsets": (1, 3)} if name == "circulant" else {}
    assert loaded.sha256 == BUILDERS[name](8, **options).sha256
    assert f"rho = {loaded.rho:.6f}" in result.output
    shown = topology(name, "--help").output
    for parameter in list(inspect.signature(BUILDERS[name]).parameters)[1:]:
        assert "--" + parameter.replace("_", "-") in shown


def test_options_reach_the_builder(tmp_path):
    path = str(tmp_path / "w.txt")
    for arguments, expected in [
        (["ring", "--self-weight", "1/3"], BUILDERS["ring"](8, self_weight=1 / 3)),
        (["ring", "--edge-weight", "1/3"], BUILDERS["ring"](8, edge_weight=1 / 3)),
        (["line", "--edge-weight", "0.3", "--lazy"], BUILDERS["line"](8, edge_weight=0.3).lazy()),
        (["grid", "--rows", "1"], BUILDERS["line"](8)),
        (
            ["erdos-renyi", "--seed", "5", "--probability", "0.6"],
            BUILDERS["erdos-renyi"](8, seed=5, probability=0.6),
        ),
    ]:
        assert topology(*arguments, "--agents", 8, "-o", path).exit_code == 0
        assert read_weights(path).weights.sha256 == expected.sha256


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("one-peer", [], {}),
        ("one-peer", ["--lazy"], {"lazy": True}),
        ("random", ["--neighbours", 2], {"neighbours": 2}),
        (
            "random",
            ["--neighbours", 2, "--neighbours-max", 4, "--every", 3, "--seed", 5, "--lazy"],
            {"neighbours": 2, "neighbours_max": 4, "every": 3, "seed": 5, "lazy": True},
        ),
    ],
)
def test_sequences_are_subcommands_too(tmp_path, name, arguments, options):
    path = tmp_path / "w.npz"
    result = topology(name, "--agents", 7, *arguments, "-o", path)
    assert result.exit_code == 0, result.output
    made = SEQUENCES[name](7, **options)
    assert read_weights(str(path)).weights.sha256 == made.sha256
    assert f"rho = {made.rho:.6f}" in result.output
    copied = topology("convert", path, "-o", tmp_path / "again.npz")
    assert copied.exit_code == 0, copied.output
    assert read_weights(str(tmp_path / "again.npz")).weights.sha256 == made.sha256
    assert topology("draw", path, "-o", tmp_path / "w.png").exit_code == 0
    assert "for weights that change" in refusal("convert", path, "-o", tmp_path / "w.txt")


@pytest.mark.parametrize("rule", ["metropolis", "best-constant"])
def test_convert_tells_of_no_weights_but_those_it_writes(tmp_path, rule):
    (tmp_path / "g.edges").write_text("1 2\n2 3\n")
    plain = topology("convert", tmp_path / "g.edges", "-o", tmp_path / "w.npz").output
    assert "its edges get Metropolis-Hastings weights" in plain
    told = topology(
        "convert", tmp_path / "g.edges", "--rule", rule, "-o", tmp_path / "w.npz"
    ).output
    assert "Metropolis-Hastings" not in told
    assert "node ids 1..3 are agents 0..2" in told
    assert rule in told


def test_check_judges_a_sequence_as_a_whole(tmp_path):
    topology("one-peer", "--agents", 8, "-o", tmp_path / "w.npz")
    out = " ".join(topology("check", tmp_path / "w.npz").output.split())
    assert "directed edges 24" in out
    assert "degrees 1 to 1, mean 1" in out
    assert "matrices 3 in turn" in out
    assert "symmetric no" in out
    assert "rho of each 0.92388 to 1" in out
    assert "rho of their product 0 " in out
    assert "sun-dsbo-gt" in out.split("not safe for")[0]
    assert "sun-dsbo-extra" in out.split("not safe for")[1]
    assert "they need symmetric matrices" in out
    assert "no theory" not in out
    topology("random", "--agents", 6, "--neighbours", 3, "-o", tmp_path / "w.npz")
    out = " ".join(topology("check", tmp_path / "w.npz").output.split())
    assert "3 random neighbours, redrawn every iteration" in out
    assert "edges 15" in out
    assert "symmetric yes" in out
    assert "smallest eigenvalue at least -0.5 " in out
    safe, _, rest = out.partition("no theory for")
    assert "sun-dsbo-gt" in safe
    assert "sun-dsbo-extra" not in safe
    doubtful, _, rest = rest.partition("not safe for")
    assert "sun-dsbo-extra" in doubtful
    assert "may diverge on networks that change" in doubtful
    assert "sun-dsbo-ed" in rest.split("allowed with (I + W)/2")[0]
    assert "sparkle-extra" in rest.split("allowed with (I + W)/2")[1]
    stack = np.stack([np.eye(3), np.eye(3)])
    np.save(tmp_path / "w.npy", stack)
    assert "3 parts" in refusal("check", tmp_path / "w.npy")


@pytest.mark.parametrize("rule", ["metropolis", "best-constant", "fastest"])
def test_convert_gives_a_matrix_or_a_graph_other_weights(tmp_path, rule):
    topology("line", "--agents", 5, "--edge-weight", "0.2", "-o", tmp_path / "w.npz")
    nx.write_edgelist(nx.path_graph(5), tmp_path / "w.edges", data=False)
    found = []
    for name in ("w.npz", "w.edges"):
        result = topology("convert", tmp_path / name, "--rule", rule, "-o", tmp_path / "new.npz")
        assert result.exit_code == 0, result.output
        found.append(read_weights(str(tmp_path / "new.npz")).weights)
    assert found[0].sha256 == found[1].sha256
    best = {"metropolis": (1 + 2 * np.cos(np.pi / 5)) / 3}.get(rule, np.cos(np.pi / 5))
    assert found[0].rho == pytest.approx(best, abs=1e-6)
    assert "did you mean" in refusal("convert", tmp_path / "w.npz", "--rule", "fast", "-o", "w.npz")


def test_wrong_options_are_refused(tmp_path):
    output = ["-o", str(tmp_path / "w.npz")]
    assert "did you mean 'ring'" in refusal("rng", "--agents", 3, *output)
    assert "0 agents" in refusal("ring", "--agents", 0, *output)
    for arguments, words in [
        (["ring", *output], "--agents"),
        (["circulant", "--agents", 5, *output], "--offsets"),
        (["circulant", "--agents", 5, "--offsets", "1,x", *output], "whole numbers"),
        (["ring", "--agents", 5, "--self-weight", "1/0", *output], "such as 0.5 or 1/3"),
        (["ring", "--agents", 5], "--output"),
    ]:
        result = topology(*arguments)
        assert result.exit_code == 2
        assert words in result.output
    assert not list(tmp_path.iterdir())


def test_convert_gives_a_graph_weights_and_says_so(tmp_path):
    nx.write_graphml_xml(
        nx.relabel_nodes(nx.cycle_graph(4), dict(enumerate("abcd"))),
        tmp_path / "g.graphml",
    )
    result = topology("convert", tmp_path / "g.graphml", "-o", tmp_path / "w.npz")
    assert result.exit_code == 0
    assert "agent 1 = node b" in result.output
    assert "Metropolis-Hastings" in result.output
    assert read_weights(str(tmp_path / "w.npz")).node_ids == tuple("abcd")
    topology("convert", tmp_path / "w.npz", "-o", tmp_path / "w.csv.gz")
    np.testing.assert_allclose(
        read_weights(str(tmp_path / "w.csv.gz")).weights.matrix.toarray().diagonal(), 1 / 3
    )


def test_the_reading_flags_are_taken_by_all_who_read(tmp_path):
    path = tmp_path / "g.dat"
    nx.write_gml(nx.DiGraph([(0, 1, {"w": 0.5}), (1, 2, {"w": 0.25})]), path)
    flags = ["--format", "gml", "--weights", "w", "--undirected"]
    for what in (
        ["convert", "-o", tmp_path / "w.txt"],
        ["check"],
        ["draw", "-o", tmp_path / "w.png"],
    ):
        assert "does not say its format" in refusal(what[0], path, *what[1:])
        assert topology(what[0], path, *what[1:], *flags).exit_code == 0
    assert read_weights(str(tmp_path / "w.txt")).weights.matrix[0, 1] == 0.5


def test_check_tells_what_matters():
    out = " ".join(topology("check", STORED / "ring-10-0.2.txt").output.split())
    assert "agents n 10" in out
    assert "degrees 2 to 2" in out
    assert "rho 0.847213595" in out
    assert "spectral gap 1 - rho 0.152786" in out
    assert "smallest eigenvalue -0.6" in out
    assert "not safe for sun-dsbo-ed, sun-dsbo-ed-gt" in out
    safe = out.split("not safe for")[0].split("safe for")[1]
    assert "sun-dsbo-extra" in safe
    assert "sun-dsbo-gt" in safe
    assert "not safe" not in topology("check", STORED / "ring-10-0.5.txt").output


def test_the_exact_third_is_not_safe_for_exact_diffusion():
    assert "not safe for" in topology("check", STORED / "ring-10-third.txt").output


PRINTED_LINE = np.diag([1.0, *[0.5] * 8], 1) + np.diag([*[0.5] * 8, 1.0], -1)


def test_a_bad_matrix_ends_the_program_with_two_and_one_sentence(tmp_path):
    np.save(tmp_path / "line.npy", PRINTED_LINE)
    for what in (["check"], ["convert", "-o", "w.txt"], ["draw", "-o", "w.png"]):
        program = [sys.executable, "-m", "sundsbo_mpi", "topology", what[0], "line.npy", *what[1:]]
        ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == 2
        assert "row 0, column 1 is 1 but the one in row 1, column 0 is 0.5" in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
        assert ended.stdout == ""


def test_neither_mpi_nor_torch_nor_matplotlib_is_imported(tmp_path):
    script = f"""
import sys
from sundsbo_mpi.cli import main
def run(*arguments):
    sys.argv = ["sundsbo-mpi", "topology", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
run("--help")
run("ring", "--agents", "6", "-o", {str(tmp_path / "w.npz")!r})
run("convert", {str(tmp_path / "w.npz")!r}, "-o", {str(tmp_path / "w.txt")!r})
run("check", {str(tmp_path / "w.txt")!r})
run("random", "--agents", "6", "--neighbours", "2", "-o", {str(tmp_path / "r.npz")!r})
run("check", {str(tmp_path / "r.npz")!r})
heavy = ("mpi4py", "torch", "matplotlib", "sklearn", "cvxpy")
print([name for name in heavy if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "[]", ended.stderr


MADE = [
    shlex.split(line)[1:]
    for line in (STORED / "make.sh").read_text().splitlines()
    if line.startswith("topology ")
]


def test_every_stored_file_is_made_by_the_script():
    assert sorted(line[-1] for line in MADE) == sorted(file.name for file in STORED.glob("*.txt"))
    readme = (STORED / "README.md").read_text()
    for *arguments, _, name in MADE:
        assert f"| `{name}` | `{' '.join(arguments)}` | " in readme


@pytest.mark.parametrize("arguments", MADE, ids=lambda line: line[-1])
def test_stored_weights_are_made_again_alike(tmp_path, arguments):
    made = tmp_path / arguments[-1]
    assert topology(*arguments[:-1], made).exit_code == 0
    again, stored = (read_weights(str(path)).weights for path in (made, STORED / made.name))
    assert again.sha256 == stored.sha256
    if made.name.startswith("rho-"):
        assert f"rho-{stored.rho:.3f}.txt" == made.name

"""What cannot be done ends with status 2 and one sentence, before anything is run."""

import h5py
import numpy as np
import pytest
from programs import assert_refused

SMALL = ("--iterations", 30, "--eval-every", 5)


@pytest.mark.parametrize(("ranks", "agents"), [(2, 3), (3, 2)])
def test_as_many_ranks_as_agents(mpirun, network, task, ranks, agents):
    result = mpirun(ranks, "--topology", network(agents), "--task", task)
    assert_refused(result, f"{agents} agents", f"{ranks} ranks")


UNKNOWN = [
    (("--algorithm", "sun-dsbo-gg"), ("sun-dsbo-gg", "did you mean 'sun-dsbo-gt'")),
    (("--task", "hypercleaning"), ("hypercleaning", "did you mean 'hyper-cleaning'")),
    (("--estimator", "momentun"), ("momentun", "did you mean 'momentum'")),
    (("--preset", "paper/toi"), ("paper/toi", "did you mean 'paper/toy'")),
    (("--dataset", "digit"), ("digit", "did you mean 'digits'")),
    (("--dtype", "float23"), ("float23", "float32")),
    (("--device", "cudaa"), ("cudaa", "did you mean 'cuda'")),
    (("--set", "algorithm.step_z=1"), ("step_z", "did you mean 'algorithm.step_")),
    (("--set", "task.coruption=1"), ("coruption", "did you mean 'task.corruption'")),
    (("--set", "rum.seed=1"), ("rum", "did you mean 'run'")),
    (("--set", "seed"), ("--set seed", "table.key=value")),
    (("--iteration", "7"), ("--iteration", "--iterations")),
    (("--set", "algorithm.x=edd"), ("edd", "did you mean 'ed'")),
]


def test_an_unknown_name_is_met_with_the_nearest(in_turn, network):
    results = in_turn([("--topology", network(1), *flags) for flags, _ in UNKNOWN])
    for result, (_, words) in zip(results, UNKNOWN, strict=True):
        assert_refused(result, *words)


def test_an_unknown_name_is_named_once_by_all_ranks_together(mpirun, network):
    assert_refused(mpirun(3, "--topology", network(3), "--algorithm", "sun-dsbo-gg"), "sun-dsbo-gt")


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ("d-psgd", "the task has no single_level()"),
        ("meha", "meha is centralised, but there are 2 agents"),
    ],
)
def test_a_method_that_cannot_work_here(mpirun, network, algorithm, words):
    flags = ("--task", "quadratic", "--algorithm", algorithm)
    assert_refused(mpirun(2, "--topology", network(2), *flags), words)


ONCE = """
import torch

from sundsbo_mpi.tasks.toy import Toy


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return v.square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slope):
        return 2 * ctx.saved_tensors[0] * slope


class Once(Toy):
    def lower(self, x, y, batch):
        return Square.apply(y - x.sum()).sum()
"""


def test_second_derivatives_that_autograd_would_take_for_zero(sundsbo, network, tmp_path):
    (tmp_path / "own.py").write_text(ONCE)
    flags = ("--topology", network(1), "--task", f"{tmp_path}/own.py:Once", *SMALL)
    result = sundsbo(*flags, "--algorithm", "d-soba")
    assert_refused(result, "the backward of Square is marked once_differentiable", "sun-dsbo-gt")


YIELDING = """
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.toy import Toy


class Yielding(Toy):
    def __init__(self, *, shard, agent, agents, seed):
        super().__init__(agent=agent, agents=agents, seed=seed)

    @staticmethod
    def shards(*, agents, seed):
        for agent in range(agents):
            if agent == 2:
                raise UsageError("row 7 of the table is empty: fill it.")
            yield {}
"""


def test_a_shard_that_cannot_be_made_when_others_have_theirs(mpirun, network, tmp_path):
    (tmp_path / "own.py").write_text(YIELDING)
    task = ("--task", f"{tmp_path}/own.py:Yielding", *SMALL)
    assert_refused(mpirun(3, "--topology", network(3), *task), "row 7 of the table is empty")
    assert mpirun(2, "--topology", network(2), *task).returncode == 0


def test_unknown_command(sundsbo):
    assert_refused(sundsbo("topologi"), "did you mean 'topology'")


def test_missing_data_says_where_it_looked(mpirun, network, tmp_path):
    (tmp_path / "empty").mkdir()
    flags = ("--dataset", "fashion-mnist", "--data-dir", tmp_path / "empty")
    result = mpirun(2, "--topology", network(2), *flags)
    where = f"looked in {tmp_path / 'empty' / 'FashionMNIST' / 'raw'} and {tmp_path / 'empty'}"
    assert_refused(result, where, "'apt-get install dataset-fashion-mnist'", "--data-dir")


def test_an_existing_run_file_is_kept(mpirun, sundsbo, network, task, tmp_path):
    output = tmp_path / "run.h5"
    flags = ("--task", task, *SMALL, "--output", output)
    assert sundsbo("--topology", network(1), *flags).returncode == 0
    before = output.read_bytes()
    assert_refused(mpirun(2, "--topology", network(2), *flags), "run.h5", "--overwrite")
    assert output.read_bytes() == before
    assert mpirun(2, "--topology", network(2), *flags, "--overwrite").returncode == 0
    with h5py.File(output) as run:
        assert run["topology/weights"].shape == (2, 2)


UNWRITABLE = {
    "no/such/folder/run.h5": "there is no directory",
    "file/run.h5": "there is no directory",
    ".": "is a directory",
}


@pytest.mark.parametrize(("where", "words"), UNWRITABLE.items())
def test_a_run_file_that_cannot_be_written(mpirun, network, task, tmp_path, where, words):
    (tmp_path / "file").touch()
    output = tmp_path / where
    result = mpirun(2, "--topology", network(2), "--task", task, "--output", output)
    assert_refused(result, f"'{output}'", words, "--output")


MATRICES = {
    "rows": ([[0.5, 0.4], [0.4, 0.5]], "row 0"),
    "asymmetric": ([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]], "symmetric"),
    "negative": ([[1.5, -0.5], [-0.5, 1.5]], "-0.5"),
    "disconnected": (np.eye(2).tolist(), "connected"),
    "alternating": ([[0.0, 1.0], [1.0, 0.0]], "rho"),
}


@pytest.mark.parametrize(("matrix", "word"), MATRICES.values(), ids=MATRICES)
def test_a_bad_matrix_is_refused(mpirun, sundsbo, tmp_path, matrix, word):
    path = tmp_path / "bad.npy"
    np.save(path, np.array(matrix))
    assert_refused(sundsbo("topology", "check", path), word)
    if word == "row 0":
        assert_refused(mpirun(len(matrix), "--topology", path), word)


def test_no_topology(in_turn, tmp_path):
    none, missing = in_turn([("--task", "toy"), ("--topology", tmp_path / "none.npz")])
    assert_refused(none, "--topology")
    assert_refused(missing, "none.npz")

"""Which GPU, how many threads: decided from numbers, whatever the machine at hand has."""

import pytest

from sundsbo_mpi.comm.devices import Node, choose_gpus, fair_threads
from sundsbo_mpi.errors import UsageError


def node(ranks, gpus, name="h1"):
    """A node all of whose ranks see all its GPUs."""
    return Node(name, [[f"{name}-{g}" for g in range(gpus)]] * ranks)


def private(ranks, name="h1"):
    """A node each of whose ranks sees one GPU of its own, as with srun --gpus-per-task=1."""
    return Node(name, [[f"{name}-{r}"] for r in range(ranks)])


def test_one_gpu_for_each_rank():
    assert choose_gpus("auto", [node(4, 4)]) == ([[0, 1, 2, 3]], [])
    assert choose_gpus("auto", [node(2, 4)]) == ([[0, 1]], [])
    assert choose_gpus("cuda", [node(4, 4)]) == ([[0, 1, 2, 3]], [])


def test_the_only_visible_gpu_is_number_0():
    assert choose_gpus("auto", [private(4)]) == ([[0, 0, 0, 0]], [])
    assert choose_gpus("cuda", [private(4)]) == ([[0, 0, 0, 0]], [])


def test_auto_prefers_the_cpu_to_sharing_and_says_so_in_one_line():
    choices, notes = choose_gpus("auto", [node(4, 2)])
    assert choices == [[None] * 4]
    (note,) = notes
    assert "4 ranks but 2 GPUs on h1" in note
    assert "--device cuda" in note
    assert "round-robin" in note
    assert "\n" not in note


def test_cuda_shares_round_robin_and_warns():
    choices, notes = choose_gpus("cuda", [node(5, 2)])
    assert choices == [[0, 1, 0, 1, 0]]
    (note,) = notes
    assert note.startswith("5 ranks but 2 GPUs on h1: they are shared round-robin")
    assert "ask for a GPU per rank" in note


def test_no_gpu_at_all():
    assert choose_gpus("auto", [node(3, 0)]) == ([[None] * 3], [])
    assert choose_gpus("cpu", [node(3, 3)]) == ([[None] * 3], [])
    with pytest.raises(UsageError, match=r"--device cuda.*h1"):
        choose_gpus("cuda", [node(3, 0)])


def test_each_node_decides_for_itself_but_all_are_named():
    nodes = [node(2, 2, "h1"), node(2, 1, "h2"), node(2, 1, "h3"), node(1, 0, "h4")]
    choices, notes = choose_gpus("auto", nodes)
    assert choices == [[0, 1], [None, None], [None, None], [None]]
    (note,) = notes
    assert "h2 and 1 more node" in note
    with pytest.raises(UsageError, match="h4"):
        choose_gpus("cuda", nodes)


def test_a_rank_that_sees_none_sends_its_node_to_the_cpu():
    assert choose_gpus("auto", [Node("h1", [["a"], []])]) == ([[None, None]], [])


def test_unknown_device():
    with pytest.raises(UsageError, match="did you mean 'cuda'"):
        choose_gpus("cudaa", [node(1, 1)])


@pytest.mark.parametrize(
    ("mine", "everyone", "threads"),
    [
        ({0, 1, 2, 3}, [{0, 1, 2, 3}] * 2, 2),
        ({0, 1, 2, 3}, [{0, 1, 2, 3}, {4, 5, 6, 7}], 4),
        ({0, 1}, [{0, 1}] * 10, 1),
        ({0, 1, 2, 3, 4}, [{0, 1, 2, 3, 4}] * 2, 2),
        ({0}, [{0}], 1),
    ],
)
def test_cores_are_divided_by_those_who_share_them(mine, everyone, threads):
    assert fair_threads(mine, everyone) == threads

"""Which GPU, how many threads: decided from numbers, whatever the machine at hand has."""

import re
from pathlib import Path

import pytest

from sundsbo_mpi.comm.placement import Node, advice, crowd_of, fair_threads, place
from sundsbo_mpi.errors import UsageError


def node(ranks, gpus, name="h1"):
    """A node all of whose ranks see all its GPUs."""
    return Node(name, [[f"{name}-{g}" for g in range(gpus)]] * ranks)


def private(ranks, name="h1"):
    """A node each of whose ranks sees one GPU of its own, as with srun --gpus-per-task=1."""
    return Node(name, [[f"{name}-{r}"] for r in range(ranks)])


def test_one_gpu_for_each_rank():
    assert place("auto", [node(4, 4)]) == ([[0, 1, 2, 3]], [])
    assert place("auto", [node(2, 4)]) == ([[0, 1]], [])
    assert place("cuda", [node(4, 4)]) == ([[0, 1, 2, 3]], [])


def test_the_only_visible_gpu_is_number_0():
    assert place("auto", [private(4)]) == ([[0, 0, 0, 0]], [])
    assert place("cuda", [private(4)]) == ([[0, 0, 0, 0]], [])


def test_auto_prefers_the_cpu_to_sharing_and_says_so_in_one_line():
    choices, notes = place("auto", [node(4, 2)])
    assert choices == [[None] * 4]
    (note,) = notes
    assert "4 ranks but 2 GPUs on h1" in note
    assert "--device cuda" in note
    assert "round-robin" in note
    assert "\n" not in note


def test_cuda_shares_round_robin_with_a_warning():
    choices, notes = place("cuda", [node(5, 2)])
    assert choices == [[0, 1, 0, 1, 0]]
    (note,) = notes
    assert "warning" in note


def test_no_gpu_at_all():
    assert place("auto", [node(3, 0)]) == ([[None] * 3], [])
    assert place("cpu", [node(3, 3)]) == ([[None] * 3], [])
    with pytest.raises(UsageError, match=r"--device cuda.*h1"):
        place("cuda", [node(3, 0)])


def test_each_node_decides_for_itself_but_all_are_named():
    nodes = [node(2, 2, "h1"), node(2, 1, "h2"), node(2, 1, "h3"), node(1, 0, "h4")]
    choices, notes = place("auto", nodes)
    assert choices == [[0, 1], [None, None], [None, None], [None]]
    (note,) = notes
    assert "h2 and 1 more node" in note
    with pytest.raises(UsageError, match="h4"):
        place("cuda", nodes)


def test_a_rank_that_sees_none_sends_its_node_to_the_cpu():
    assert place("auto", [Node("h1", [["a"], []])]) == ([[None, None]], [])


def test_unknown_device():
    with pytest.raises(UsageError, match="did you mean 'cuda'"):
        place("cudaa", [node(1, 1)])


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


def test_a_crowd_is_more_ranks_than_cores():
    assert crowd_of([{0, 1}] * 2) is None
    assert crowd_of([{0}, {1}, {2}]) is None
    assert crowd_of([{0, 1}] * 10) == (10, 2)
    assert crowd_of([{0, 1}] * 10).fact == "10 ranks on 2 cores of a node"
    assert crowd_of([{0}] * 2).fact == "2 ranks on 1 core of a node"


def test_advice_names_what_helps():
    assert advice([{0}, {1}, {2}], "Open MPI", ()) is None
    anywhere = advice([{0, 1}] * 10, "Open MPI", ())
    assert anywhere.startswith("10 ranks on 2 cores of a node: timings say little, and")
    assert "OMPI_MCA_mpi_yield_when_idle=1" in anywhere
    assert "PRTE" not in anywhere  # all ranks may use all cores already
    bound = advice([{0}, {1}, {1}], "Open MPI", ())
    assert "PRTE_MCA_hwloc_default_binding_policy=none" in bound
    half = advice([{0}, {1}, {1}], "Open MPI", {"OMPI_MCA_mpi_yield_when_idle"})
    assert "yield" not in half
    assert "PRTE_MCA_hwloc_default_binding_policy=none" in half
    mpich = advice([{0}] * 2, "MPICH", ())
    assert mpich == "2 ranks on 1 core of a node: timings say little"


def test_the_launch_script_sets_what_the_advice_says():
    script = (Path(__file__).parents[2] / "launch" / "local.sh").read_text()
    said = advice([{0}, {1}, {1}], "Open MPI", ())
    found = re.findall(r"(\w+)=(\w+)", said)
    assert found
    for name, value in found:
        assert f'export {name}="${{{name}:-{value}}}"' in script

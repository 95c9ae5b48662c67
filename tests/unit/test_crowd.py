"""More ranks than cores: when it is so, and what is said of it."""

import re
from pathlib import Path

from sundsbo_mpi.comm.crowd import crowd_note, crowd_of


def test_a_crowd_is_more_ranks_than_cores():
    assert crowd_of([{0, 1}] * 2) is None
    assert crowd_of([{0}, {1}, {2}]) is None
    assert crowd_of([{0, 1}] * 10) == (10, 2)
    assert crowd_of([{0, 1}] * 10).fact == "10 ranks of a node share 2 cores"
    assert crowd_of([{0}] * 2).fact == "2 ranks of a node share 1 core"


def test_the_note_names_what_helps():
    assert crowd_note([{0}, {1}, {2}], "Open MPI", ()) == ""
    anywhere = crowd_note([{0, 1}] * 10, "Open MPI", ())
    assert anywhere.startswith("10 ranks of a node share 2 cores: timings say little, and")
    assert "OMPI_MCA_mpi_yield_when_idle=1" in anywhere
    assert "PRTE" not in anywhere  # all ranks may use all cores already
    bound = crowd_note([{0}, {1}, {1}], "Open MPI", ())
    assert "PRTE_MCA_hwloc_default_binding_policy=none" in bound
    half = crowd_note([{0}, {1}, {1}], "Open MPI", {"OMPI_MCA_mpi_yield_when_idle"})
    assert "yield" not in half
    assert "PRTE_MCA_hwloc_default_binding_policy=none" in half
    mpich = crowd_note([{0}] * 2, "MPICH", ())
    assert mpich == "2 ranks of a node share 1 core: timings say little"


def test_the_launch_script_sets_what_the_note_says():
    script = (Path(__file__).parents[2] / "launch" / "local.sh").read_text()
    said = crowd_note([{0}, {1}, {1}], "Open MPI", ())
    found = re.findall(r"(\w+)=(\w+)", said)
    assert found
    for name, value in found:
        assert f'export {name}="${{{name}:-{value}}}"' in script

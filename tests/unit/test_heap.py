import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

FRESH = """
import resource, sys
import numpy as np
from sundsbo_mpi.heap import prepare_heap

def iterate():
    vectors = [np.ones(300_000) for _ in range(5)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "kept":
    prepare_heap()
iterate()
before = faults()
for _ in range(10):
    iterate()
print(faults() - before)
"""


def faults(mode):
    words = [sys.executable, "-c", FRESH, mode]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, timeout=60)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_vectors_of_the_next_iteration_lie_where_those_of_the_last_one_did():
    pages = 10 * 5 * 300_000 * 8 // 4096
    assert faults("default") > pages / 2  # else there is nothing to be gained
    assert faults("kept") < pages / 100


ADVISED = """
import sys
import numpy as np
from sundsbo_mpi.heap import prepare_heap

if sys.argv[1] == "prepared":
    prepare_heap()
vectors = [np.ones(300_000) for _ in range(6)]
print(*(vector.ctypes.data for vector in vectors[1:]))  # the first may fill a gap
print(open("/proc/self/smaps").read())
"""
"""Prints where vectors lie, and what the kernel tells of all mappings."""
OWN_MAPPINGS = Path("/proc/self/smaps")


def advised(mode):
    """Return for each vector whether its mapping is marked for huge pages."""
    words = [sys.executable, "-c", ADVISED, mode]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, timeout=60)
    places, mappings = done.stdout.split("\n", 1)
    entry = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) .*?^VmFlags:(.*?)$", re.MULTILINE | re.DOTALL)
    known = [(int(a, 16), int(b, 16), flags) for a, b, flags in entry.findall(mappings)]
    return [
        "hg" in flags.split()
        for place in map(int, places.split())
        for begin, end, flags in known
        if begin <= place < end
    ]


@pytest.mark.skipif(
    not (hasattr(ctypes.CDLL(None), "mallopt") and OWN_MAPPINGS.exists()),
    reason="not glibc on Linux",
)
@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="the kernel has no huge pages"
)
def test_vectors_lie_where_the_kernel_was_asked_for_huge_pages():
    assert advised("default") == [False] * 5
    assert advised("prepared") == [True] * 5


def test_a_heap_that_may_not_grow_is_left_alone():
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (150 * 2**20,) * 2); "
        "from sundsbo_mpi.heap import prepare_heap; prepare_heap(); print(len(bytearray(2**20)))"
    )
    words = [sys.executable, "-c", limited]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, timeout=60)
    assert int(done.stdout) == 2**20

import ctypes
import subprocess
import sys

import pytest

FRESH = """
import resource, sys
import numpy as np
from sundsbo_mpi.heap import keep_freed_memory

def iterate():
    vectors = [np.ones(300_000) for _ in range(5)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "kept":
    keep_freed_memory()
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

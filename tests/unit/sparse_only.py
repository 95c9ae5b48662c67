"""Whether something is done without a matrix that has a place for every pair of agents."""

import tracemalloc
from contextlib import contextmanager


@contextmanager
def no_dense_matrix(agents):
    """Fail where what is done at once takes a quarter of what such a matrix of float64 would."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * agents**2 / 4

"""However long a run, an agent holds as many numbers as after its first iterations."""

import gc

import bench
import pytest
import torch
from lockstep import Lockstep


@pytest.fixture
def without_collector():
    """Free by counting references alone: what waits for a collector takes memory meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live():
    """Return the number of tensors that exist, and the bytes of all their storages."""
    found = [one for one in gc.get_objects() if type(one) is torch.Tensor]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in found}
    return len(found), sum(storages.values())


@bench.every_method
def test_an_iteration_leaves_as_much_behind_as_it_found(name, variant, without_collector):
    algorithm = bench.build(name, **bench.lively(name, **variant))
    run = Lockstep(algorithm, bench.quadratics(task=bench.Merged, noise=0.1), bench.uneven())
    run.run(3)
    before = live()
    run.run(5)
    assert live() == before

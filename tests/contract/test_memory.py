"""What an agent remembers stays what it was: nothing is changed in place, nothing is shared."""

import bench
import torch
from lockstep import Lockstep


def tensors(held):
    """Return every tensor inside nested dicts, tuples and lists."""
    if isinstance(held, torch.Tensor):
        return [held]
    parts = held.values() if isinstance(held, dict) else held
    return [t for part in parts if not isinstance(part, int) for t in tensors(part)]


@bench.every_method
def test_nothing_held_after_an_iteration_changes_in_later_ones(name, variant):
    algorithm = bench.build(name, **bench.lively(name, **variant))
    run = Lockstep(algorithm, bench.quadratics(task=bench.Merged, noise=0.1), bench.uneven())
    kept = []
    for _ in range(4):
        held = tensors([run.points, run.states])
        kept.append((held, [t.clone() for t in held], [t._version for t in held]))
        run.iterate()
    for held, copies, versions in kept:
        assert all(map(torch.equal, held, copies))
        assert versions == [t._version for t in held], "written to, if only with the same values"


@bench.every_method
def test_nothing_held_is_shared_with_another_agent_or_part_of_a_graph(name, variant):
    """Between two iterations; that no message is held either is the business of tests/mpi."""
    algorithm = bench.build(name, **bench.lively(name, **variant))
    run = Lockstep(algorithm, bench.quadratics(task=bench.Merged, noise=0.1), bench.uneven()).run(3)
    taken = set()
    for w, state in zip(run.points, run.states, strict=True):
        held = tensors([w, state])
        assert all(not t.requires_grad for t in held)
        own = {t.untyped_storage().data_ptr() for t in held}
        assert not own & taken
        taken |= own


@bench.every_method
def test_a_step_depends_on_nothing_but_its_arguments(name, variant):
    """Stepping twice from one state gives one result, as resuming a run will need."""
    algorithm = bench.build(name, **bench.lively(name, **variant))
    run = Lockstep(algorithm, bench.quadratics(task=bench.Merged, noise=0.1), bench.uneven()).run(3)
    points, states = run.points, run.states
    run.iterate()
    first = tensors([run.points, run.states])
    run.points, run.states, run.k = points, states, 3
    run.iterate()
    assert all(map(torch.equal, first, tensors([run.points, run.states])))

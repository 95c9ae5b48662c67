"""Reductions and hand-outs against what any rank can work out by itself."""

import numpy as np

from sundsbo_mpi.comm.tally import Tally


def test_sums_and_means_are_in_double_precision(comm):
    tally = Tally(comm)
    single = np.full(3, 1 + 2.0**-20, dtype=np.float32) * np.float32(comm.rank)
    exact = (1 + 2.0**-20) * sum(range(comm.size))
    np.testing.assert_allclose(tally.total(single), exact, rtol=1e-14)
    np.testing.assert_allclose(tally.mean(single), exact / comm.size, rtol=1e-14)
    assert single[0] == np.float32((1 + 2.0**-20) * comm.rank)


def test_the_smallest_of_large_integers_is_exact(comm):
    finish = Tally(comm).smallest_soon(2**62 - comm.rank)
    assert finish() == 2**62 - comm.size + 1


def test_the_smallest_integer_is_found_while_agents_do_other_things_together(comm):
    tally = Tally(comm)
    for k in range(5):
        finish = tally.smallest_soon((comm.rank - k) % comm.size)
        assert tally.total(np.ones(1)) == comm.size
        comm.Barrier()
        assert finish() == 0


def test_rank_0_gets_rows_in_order_of_the_agents(comm):
    rows = Tally(comm).stack(np.array([comm.rank, -comm.rank], dtype=float))
    if comm.rank > 0:
        assert rows is None
    else:
        assert rows.tolist() == [[r, -r] for r in range(comm.size)]


def test_objects_go_round(comm):
    tally = Tally(comm)
    everyone = [f"agent {r}" for r in range(comm.size)]
    mine = everyone[comm.rank]
    assert tally.everyone(mine) == everyone
    assert tally.gather(mine) == (everyone if comm.rank == 0 else None)
    assert tally.tell(mine) == "agent 0"
    assert tally.is_root == (comm.rank == 0)


def test_each_agent_is_dealt_its_own(comm):
    hands = [{"images": np.full(1000, r, dtype=np.uint8)} for r in range(comm.size)]
    hand = Tally(comm).deal(hands if comm.rank == 0 else None)
    assert (hand["images"] == comm.rank).all()


def test_rank_0_s_numbers_are_spread(comm):
    values = np.full(4, comm.rank, dtype=float)
    Tally(comm).spread(values)
    assert not values.any()

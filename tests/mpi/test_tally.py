"""Reductions and hand-outs against what any rank can work out by itself."""

import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from sundsbo_mpi.comm import words as wording
from sundsbo_mpi.comm.agreement import deal
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.waiting import PATIENT, SPARING, Watchful
from sundsbo_mpi.comm.words import Words
from sundsbo_mpi.errors import AgreedError, UsageError


@pytest.fixture(params=["patient", "watchful"])
def tally(comm, request):
    return Tally(comm, PATIENT if request.param == "patient" else Watchful(comm))


def test_sums_and_means_are_in_double_precision(comm, tally):
    single = np.full(3, 1 + 2.0**-20, dtype=np.float32) * np.float32(comm.rank)
    exact = (1 + 2.0**-20) * sum(range(comm.size))
    np.testing.assert_allclose(tally.total(single), exact, rtol=1e-14)
    np.testing.assert_allclose(tally.mean(single), exact / comm.size, rtol=1e-14)
    assert single[0] == np.float32((1 + 2.0**-20) * comm.rank)


def test_the_smallest_of_large_integers_is_exact(comm, tally):
    assert tally.smallest(2**62 - comm.rank) == 2**62 - comm.size + 1


@pytest.fixture(params=["one step", "several steps", "one step, crowded", "several, crowded"])
def words(comm, tally, request, monkeypatch):
    """Few agents tell each other in one step; of more every step makes fewer out of two."""
    monkeypatch.setattr(wording, "RADIX", 1000 if "one" in request.param else 2)
    found = (Tally(comm, SPARING) if "crowded" in request.param else tally).words()
    assert found.steps == (1 if "one" in request.param else max(1, (comm.size - 1).bit_length()))
    yield found
    found.close()


def test_the_smallest_of_large_words_is_exact(comm, words):
    assert words.settle(2**62 - comm.rank) == 2**62 - comm.size + 1


def test_the_bytes_of_a_word_are_those_that_are_sent(comm, words):
    others = comm.size - 1 if words.steps == 1 else words.steps
    assert words.nbytes == 8 * others


def heard_in_turn(k, words, said):
    """Return the smallest of the words that are known to all in turn k."""
    return said(k - words.steps + 1) if k >= words.steps - 1 else wording.NOTHING


def test_the_smallest_word_is_found_while_agents_do_other_things_together(comm, tally, words):
    for k in range(10):
        words.start((comm.rank - k) % comm.size - k)
        assert tally.total(np.ones(1)) == comm.size
        comm.Barrier()
        assert words.finish() == heard_in_turn(k, words, lambda turn: -turn)


def test_no_word_is_taken_for_another_turn_s_however_far_agents_are_ahead(comm, words):
    for k in range(200):
        words.start(k if comm.rank == k % comm.size else 10**6)
        if comm.rank == k % 3:
            time.sleep(1e-3)
        assert words.finish() == heard_in_turn(k, words, lambda turn: turn)


def test_a_word_that_is_settled_comes_alone(comm, words):
    for k in range(3):
        words.start(-1)
        words.finish()
        assert words.settle(comm.rank + k) == k
        words.start(-2)
        assert words.finish() == heard_in_turn(0, words, lambda _: -2)
        assert words.settle(10**6) == 10**6


def test_words_are_kept_until_they_are_let_go_of(comm):
    class Keeping:
        def keep(self, thing):
            self.kept = thing

        def all(self, requests):
            self.requests = list(requests)
            MPI.Request.Waitall(requests)

    waiting = Keeping()
    words = Words(comm, waiting)
    assert waiting.kept is words, "MPI may write to its buffers as long as a word is under way"
    words.start(comm.rank)
    assert words.finish() == 0
    assert len(waiting.requests) == 2 * (comm.size - 1)
    assert all(request != MPI.REQUEST_NULL for request in waiting.requests), "planned once"
    words.close()
    assert all(request == MPI.REQUEST_NULL for request in waiting.requests)


def test_rank_0_gets_rows_in_order_of_the_agents(comm, tally):
    rows = tally.stack(np.array([comm.rank, -comm.rank], dtype=float))
    if comm.rank > 0:
        assert rows is None
    else:
        assert rows.tolist() == [[r, -r] for r in range(comm.size)]


def test_objects_go_round(comm, tally):
    everyone = ["agent" + "!" * 1000 * r for r in range(comm.size)]
    mine = everyone[comm.rank]
    assert tally.everyone(mine) == everyone
    assert tally.gather(mine) == (everyone if comm.rank == 0 else None)
    assert tally.tell(mine) == "agent"
    assert tally.is_root == (comm.rank == 0)


def test_each_agent_gets_its_own(comm, tally):
    hands = [{"images": np.full(1000, r, dtype=np.uint8)} for r in range(comm.size)]
    hand = tally.scatter(hands if comm.rank == 0 else None)
    assert (hand["images"] == comm.rank).all()


def test_what_is_scattered_is_let_go_of_before_the_next_is_made(comm, tally):
    made, alive = [], []

    def count():
        return sum(one() is not None for one in made)

    def hand(agent):
        found = np.full(100_000, agent)
        made.append(weakref.ref(found))
        return found

    def hands():
        for agent in range(comm.size):
            alive.append(count())
            yield hand(agent)

    own = tally.scatter(hands() if comm.rank == 0 else None)
    assert (own == comm.rank).all()
    assert alive == ([0] * comm.size if comm.rank == 0 else [])
    assert count() == 0


def test_an_agent_s_own_is_a_whole_copy_also_on_rank_0(comm, tally):
    all_of_it = np.arange(4 * comm.size)
    hands = (all_of_it[agent :: comm.size] for agent in range(comm.size))
    own = tally.scatter(hands if comm.rank == 0 else None)
    assert own.tolist() == list(range(comm.rank, 4 * comm.size, comm.size))
    assert own.flags.c_contiguous
    assert own.flags.writeable
    assert not np.shares_memory(own, all_of_it)


@pytest.mark.parametrize("short", [0, 1, 2, 100])
def test_what_cannot_be_made_ends_the_dealing_alike_on_all(comm, tally, short):
    good = max(comm.size - short, 0)

    def hands():
        yield from range(good)
        raise UsageError(f"none for {good}")

    with pytest.raises(AgreedError, match=f"none for {good}"):
        deal(tally, hands)
    assert tally.everyone(comm.rank) == list(range(comm.size))


def test_rank_0_s_numbers_are_spread(comm, tally):
    values = np.full(4, comm.rank, dtype=float)
    tally.spread(values)
    assert not values.any()


def test_the_last_to_come_lets_the_others_go(comm, tally, tmp_path):
    sign = Path(comm.bcast(str(tmp_path))) / "here"
    if comm.rank == comm.size - 1:
        time.sleep(0.05)
        sign.touch()
    tally.barrier()
    assert sign.exists()


def test_once_settled_the_same_sum_is_rounded_alike_every_time(comm):
    own = comm.Dup()
    tally = Tally(own)
    tally.settle()
    values = np.random.default_rng([7, comm.rank]).standard_normal(50)
    first = tally.total(values)
    for _ in range(30):
        assert (tally.total(values) == first).all()
    own.Free()

"""Several agents in one process, one thread each, for what is collective but needs no network."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Barrier, BrokenBarrierError

import numpy as np

PATIENCE_SECONDS = 60


class ThreadTally:
    """The collective operations of a ``Tally``, by a meeting of threads."""

    steps = 1
    """Turns that a word takes to be known to all."""

    def __init__(self, agent, agents, barrier, slots):
        self.agent, self.agents = agent, agents
        self._barrier, self._slots = barrier, slots

    @property
    def is_root(self):
        return self.agent == 0

    def everyone(self, value):
        self._slots[self.agent] = value
        self._barrier.wait()
        found = list(self._slots)
        self._barrier.wait()  # nobody may write again before all have read
        return found

    def barrier(self):
        self._barrier.wait()

    def settle(self):
        self._barrier.wait()

    def total(self, values):
        return np.sum(self.everyone(np.array(values, dtype=np.float64)), axis=0)

    def mean(self, values):
        return self.total(values) / self.agents

    def smallest(self, value):
        return min(self.everyone(value))

    def words(self):
        return ThreadWords(self)

    def stack(self, values):
        rows = self.everyone(np.array(values, dtype=np.float64))
        return np.stack(rows) if self.is_root else None

    def gather(self, value):
        values = self.everyone(value)
        return values if self.is_root else None

    def tell(self, value):
        return self.everyone(value)[0]

    def scatter(self, values):
        return self.everyone(list(islice(values or (), self.agents)))[0][self.agent]

    def spread(self, values):
        values[:] = self.everyone(values.copy())[0]


class ThreadWords:
    """The words of the agents of a ``ThreadTally``, known to all after ``steps`` turns."""

    nbytes = 8

    def __init__(self, tally):
        self._tally, self._smallest, self.closed = tally, None, False
        self.steps = tally.steps
        self._on_their_way = self._none()

    def _none(self):
        return deque([2**63 - 1] * (self.steps - 1))

    def start(self, word):
        assert not self.closed
        assert self._smallest is None, "one word after the other"
        self._smallest = self._tally.smallest(word)

    def finish(self):
        assert self._smallest is not None, "nothing was said"
        self._on_their_way.append(self._smallest)
        self._smallest = None
        return self._on_their_way.popleft()

    def settle(self, word):
        for _ in range(self.steps):
            self.start(word)
            found = self.finish()
        self._on_their_way = self._none()
        return found

    def close(self):
        assert self._smallest is None, "a word is under way"
        self.closed = True


def together(agents, work):
    """Call work(tally) for every agent at once and return the results; raise what an agent raised.

    An agent that raises wakes the others, so that a forgotten collective call ends the test.
    """
    barrier, slots = Barrier(agents, timeout=PATIENCE_SECONDS), [None] * agents

    def live(agent):
        try:
            return work(ThreadTally(agent, agents, barrier, slots))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(agents) as pool:
        lives = [pool.submit(live, agent) for agent in range(agents)]
    errors = [life.exception() for life in lives]
    found = [e for e in errors if e is not None]
    for error in sorted(found, key=lambda e: isinstance(e, BrokenBarrierError)):
        raise error
    return [life.result() for life in lives]


def complaints(agents, work, kind):
    """Return the sentence of the ``kind`` of error that work(tally) must raise on every agent."""

    def caught(tally):
        try:
            work(tally)
        except kind as error:
            return str(error)
        return None

    return together(agents, caught)

"""An observer of an agent's loop that remembers what it was told."""

from sundsbo_mpi.agent import Observer


class Onlooker(Observer):
    """Keeps positions and words; ``advance`` is called along, ``saves`` tells where to save."""

    def __init__(self, advance=lambda _done: None, saves=lambda _done: False):
        self.rows, self.ticks, self.saved, self.skips, self.order = [], [], [], [], []
        self._advance, self._saves = advance, saves

    @property
    def evaluated(self):
        return [at.done for at in self.rows]

    def advance(self, done):
        self.ticks.append(done)
        self._advance(done)

    def evaluate(self, at):
        self.rows.append(at)
        self.order.append(("row", at.done))

    def wants_saving(self, done):
        return self._saves(done)

    def save(self, at):
        self.saved.append(at)
        self.order.append(("saved", at.done))
        return 0.0

    def note_skip(self, sentence, k):
        self.skips.append((sentence, k))

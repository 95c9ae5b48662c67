"""Runs the agents of a method side by side in one process: a dense W stands in for the network.

What an agent yields is packed before anything is averaged, and what it is sent back is its own:
freshly allocated, as ``Gossip.average`` promises (tests/mpi holds it to that), and shared with
neither a message nor another agent.  Writing into what was delivered is caught.
"""

import numpy as np
import torch


class Lockstep:
    """All agents of a run; what it counts is what one agent sends to each neighbour.

    Args:
        algorithm: The method, shared by the agents: it has no state of its own.
        tasks: The agents' problems, in the order of the rows of W.
        W: Any square matrix, or a function of k where the network changes; what makes it fit for a
            method is the business of the test.
        tamper: Called with (buffer, averages) in every round; returns the averages delivered.
    """

    def __init__(self, algorithm, tasks, W, tamper=None):
        self.algorithm, self.tasks = algorithm, tasks
        self.at = W if callable(W) else lambda _k: W
        self.tamper = tamper
        self.k = 0
        self.points, self.states = map(list, zip(*map(algorithm.start, tasks), strict=True))
        self.previous = self.points
        self.rounds = 0
        self.vectors = 0
        self.numbers = 0
        self.bytes = 0
        self.buffers = {}

    def run(self, iterations):
        for _ in range(iterations):
            self.iterate()
        return self

    def iterate(self):
        """Do one iteration of all agents."""
        steps = [
            self.algorithm.step(task, self.k, w, state)
            for task, w, state in zip(self.tasks, self.points, self.states, strict=True)
        ]
        averages = [None] * len(steps)
        delivered = []
        while True:
            outcomes = [_send(s, a) for s, a in zip(steps, averages, strict=True)]
            finished = {done for done, _ in outcomes}
            assert len(finished) == 1, "the agents disagree on the number of rounds"
            results = [result for _, result in outcomes]
            if finished == {True}:
                break
            averages, sent_back = self.exchange(results)
            delivered.append(sent_back)
        for rows, as_sent in delivered:
            unchanged = torch.stack(rows).numpy().tobytes() == as_sent
            assert unchanged, "an average was changed in place"
        self.previous = self.points
        self.points, self.states = map(list, zip(*results, strict=True))
        self.k += 1

    def exchange(self, outgoing):
        """Answer one round: each agent's yielded tensors by their neighbourhood averages.

        Returned beside them: the rows whose parts they are, and the bytes of all these rows.
        """
        lengths, dtype = outgoing[0].lengths, outgoing[0].dtype
        assert all(sent.lengths == lengths for sent in outgoing)
        shape = (len(outgoing), sum(lengths))
        buffer = self.buffers.setdefault((shape, dtype), torch.empty(shape, dtype=dtype))
        for row, sent in zip(buffer, outgoing, strict=True):
            torch.cat(sent.tensors, out=row)
        for sent in outgoing:
            sent.meanwhile()
        vectors = torch.stack([s.decode(row) for s, row in zip(outgoing, buffer, strict=True)])
        W = torch.from_numpy(np.asarray(self.at(self.k), dtype=np.float64))
        averages = W.to(vectors.dtype) @ vectors
        if self.tamper:
            averages = self.tamper(vectors, averages)
        self.rounds += 1
        self.vectors += len(lengths)
        self.numbers += sum(lengths)
        self.bytes += sum(lengths) * buffer.element_size()
        whole = averages.shape[1] == sum(lengths)
        rows = [row.clone() for row in averages]
        answers = [torch.split(row, lengths) if whole else (row,) for row in rows]
        return answers, (rows, averages.numpy().tobytes())

    def rows(self, variable):
        """Return one variable of all agents, (n, d)."""
        return torch.stack([w[variable] for w in self.points]).numpy()

    def defects(self):
        """Return what each agent contributes to the invariants of the last iteration."""
        return [
            self.algorithm.defect(self.k - 1, w, before, state)
            for w, before, state in zip(self.points, self.previous, self.states, strict=True)
        ]


def _send(step, average):
    """Return whether the step has ended, and what it returned or yielded."""
    try:
        return False, step.send(average)
    except StopIteration as end:
        return True, end.value

"""The few collective operations that metrics and decisions need, on numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from sundsbo_mpi.comm.waiting import PATIENT, Waiting
from sundsbo_mpi.comm.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTLED_AFTER = 8
"""Sums; MPICH 5 was seen to change after the fourth."""


class Tally:
    """Collective sums, gathers and agreements over all agents.

    Every method is collective, but for ``words``.

    Args:
        comm: A communicator with one rank per agent.
        waiting: How the others are waited for.
    """

    def __init__(self, comm: MPI.Intracomm, waiting: Waiting = PATIENT) -> None:
        self._comm, self._waiting = comm, waiting
        self.agent = comm.rank
        self.agents = comm.size

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0, which does the file work."""
        return self.agent == 0

    def mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the average over the agents of equally long arrays, summed in double precision."""
        return self.total(values) / self.agents

    def total(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum over the agents of equally long arrays, in double precision."""
        total = np.array(values, dtype=np.float64)
        self._do("Allreduce", MPI.IN_PLACE, total, MPI.SUM)
        return total

    def settle(self) -> None:
        """Let MPI come to the way in which it adds; without it a run may differ from itself.

        MPICH begins with one and takes another, in which sums are rounded otherwise, after the
        first few on a communicator.
        """
        for _ in range(SETTLED_AFTER):
            self.total(np.zeros(1))

    def barrier(self) -> None:
        """Wait until all agents have come here."""
        self._do("Barrier")

    def smallest(self, value: int) -> int:
        """Return the smallest of the agents' integers."""
        found = np.array([value], dtype=np.int64)
        self._do("Allreduce", MPI.IN_PLACE, found, MPI.MIN)
        return int(found[0])

    def words(self) -> Words:
        """Return what finds the smallest of their integers again and again; local."""
        return Words(self._comm, self._waiting)

    def stack(self, values: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return, on rank 0, the agents' equally long arrays as rows."""
        rows = np.empty((self.agents, values.size)) if self.is_root else None
        self._do("Gather", np.ascontiguousarray(values, dtype=np.float64), rows)
        return rows

    def gather(self, value: Any) -> list[Any] | None:
        """Return, on rank 0, the agents' objects in order of the agents."""
        packed = _packed(value)
        sizes = np.empty(self.agents, dtype=np.int64) if self.is_root else None
        self._do("Gather", np.array([packed.size]), sizes)
        if sizes is None:
            self._do("Gatherv", packed, None)
            return None
        joined = np.empty(sizes.sum(), dtype=np.uint8)
        self._do("Gatherv", packed, [joined, sizes, MPI.BYTE])
        return _unpacked(joined, sizes)

    def everyone(self, value: Any) -> list[Any]:
        """Return the agents' objects in order of the agents, on all of them."""
        packed = _packed(value)
        sizes = np.empty(self.agents, dtype=np.int64)
        self._do("Allgather", np.array([packed.size]), sizes)
        joined = np.empty(sizes.sum(), dtype=np.uint8)
        self._do("Allgatherv", packed, [joined, sizes, MPI.BYTE])
        return _unpacked(joined, sizes)

    def tell(self, value: Any) -> Any:
        """Return rank 0's object on all agents."""
        packed = _packed(value) if self.is_root else np.empty(0, dtype=np.uint8)
        size = np.array([packed.size])
        self._do("Bcast", size)
        if not self.is_root:
            packed = np.empty(size[0], dtype=np.uint8)
        self._do("Bcast", packed)
        return _unpacked(packed, size)[0]

    def scatter(self, values: Iterable[Any] | None) -> Any:
        """Hand the i-th of rank 0's objects to agent i; only while no agent can be spared.

        Rank 0 must have one for each agent, since every other agent waits for its own: where
        making one may fail, ``agreement.deal`` tells them.  Rank 0 takes the next one when it has
        let go of the last one, and keeps a copy of its own, which may be a part of something
        larger.
        """
        from mpi4py.util import pkl5  # shards may exceed the 2 GiB of an ordinary message

        mail = pkl5.Intracomm(self._comm)
        if values is None:
            return mail.recv(source=0)
        coming = iter(values)
        own = mail.sendrecv(next(coming), dest=0, source=0)
        for agent in range(1, self.agents):
            mail.send(next(coming), dest=agent)
        return own

    def spread(self, values: NDArray[np.float64]) -> None:
        """Overwrite the agents' equally long arrays by rank 0's."""
        self._do("Bcast", values)

    def _do(self, collective: str, *arguments: Any) -> None:
        self._waiting.do(self._comm, collective, *arguments)


def _packed(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(MPI.pickle.dumps(value), dtype=np.uint8)


def _unpacked(joined: NDArray[np.uint8], sizes: NDArray[np.int64]) -> list[Any]:
    return [MPI.pickle.loads(part) for part in np.split(joined, np.cumsum(sizes)[:-1])]

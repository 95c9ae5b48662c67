"""What TCP alone costs an agent: the bytes of a round over plain sockets, without MPI.

Nothing is put into a message, and nothing is done with what arrives.
"""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mpi4py import MPI

BYTE = b"\1"
"""Written, so that what is sent is memory of this process and not the kernel's page of zeros."""


class PlainSockets:
    """A connection with each neighbour, over which two threads move ``size`` bytes each way.

    The threads wait in the kernel: Python runs on beside them.  Making one is collective.

    Args:
        comm: The agents, one on each host.
        address: What the others reach this agent's host by.
        neighbours: Those it exchanges with, who have it as a neighbour as well.
        size: Bytes to each of them in a round, and from each.
    """

    def __init__(
        self, comm: MPI.Intracomm, address: str, neighbours: Iterable[int], size: int
    ) -> None:
        self._sent = BYTE * size
        self._connections: list[socket.socket] = []
        with socket.create_server((address, 0)) as server:
            places = comm.allgather(server.getsockname())
            for neighbour in neighbours:
                if neighbour > comm.rank:
                    connection, _ = server.accept()
                else:
                    connection = socket.create_connection(places[neighbour])
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._connections.append(connection)
            comm.Barrier()
        self.received = [bytearray(size) for _ in self._connections]
        """What arrived in the last round, one for each neighbour."""
        self._threads = ThreadPoolExecutor(max(1, 2 * len(self._connections)))

    def beside(self, work: Callable[[], object]) -> None:
        """Do something while the bytes of a round are moved.

        Raises:
            OSError: a neighbour is gone.
        """
        moving = [
            self._threads.submit(move, *of)
            for of in zip(self._connections, self.received, strict=True)
            for move in (self._send, _receive)
        ]
        work()
        wait(moving)
        for each in moving:
            each.result()

    def _send(self, connection: socket.socket, _received: bytearray) -> None:
        connection.sendall(self._sent)

    def close(self) -> None:
        """End the threads and the connections."""
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()


def _receive(connection: socket.socket, received: bytearray) -> None:
    arrived, place = 0, memoryview(received)
    while arrived < len(received):
        new = connection.recv_into(place[arrived:], 0, socket.MSG_WAITALL)
        if not new:
            raise ConnectionError("a neighbour has closed its connection")
        arrived += new

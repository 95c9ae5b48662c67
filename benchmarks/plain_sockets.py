"""What TCP alone costs an agent: the bytes of a round over plain sockets, without MPI.

Nothing is put into a message, and nothing is done with what arrives.
"""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mpi4py import MPI


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
        self._begin: list[threading.Semaphore] = []
        self._ended = threading.Semaphore(0)
        with socket.create_server((address, 0)) as server:
            places = comm.allgather(server.getsockname())
            for neighbour in neighbours:
                if neighbour > comm.rank:
                    connection, _ = server.accept()
                else:
                    connection = socket.create_connection(places[neighbour])
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._move(connection, size)
            comm.Barrier()

    def _move(self, connection: socket.socket, size: int) -> None:
        sent, received = bytes(size), memoryview(bytearray(size))

        def receive() -> None:
            arrived = 0
            while arrived < size:
                arrived += connection.recv_into(received[arrived:], 0, socket.MSG_WAITALL)

        self._in_turn(lambda: connection.sendall(sent))
        self._in_turn(receive)

    def _in_turn(self, work: Callable[[], None]) -> None:
        begin = threading.Semaphore(0)
        self._begin.append(begin)

        def go_on() -> None:
            while True:
                begin.acquire()
                work()
                self._ended.release()

        threading.Thread(target=go_on, daemon=True).start()

    def beside(self, work: Callable[[], None]) -> None:
        """Do something while the bytes of a round are moved."""
        for begin in self._begin:
            begin.release()
        work()
        for _ in self._begin:
            self._ended.acquire()

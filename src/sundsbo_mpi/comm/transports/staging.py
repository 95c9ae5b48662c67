"""Messages of agents that compute on a GPU.

MPI knows nothing of the order in which a device does its work, so the two rules of this module are:
what MPI reads must have been written, and what MPI overwrites must have been read, before it is
told of the buffer.  Both are kept by settling the device, which waits for all that was queued.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from mpi4py import MPI

from sundsbo_mpi.comm.transports.exchange import Exchange, Route
from sundsbo_mpi.comm.waiting import PATIENT, Waiting

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.topology import Links


class Layer(Protocol):
    """What a device can do with buffers; its work is queued, and done at the latest by settle."""

    def empty(self, length: int, dtype: torch.dtype) -> Tensor:
        """Make a flat buffer on the device."""

    def host(self, length: int, dtype: torch.dtype) -> Tensor:
        """Make a flat buffer in host memory that the device copies to and from directly."""

    def copy(self, to: Tensor, from_: Tensor) -> None:
        """Queue a copy between a device and a host buffer."""

    def settle(self) -> None:
        """Wait until everything queued is done."""

    def known_to_mpi(self) -> bool:
        """Tell whether the MPI library says that it reads and writes buffers of such devices."""


class Cuda:
    """The layer of one CUDA device, whose work is queued on torch's current stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def empty(self, length: int, dtype: torch.dtype) -> Tensor:
        """Make a flat buffer on the device."""
        return torch.empty(length, dtype=dtype, device=self._device)

    def host(self, length: int, dtype: torch.dtype) -> Tensor:
        """Make a flat buffer in page-locked memory."""
        return torch.empty(length, dtype=dtype, pin_memory=True)

    def copy(self, to: Tensor, from_: Tensor) -> None:
        """Queue a copy."""
        to.copy_(from_, non_blocking=True)

    def settle(self) -> None:
        """Wait for the stream."""
        torch.cuda.current_stream(self._device).synchronize()

    def known_to_mpi(self) -> bool:
        """Ask the library."""
        # The extension brings the library's own symbols along.
        kinds = ("rocm", "hip") if torch.version.hip else ("cuda",)
        return says_yes(ctypes.CDLL(MPI.__file__), kinds)


def says_yes(library: object, kinds: Sequence[str]) -> bool:
    """Tell whether an MPI library knows buffers of one of these kinds.

    It is asked by MPIX_Query_KIND_support, which Open MPI and MPICH have; one that has no such
    function is taken not to know them, as it would end the program on meeting one.
    """
    queries = [getattr(library, f"MPIX_Query_{kind}_support", None) for kind in kinds]
    return any(query is not None and query() for query in queries)


def layer_of(device: torch.device) -> Layer | None:
    """Return the layer of a GPU, or None for the CPU, whose buffers are the host's."""
    return Cuda(device) if device.type == "cuda" else None


class Staged(Exchange):
    """An exchange of device buffers by way of host buffers; see ``Exchange``.

    Args:
        host: The exchange between host buffers.
        layer: The device.
    """

    def __init__(self, host: Exchange, layer: Layer) -> None:
        slots = (layer.empty(host.packed.numel(), host.packed.dtype),)
        super().__init__(slots, (), PATIENT)  # it is the host's that waits
        self._host, self._layer = host, layer
        self._rows: list[Tensor] = []

    def start(self, links: Links) -> None:
        """Copy the message to the host, wait for it, and send it."""
        self._layer.copy(self._host.packed, self.packed)
        self._layer.settle()
        self._host.start(links)

    def over(self) -> bool:
        """Test the host's exchange."""
        return self._host.over()

    def finish(self) -> None:
        """Wait for the messages and copy them to the device."""
        self._host.finish()
        while len(self._rows) < len(self._host.arrived):
            self._rows.append(self._layer.empty(self.packed.numel(), self.packed.dtype))
        self.arrived = self._rows[: len(self._host.arrived)]
        for row, message in zip(self.arrived, self._host.arrived, strict=True):
            self._layer.copy(row, message)
        self._layer.settle()  # the host buffers may be overwritten from now on

    def close(self) -> None:
        """Close the host's exchange."""
        self._host.close()


class Direct(Exchange):
    """An exchange in which MPI itself reads and writes device buffers; see ``Exchange``."""

    def __init__(
        self, slots: Sequence[Tensor], routes: Sequence[Route], layer: Layer, waiting: Waiting
    ) -> None:
        super().__init__(slots, routes, waiting)
        self._layer = layer

    def start(self, links: Links) -> None:
        """Wait for the message to be packed and for what arrived last to be mixed, then send."""
        self._layer.settle()
        super().start(links)

"""Spoils the buffers that a Gossip has planned: whoever still looks into them meets NaN."""

import torch

from sundsbo_mpi.comm.transports.network import Network
from sundsbo_mpi.comm.transports.shared import Shared
from sundsbo_mpi.comm.transports.staging import Staged
from sundsbo_mpi.comm.transports.survivable import Survivable


def record_plans(monkeypatch):
    """Collect the exchanges planned from now on."""
    plans = []

    def recording(plan):
        def recorded(self, dtype, length):
            plans.append(plan(self, dtype, length))
            return plans[-1]

        return recorded

    for kind in (Network, Survivable):
        monkeypatch.setattr(kind, "plan", recording(kind.plan))
    return plans


def spoil(plans):
    """Fill what nobody may look at between two rounds; of a window that is the slot to be filled.

    The other slot is left alone: neighbours may still be reading it.
    """
    for exchange in plans:
        exchange.packed.fill_(torch.nan)
        if isinstance(exchange, Staged):
            spoil([exchange._host])
            received = exchange._rows
        else:
            messages = [route for route in exchange._routes if not isinstance(route, Shared)]
            received = [row for route in messages for row in route.arrived(0).values()]
        for row in received:
            row.fill_(torch.nan)

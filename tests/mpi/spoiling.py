"""Spoils the buffers that a Gossip has planned: whoever still looks into them meets NaN."""

import torch

from sundsbo_mpi.comm import gossip


def record_plans(monkeypatch):
    """Collect the plans made from now on."""
    plans = []

    class Recorded(gossip.Plan):
        def __init__(self, *args):
            super().__init__(*args)
            plans.append(self)

    monkeypatch.setattr(gossip, "Plan", Recorded)
    return plans


def spoil(plans):
    for plan in plans:
        for buffer in (plan.send, plan.receive, plan.packed, plan.arrived):
            buffer.fill_(torch.nan)

"""A quadratic whose agents report, at every evaluation, what their process holds."""

import gc
import os
import sys

from sundsbo_mpi.tasks.quadratic import Quadratic

PAGE = os.sysconf("SC_PAGE_SIZE")


def holdings():
    """Return what must not grow; requests and windows of MPI are objects, memory and mappings."""
    gc.collect()
    with open("/proc/self/statm") as pages, open("/proc/self/maps") as maps:
        return {
            "resident_bytes": float(pages.read().split()[1]) * PAGE,
            "mappings": float(sum(1 for _ in maps)),
            "descriptors": float(len(os.listdir("/proc/self/fd"))),
            "threads": float(len(os.listdir("/proc/self/task"))),
            "objects": float(sys.getallocatedblocks()),
        }


class Watched(Quadratic):
    def start(self):
        gc.collect()
        gc.freeze()  # libraries are not looked through again, which takes long
        return super().start()

    def report(self, x, y):
        return super().report(x, y) | holdings()

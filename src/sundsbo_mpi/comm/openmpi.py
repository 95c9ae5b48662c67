"""What Open MPI is told before it starts; other MPI libraries do not read these variables."""

from __future__ import annotations

from collections.abc import Mapping

WINDOWS = {"OMPI_MCA_osc": "^ucx"}
"""UCX's windows, which nothing here needs, complain wherever UCX finds no network."""
LIBFABRIC = {"OMPI_MCA_btl": "^ofi"}
"""The component "ofi" of the kind "btl" carries windows, and messages only if its mode says so.
Where libfabric finds no network it is closed again, and sleeps for a second as it closes."""
SENT_AT_ONCE = 8 * 2**20
"""Bytes, a header among them, that go over TCP without asking the receiver first.

Open MPI asks from 64 KiB on.  Where two neighbours send to each other, which is what neighbours do,
the answer to one waits in the same stream behind the message of the other: the two directions of
the wire are used in turn rather than together.
"""
TCP = dict.fromkeys(
    (f"OMPI_MCA_btl_tcp_{name}" for name in ("eager_limit", "rndv_eager_limit", "max_send_size")),
    str(SENT_AT_ONCE),
)


def settings(
    environment: Mapping[str, str], vendor: str, version: tuple[int, ...]
) -> dict[str, str]:
    """Return the variables to set before MPI_Init, beside those of an environment.

    A variable that is set stays as it is.  Those of TCP belong together: one that is set leaves all
    of them to the user.  So does any that chooses how "btl" uses libfabric.

    Args:
        environment: Variables that are set.
        vendor: Of the MPI library, as mpi4py names it.
        version: Of the MPI library.  Up to Open MPI 4 "btl" is left alone: a site that excludes
            "openib" in a file would have it back.
    """
    if vendor != "Open MPI":
        return {}
    groups = [group for group in (WINDOWS, TCP) if not group.keys() & environment.keys()]
    chosen = any(name in LIBFABRIC or "_btl_ofi_" in name for name in environment)
    if version >= (5,) and not chosen:
        groups.append(LIBFABRIC)
    return {name: value for group in groups for name, value in group.items()}


def limits(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what must be equal on all ranks, by name; else long messages would not fit.

    A receiver makes room for as much as it would itself send at once.
    """
    return {name: environment.get(name, "not set") for name in TCP}

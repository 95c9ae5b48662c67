"""What Open MPI is told before it starts; other MPI libraries do not read these variables."""

from __future__ import annotations

from collections.abc import Mapping

WINDOWS = {"OMPI_MCA_osc": "^ucx"}
"""UCX's windows, which nothing here needs, complain wherever UCX finds no network."""
NETWORKS = {"OMPI_MCA_btl": "^ofi"}
"""What brings windows on other nodes, which nothing here needs either, to networks of libfabric.
Where there is none Open MPI gives it up, and sleeps for a second as it does so."""
SENT_AT_ONCE = 8 * 2**20
"""The longest message, in bytes, that goes over TCP without asking the receiver first.

Open MPI asks from 64 KiB on.  Where two neighbours send to each other, which is what neighbours do,
the answer to one waits in the same stream behind the message of the other: the two directions of
the wire are used in turn rather than together.
"""
TCP = dict.fromkeys(
    (f"OMPI_MCA_btl_tcp_{name}" for name in ("eager_limit", "rndv_eager_limit", "max_send_size")),
    str(SENT_AT_ONCE),
)


def settings(environment: Mapping[str, str], version: int) -> dict[str, str]:
    """Return the variables to set before MPI_Init, beside those of an environment.

    A variable that is set stays as it is; those of TCP belong together, so that one that is set
    leaves all of them to the user.

    Args:
        environment: Variables that are set.
        version: The first number of Open MPI's.  Up to 4, ``OMPI_MCA_btl`` is left alone: a site
            that excludes "openib" in a file would have it back.
    """
    groups = (WINDOWS, TCP, NETWORKS) if version > 4 else (WINDOWS, TCP)
    unset = [group for group in groups if not group.keys() & environment.keys()]
    return {name: value for group in unset for name, value in group.items()}

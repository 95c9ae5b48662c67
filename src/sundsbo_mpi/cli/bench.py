"""``sundsbo-mpi bench``: what exchanges cost here; start any number of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.bench.message_sizes import LARGEST, NUMBER
from sundsbo_mpi.bench.networks import refuse_reading
from sundsbo_mpi.cli.beginning import loading
from sundsbo_mpi.cli.flags import file_option, overwrite_option, topology_option
from sundsbo_mpi.cli.integers import PAYLOAD_TEXT, Integers, payload_option, with_commas
from sundsbo_mpi.cli.reading import reading_options
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.options import require_integer

if TYPE_CHECKING:
    from sundsbo_mpi.topology import Reading

SIZES = "4,1024,16384,262144,1048576,4194304"


@click.command()
@topology_option(help="Whose links are measured; else a ring.")
@reading_options
@click.option(
    "--sizes",
    type=Integers("4,1024"),
    default=SIZES,
    show_default=True,
    metavar="BYTES,...",
    help="Of the messages.",
)
@payload_option(
    default=PAYLOAD_TEXT,
    show_default=True,
    help="Lengths of x and y in the iterations that are checked.",
)
@click.option(
    "--repeats", type=int, default=20, show_default=True, metavar="R", help="Of every timing."
)
@click.option("--device", default="auto", show_default=True, metavar="auto|cpu|cuda")
@click.option("--gpu-direct", is_flag=True, help="Hand GPU buffers to MPI too; it may crash.")
@file_option(help="File for predict and compare; else none.")
@overwrite_option(help="Replace the file if it exists.")
def command(
    sizes: tuple[int, ...], payload: tuple[int, int], reading: Reading, **others: Any
) -> None:
    """Measure what exchanges between neighbours cost on these ranks.

    \b
    mpirun -n 10 sundsbo-mpi bench --topology ring.npz --output here.h5
    srun sundsbo-mpi bench --sizes 4,65536,1048576 --repeats 50

    Every transport is timed for every size of message, in averaging rounds as a run does them, and
    beside it bare MPI: neighbourhood collectives, allreduce, a copy, the weighted sum. All take
    turns within each repeat, after a warm-up and a barrier. Where links lead to the same and to
    other nodes, each class is timed by itself too. Every pair of neighbours is timed in any case:
    one between nodes while no other leads from or to these, one within a node beside pairs of other
    agents. To each class is fitted alpha + beta bytes per neighbour and round; the sum is
    checked against the rounds of an iteration of every method that sends anything, with its default
    options; methods that send the same are measured once; d-psgd and gnsd are taken to train y
    alone. Left out are methods that send more than 67 MB to a neighbour in an iteration, and those
    that cannot run with such an x and y.

    To put the OSU benchmarks beside it, start their 'osu_neighbor_alltoallv' on as many ranks,
    placed alike, with '-N graph:FILE' and the same links, a line 'sender,receiver' each, and
    compare its average latency with the exchange of mpi-blocking at the same size.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    require_integer("--repeats", others["repeats"], 1)
    if others["topology"] is None:
        refuse_reading(
            reading, "without --topology a ring is made", "name the file with --topology"
        )
    checked = {"sizes": _sizes(sizes), "reading": reading, **others}
    with loading():
        from sundsbo_mpi.algorithms.messages import Sizes
        from sundsbo_mpi.bench.session import Request, bench

    bench(Request(payload=Sizes(*payload), **checked))


def _sizes(given: tuple[int, ...]) -> tuple[int, ...]:
    for size in given:
        require_integer("a message of --sizes", size, NUMBER, LARGEST)
        if size % NUMBER:
            raise UsageError(
                f"--sizes has {size} bytes: expected multiples of {NUMBER}, as messages are of "
                "float32."
            )
    if len(set(given)) < 2:
        raise UsageError(
            f"--sizes {with_commas(given)}: expected two sizes or more, without which latency and "
            "bandwidth cannot be told apart."
        )
    return tuple(sorted(set(given)))

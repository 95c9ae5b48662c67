"""The program as a library: a task object and a communicator in, the solution out.

Importing this needs no MPI: ``solve`` loads it, once the caller has a communicator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.topology import builder_of

if TYPE_CHECKING:
    from mpi4py import MPI
    from torch import Tensor

    from sundsbo_mpi.tasks.base import Task
    from sundsbo_mpi.topology import Mixing


@dataclass(frozen=True)
class Solution:
    """What ``solve`` found; equal on all ranks but for ``own``."""

    x: Tensor
    """The average of the agents' x, (d_x,)."""
    y: Tensor
    """The average of the agents' y, (d_y,)."""
    own: dict[str, Tensor]
    """This agent's variables by name: x, y, and those of the method, such as theta."""
    history: tuple[dict[str, float], ...]
    """One row for every evaluation: ``iteration``, ``seconds`` of training, ``bytes`` that all
    agents have sent, the task's report (at the agents' own iterates as ``NAME_local``), and
    ``consensus_x`` and so on, the mean squared distance of the agents' variables to the average."""
    notes: tuple[str, ...]
    """What should be known about the run, and need not be acted on."""


def build_weights(name: str, agents: int, **options: Any) -> Mixing:
    """Return the weights that ``sundsbo-mpi topology NAME`` writes, such as a "ring".

    Args:
        name: One of the topologies that ``sundsbo-mpi list`` names.
        agents: Number n of agents.
        options: Those of the command, with underscores: ``self_weight=0.5``, ``lazy=True``.

    Raises:
        UsageError: there is none of that name, or it cannot be made with these options.
    """
    return builder_of(name)(agents, **options)


def solve(  # noqa: PLR0913  (the last three may be left out)
    task: Task,
    weights: Mixing,
    comm: MPI.Intracomm,
    *,
    method: str = "sun-dsbo-gt",
    iterations: int = 500,
    eval_every: int = 50,
    **options: Any,
) -> Solution:
    """Solve min_x F(x, y), y in argmin G(x, .), by agents on the ranks of a communicator.

    It does what ``sundsbo-mpi run`` does with the same settings, without a run file or checkpoints,
    on the device and in the dtype (float32 or float64) of ``task.start()``.  Torch gets the rank's
    share of the cores, unless ``OMP_NUM_THREADS`` is set, and the C library keeps from then on what
    it frees, and asks for huge pages (``heap.prepare_heap``).  Collective over ``comm``.

    Args:
        task: This agent's problem, with its own data; rank i of ``comm`` is agent i.
        weights: The same on all ranks; as many agents as ``comm`` has ranks.
        comm: Of ``start_mpi()``, or any other; it is duplicated, so that its messages meet no
            others.
        method: One of the algorithms that ``sundsbo-mpi list`` names.
        iterations: Number K of iterations.
        eval_every: Iterations between evaluations; one more precedes the first, one ends the run.
        options: Of the method, as ``--set algorithm.NAME`` takes them: ``step_x=0.1``,
            ``step_y={"scale": 0.1, "power": 0.5}``.  A task's ``defaults`` are for the command.

    Raises:
        UsageError: the request cannot be met, or the ranks disagree; on all ranks alike.
        DivergedError: the iterates of some agent ceased to be finite; on all ranks alike.

    Any other exception, such as one in the task's own code, is raised on its rank alone, for which
    the others wait: start the program by ``mpirun -n N python -m mpi4py PROGRAM``, which then ends
    the job.
    """
    from sundsbo_mpi.library.solving import Asked, solve_over

    return solve_over(comm, task, weights, Asked(method, iterations, eval_every, options))

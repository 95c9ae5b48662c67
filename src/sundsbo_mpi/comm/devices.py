"""Which GPU or how many threads each rank gets, decided from numbers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.wording import number_of

DEVICES = ("auto", "cpu", "cuda")


class Node(NamedTuple):
    """What the ranks of one node see: its name, and for each local rank the ids of its GPUs."""

    name: str
    gpus: Sequence[Sequence[str]]


def choose_gpus(requested: str, nodes: Sequence[Node]) -> tuple[list[list[int | None]], list[str]]:
    """Give every rank of every node a GPU, by its number on that rank, or None for the CPU.

    "auto" takes GPUs on the nodes that have one for each of their ranks; "cuda" takes them
    anyway, several ranks to a GPU.  Returns the choices and what must be said about them.

    Raises:
        UsageError: "cuda" was requested and some rank sees no GPU, or the request is unknown.
    """
    if requested not in DEVICES:
        raise unknown("device", requested, DEVICES)
    if requested == "cuda" and (blind := [n.name for n in nodes if not all(n.gpus)]):
        raise UsageError(
            f"--device cuda, but no usable GPU for some ranks on {_few(blind)}: ask the job "
            "scheduler for GPUs, check that this torch was built for them, or use --device cpu."
        )
    choices: list[list[int | None]] = []
    shared: list[Node] = []
    for node in nodes:
        chosen, users = _round_robin(node.gpus)
        if users > 1:
            shared.append(node)
        on_cpu = requested == "cpu" or (requested == "auto" and users != 1)
        choices.append([None] * len(node.gpus) if on_cpu else list(chosen))
    return choices, [] if requested == "cpu" else _notes(requested, shared)


def _round_robin(visible: Sequence[Sequence[str]]) -> tuple[list[int], int]:
    """Give each rank the least used of its GPUs; return the numbers and the most users of one.

    A rank may see all GPUs of its node or one of its own (always number 0): ids tell them apart.
    No user at all is returned where some rank sees no GPU.
    """
    if not all(visible):
        return [], 0
    users: Counter[str] = Counter()
    chosen = []
    for gpus in visible:
        number = min(range(len(gpus)), key=lambda g: users[gpus[g]])
        users[gpus[number]] += 1
        chosen.append(number)
    return chosen, max(users.values())


def _notes(requested: str, shared: Sequence[Node]) -> list[str]:
    if not shared:
        return []
    first = shared[0]
    count = len({gpu for gpus in first.gpus for gpu in gpus})
    where = _few([node.name for node in shared])
    facts = f"{len(first.gpus)} ranks but {number_of(count, 'GPU')} on {where}"
    if requested == "cuda":
        return [
            f"{facts}: they are shared round-robin, and their ranks wait for one another; ask for "
            "a GPU per rank, or leave such nodes to their CPUs by --device auto"
        ]
    return [f"{facts}: running on the CPU there; --device cuda shares the GPUs round-robin"]


def _few(names: Sequence[str]) -> str:
    others = len(names) - 1
    return f"{names[0]} and {number_of(others, 'more node')}" if others else names[0]


def fair_threads(mine: Collection[int], everyone: Sequence[Collection[int]]) -> int:
    """Divide the cores that a rank may use by the ranks of its node that may use the same ones."""
    return max(1, len(mine) // max(1, sum(set(cores) == set(mine) for cores in everyone)))

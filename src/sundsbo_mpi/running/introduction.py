"""What a run says of itself when it starts, to the user and in its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.comm.crowd import crowd_of
from sundsbo_mpi.runfile.schema import LABEL_COUNTS
from sundsbo_mpi.running.provenance import other_techniques
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.running.preparation import Prepared
    from sundsbo_mpi.running.progress import Reporter
    from sundsbo_mpi.running.startup import Site
    from sundsbo_mpi.tasks.base import Task

    Facts = dict[str, np.ndarray[Any, Any]]


def facts_of_agents(tally: Tally, site: Site, task: Task, *, shared: bool) -> Facts | None:
    """What the run file says about every agent, on rank 0, or all if ``shared``; collective."""
    crowd = crowd_of(site.local.cores)
    own = {
        "host": site.local.hosts[tally.agent],
        "device": str(site.device),
        "threads": site.threads,
        "train_samples": getattr(task, "train_samples", 0),
        "validation_samples": getattr(task, "validation_samples", 0),
        "oversubscribed": crowd.fact if crowd else "",
    }
    counts = {name: _counted(getattr(task, name, ())) for name in LABEL_COUNTS}
    everyone = tally.everyone((own, counts)) if shared else tally.gather((own, counts))
    if everyone is None:
        return None
    facts = {name: np.array([fact[name] for fact, _ in everyone]) for name in own}
    return facts | {
        name: table
        for name in counts
        if (table := _table([counted[name] for _, counted in everyone])).size
    }


def _counted(counts: Any) -> list[int]:
    """Return the samples of every class, none where a task of the user's means something else."""
    array = np.asarray(counts)
    return array.tolist() if array.ndim == 1 and array.dtype.kind in "iu" else []


def _table(counts: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
    """Return the agents' counts as (n, C): whoever names fewer classes has none of the others."""
    classes = max(map(len, counts))
    return np.array([[*own, *[0] * (classes - len(own))] for own in counts], dtype=np.int64)


def introduce(prepared: Prepared, facts: Facts, reporter: Reporter) -> None:
    """Say what starts, and what must be known about it."""
    reporter.say(_headline(prepared, facts))
    reporter.note(*prepared.notes)


def _headline(prepared: Prepared, facts: Facts) -> str:
    """Say in one line what starts and where."""
    config, weights = prepared.config, prepared.weights
    dataset = f" ({config.task['dataset']})" if config.task.get("dataset") else ""
    mixed = f" with {other}" if (other := other_techniques(config)) else ""
    kinds = Counter(
        (str(device).partition(":")[0], int(threads))
        for device, threads in zip(facts["device"], facts["threads"], strict=True)
    )
    places = [
        f"{f'{count} on ' if len(kinds) > 1 else ''}{device} with "
        f"{number_of(threads, 'thread')} each"
        for (device, threads), count in kinds.items()
    ]
    return (
        f"{config.algorithm['name']}{mixed} on {config.task['name']}{dataset}: "
        f"{number_of(weights.agents, 'agent')}, {', '.join(places)}; {weights.description}, "
        f"rho {weights.rho_text}"
    )


def were_lost(agents: Sequence[int]) -> str:
    """Say that agents were lost."""
    several = len(agents) > 1
    names = " and ".join(map(str, agents))
    return f"agents {names} were lost" if several else f"agent {names} was lost"

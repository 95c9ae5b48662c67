"""What remains of a run's file when the run goes on from a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.runfile.contents import Contents
    from sundsbo_mpi.runfile.events import Event
    from sundsbo_mpi.runfile.schema import Array

BEGINS = "begins"
"""The attribute of a file that was begun by a resumed run: the first iteration it can have."""
NEW = "begin a new file with --output NEW.h5"


@dataclass(frozen=True)
class Continuation:
    """A run that goes on, and how it must find its file.

    Args:
        iteration: Iterations done at the checkpoint.
        iterations: The number K to go on to.
        eval_every: Iterations between evaluations.
        event: What is noted.
        edges: The network's edges, (E, 2).
        identity: Attributes that the run's file has, ``agents`` among them, by which another run's
            file is recognised.
        attributes: Attributes that change.
        again: Whether the run itself begins again, which is counted, and has all evaluations up to
            the checkpoint; not so if only another process takes the file over.
    """

    iteration: int
    iterations: int
    eval_every: int
    event: Event
    edges: Array
    identity: Mapping[str, str | int] = field(default_factory=dict)
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    again: bool = True


def planned_after(k: int, iterations: int, eval_every: int) -> int:
    """Count the evaluations after iteration k: at multiples of ``eval_every``, and at K."""
    return max(math.ceil(iterations / eval_every) - k // eval_every, 0)


def resumed(path: Path, contents: Contents, how: Continuation) -> Contents:
    """Keep the planned evaluations up to the checkpoint, with room for those to come.

    Raises:
        UsageError: The file is another run's, or lacks evaluations from before the checkpoint.
    """
    _check_identity(path, contents, how.identity)
    iteration = contents.series["iteration"]
    regular = (iteration <= how.iteration) & (iteration % how.eval_every == 0)
    begins = int(contents.attributes.get(BEGINS, 0))
    if how.again:
        _check_complete(path, iteration[regular], begins, how)
    # A run that was stopped has one evaluation more; that at K is none of these.
    kept = regular | ((iteration == how.iteration) & (iteration == how.iterations))
    attributes = {
        **contents.attributes,
        **how.attributes,
        "iterations": how.iterations,
        "restarts": int(contents.attributes.get("restarts", 0)) + how.again,
        "status": "running",
        "ended": "",
    }
    if begins > how.iteration:
        attributes[BEGINS] = how.iteration + 1
    after = planned_after(how.iteration, how.iterations, how.eval_every)
    # Whoever was to write this evaluation is gone, or wrote another file: it is measured again.
    after += how.iteration % how.eval_every == 0 and how.iteration not in iteration
    return replace(
        contents,
        attributes=attributes,
        planned=int(max(regular.sum() + after, kept.sum())),
        series={name: column[kept] for name, column in contents.series.items()},
        events=(*contents.events, how.event),
    )


def _check_identity(path: Path, contents: Contents, identity: Mapping[str, str | int]) -> None:
    found = {**contents.attributes, "agents": contents.agents}
    for name, expected in identity.items():
        if found.get(name) != expected:
            raise UsageError(
                f"'{path}' is the file of another run, with {name} {found.get(name)} where the "
                f"checkpoint has {expected}: give the run's own file back its name, or {NEW}."
            )


def _check_complete(path: Path, found: Array, begins: int, how: Continuation) -> None:
    """See that no evaluation up to the checkpoint is missing, and none is there twice."""
    numbers = found // how.eval_every
    # A run that went back before ``begins`` has measured again where it did so.
    first = min([math.ceil(begins / how.eval_every), *numbers[:1].tolist()])
    expected = max(how.iteration // how.eval_every + 1 - first, 0)
    wrong = np.flatnonzero(numbers != first + np.arange(len(numbers)))
    if len(wrong) or len(numbers) < expected:
        missing = (first + (wrong[0] if len(wrong) else len(numbers))) * how.eval_every
        raise UsageError(
            f"'{path}' lacks the evaluation of iteration {missing}, which lies before the "
            f"checkpoint at {how.iteration}: resume from an older checkpoint, or {NEW}."
        )

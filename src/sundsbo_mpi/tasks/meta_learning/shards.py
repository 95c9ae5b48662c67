"""What each agent holds in meta-learning: its images of the training classes, and test tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.options import require_integer
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.on_demand import OnDemand

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

    from sundsbo_mpi.datasets import CharacterSet

    Classes = Sequence[npt.NDArray[np.uint8]]

Shard = dict[str, "npt.NDArray[Any]"]
"""Arrays by name, images as stored (uint8), channel by channel:

- ``images``: the agent's images of the training classes, one class after the other, (N, pixels),
  and ``counts``: how many there are of each class, (classes,);
- ``validation_images`` and ``test_images``: those of its tasks of held-out classes, (tasks, ways,
  shots + queries, pixels), support images first;
- ``shape``: channels, height and width of an image; ``mean`` and ``std`` of a stored training
  value, (channels,)."""


MOST_TASKS = 1_000
"""The paper: "The evaluation is capped at 1,000 tasks"."""

LARGEST_POOL = 100_000
"""Training tasks, each with a head of its own; the paper prints 20,000."""


def images_of(shard: Shard) -> dict[str, Tensor]:
    """Return a shard's images by name as tensors (..., channels, height, width)."""
    return {
        name: torch.from_numpy(array.reshape(*array.shape[:-1], *shard["shape"]))
        for name, array in shard.items()
        if name.endswith("images")
    }


class Tasks(NamedTuple):
    """How many tasks there are, and how large each is."""

    number: int
    ways: int
    """Classes of a task."""
    shots: int
    """Support images of each class."""
    queries: int
    """Query images of each class."""

    @property
    def images(self) -> int:
        """Images of each class, support and query."""
        return self.shots + self.queries


def check_sizes(training: Tasks, tested: Tasks) -> None:
    """Refuse numbers and sizes of tasks that no data set could have.

    Raises:
        UsageError: One is not in its range.
    """
    require_integer("task.ways", training.ways, 2)
    require_integer("task.evaluation_tasks", tested.number, 1, MOST_TASKS)
    require_integer("task.pool", training.number, 1, LARGEST_POOL)
    sizes = {"shots": training.shots, "queries": training.queries}
    sizes |= {"test_shots": tested.shots, "test_queries": tested.queries}
    for name, size in sizes.items():
        require_integer(f"task.{name}", size, 1)


def meta_learning_shards(
    data: CharacterSet, agents: int, seed: int, training: Tasks, tested: Tasks
) -> OnDemand[Shard]:
    """Divide the images of every training class, and the tasks drawn for evaluation.

    The images of a class are divided at random into n equal parts (up to n - 1 images are left
    over), so the agents have the same classes and different images.  Validation and test tasks
    are drawn from their own classes and dealt out one by one.

    Args:
        data: Images by class.
        agents: Number n of agents.
        seed: Decides who gets which images, and the tasks.
        training: The training tasks, of which an agent has a part.
        tested: The validation tasks, and as many test tasks.

    Raises:
        UsageError: There are not enough classes, images of a class, or tasks for all agents.
    """
    _check(data, agents, training, tested)
    mean, std = _moments(data.train, data.shape[0])
    divided = _divided(data.train, agents, seed)

    def shard(agent: int) -> Shard:
        return {
            **divided(agent),
            **_new_tasks(data, tested, seed, range(agent, tested.number, agents)),
            "shape": np.array(data.shape),
            "mean": mean,
            "std": std,
        }

    return OnDemand(agents, shard)


def _check(data: CharacterSet, agents: int, training: Tasks, tested: Tasks) -> None:
    if agents > tested.number:
        raise UsageError(
            f"{agents} agents cannot share {tested.number} tasks: set task.evaluation_tasks higher."
        )
    for name in ("train", "validation", "test"):
        classes = getattr(data, name)
        if training.ways > len(classes):
            raise UsageError(
                f"a task of {training.ways} classes cannot be drawn from the {len(classes)} "
                f"{name} classes: set task.ways lower, or take another data set."
            )
    smallest = min(map(len, data.train))
    if training.images > smallest // agents:
        raise UsageError(
            f"each of {agents} agents holds {smallest // agents} of the {smallest} images of a "
            f"class, and its part of a task takes {training.shots} support and {training.queries} "
            "query images: set task.shots and task.queries lower, or take fewer agents."
        )
    smallest = min(map(len, (*data.validation, *data.test)))
    if tested.images > smallest:
        raise UsageError(
            f"a held-out class has {smallest} images, and a task takes {tested.shots} support and "
            f"{tested.queries} query images: set task.test_shots and task.test_queries lower."
        )


def _divided(classes: Classes, agents: int, seed: int) -> Callable[[int], Shard]:
    """Return what gives an agent's images of the training classes, and their counts."""
    held = [len(images) // agents for images in classes]
    orders = [
        generator(seed, Stream.META_SHARDS, c).permutation(len(images))
        for c, images in enumerate(classes)
    ]

    def part(agent: int) -> Shard:
        own = [
            images[order[agent * each : (agent + 1) * each]]
            for images, order, each in zip(classes, orders, held, strict=True)
        ]
        return {"images": np.concatenate(own), "counts": np.array(held)}

    return part


def _new_tasks(data: CharacterSet, tested: Tasks, seed: int, mine: range) -> Shard:
    parts = {"validation": data.validation, "test": data.test}
    return {
        f"{part}_images": _draw(classes, tested, seed, [(key, task) for task in mine])
        for key, (part, classes) in enumerate(parts.items())
    }


def _draw(
    classes: Classes, tasks: Tasks, seed: int, keys: Sequence[tuple[int, int]]
) -> npt.NDArray[np.uint8]:
    """Draw a task for each key; shape (tasks, ways, shots + queries, pixels)."""
    shape = (len(keys), tasks.ways, tasks.images, classes[0].shape[1])
    found = np.empty(shape, dtype=np.uint8)
    for place, key in enumerate(keys):
        rng = generator(seed, Stream.META_EVALUATION, *key)
        for way, c in enumerate(rng.permutation(len(classes))[: tasks.ways]):
            found[place, way] = classes[c][rng.permutation(len(classes[c]))[: tasks.images]]
    return found


def _moments(
    classes: Classes, channels: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return mean and standard deviation of a stored value, by channel."""
    counts = np.zeros((channels, 256))
    for images in classes:
        for channel, values in enumerate(np.split(images, channels, axis=1)):
            counts[channel] += np.bincount(values.ravel(), minlength=256)
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean = shares @ np.arange(256)
    return mean, np.sqrt(shares @ np.arange(256) ** 2 - mean**2)

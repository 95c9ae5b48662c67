"""What each agent holds in data hyper-cleaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.tasks.datasets import CLASSES
from sundsbo_mpi.tasks.partition import dirichlet_shards
from sundsbo_mpi.tasks.sampling import Stream, generator

if TYPE_CHECKING:
    import numpy.typing as npt

    from sundsbo_mpi.tasks.datasets import Dataset

Shard = dict[str, "npt.NDArray[Any]"]
"""Arrays by name: images as stored (uint8) and labels (int64) of the three parts, ``corrupted``
(whether a training label is wrong), and mean and standard deviation of a stored pixel."""


def corrupt(
    labels: npt.NDArray[np.int64], rate: float, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the labels, each replaced with probability ``rate`` by one drawn from all classes.

    The new label may be the old one, so the expected share of wrong labels is
    rate (1 - 1/classes).

    Args:
        labels: True labels in 0..CLASSES - 1, shape (N,).
        rate: Probability in [0, 1] that a label is drawn anew.
        rng: Source of the draws.
    """
    chosen = rng.random(labels.shape) < rate
    drawn = rng.integers(CLASSES, size=labels.shape)
    return np.where(chosen, drawn, labels)


def cleaning_shards(
    data: Dataset, agents: int, seed: int, heterogeneity: float, corruption: float
) -> list[Shard]:
    """Corrupt the training labels and divide all samples among the agents.

    Training and validation samples are divided in Dirichlet proportions of their true labels,
    drawn independently of each other, into shards of equal size; the test samples evenly.

    Args:
        data: The samples, at least one per agent for training and for validation.
        agents: Number of agents.
        seed: Decides which labels are wrong and who gets what.
        heterogeneity: The Dirichlet parameter H > 0.
        corruption: Probability that a training label is drawn anew.
    """
    noisy = corrupt(data.train.labels, corruption, generator(seed, Stream.CORRUPTION))
    train, validation = (
        dirichlet_shards(samples.labels, agents, heterogeneity, generator(seed, stream))
        for samples, stream in (
            (data.train, Stream.TRAIN_SHARDS),
            (data.validation, Stream.VALIDATION_SHARDS),
        )
    )
    tested = [np.arange(agent, len(data.test.labels), agents) for agent in range(agents)]
    return [
        {
            "train_images": data.train.images[mine],
            "train_labels": noisy[mine],
            "corrupted": noisy[mine] != data.train.labels[mine],
            "validation_images": data.validation.images[own],
            "validation_labels": data.validation.labels[own],
            "test_images": data.test.images[ours],
            "test_labels": data.test.labels[ours],
            "mean": np.array(data.mean),
            "std": np.array(data.std),
        }
        for mine, own, ours in zip(train, validation, tested, strict=True)
    ]

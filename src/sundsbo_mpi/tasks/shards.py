"""What each agent holds of a labelled data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.options import require_number
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.on_demand import OnDemand
from sundsbo_mpi.tasks.partition import dirichlet_shards

if TYPE_CHECKING:
    import numpy.typing as npt

    from sundsbo_mpi.datasets import Dataset

    Integers = npt.NDArray[np.int64]

Shard = dict[str, "npt.NDArray[Any]"]
"""Arrays by name: inputs, one row each and unchanged (images: uint8), and labels (int64) of the
three parts; ``corrupted`` (whether a training label is wrong); ``shape`` of an input, number of
``classes``, and ``mean`` and ``std`` of each channel."""


def corrupt(labels: Integers, classes: int, rate: float, rng: np.random.Generator) -> Integers:
    """Return the labels, each replaced with probability ``rate`` by one drawn from all classes.

    The new label may be the old one, so the expected share of wrong labels is
    rate (1 - 1/classes).

    Args:
        labels: True labels in 0..classes - 1, shape (N,).
        classes: Number of classes.
        rate: Probability in [0, 1] that a label is drawn anew.
        rng: Source of the draws.
    """
    chosen = rng.random(labels.shape) < rate
    drawn = rng.integers(classes, size=labels.shape)
    return np.where(chosen, drawn, labels)


def labelled_shards(
    data: Dataset, agents: int, seed: int, *, heterogeneity: float, corruption: float = 0.0
) -> OnDemand[Shard]:
    """Corrupt the training labels and divide all samples among the agents.

    Training and validation samples are divided in Dirichlet proportions of their true labels,
    drawn independently of each other, into shards of equal size; the test samples evenly.

    Args:
        data: The samples.
        agents: Number of agents.
        seed: Decides which labels are wrong and who gets what.
        heterogeneity: The Dirichlet parameter H > 0.
        corruption: Probability that a training label is drawn anew.

    Raises:
        UsageError: An option is out of range, or there are more agents than samples.
    """
    _check(data, agents, heterogeneity, corruption)
    noisy = corrupt(data.train.labels, data.classes, corruption, generator(seed, Stream.CORRUPTION))
    train, validation = (
        dirichlet_shards(samples.labels, agents, heterogeneity, generator(seed, stream))
        for samples, stream in (
            (data.train, Stream.TRAIN_SHARDS),
            (data.validation, Stream.VALIDATION_SHARDS),
        )
    )

    def shard(agent: int) -> Shard:
        test = np.arange(agent, len(data.test.labels), agents)
        return _shard(data, noisy, train[agent], validation[agent], test)

    return OnDemand(agents, shard)


def _shard(
    data: Dataset, noisy: Integers, train: Integers, validation: Integers, test: Integers
) -> Shard:
    return {
        "train_inputs": data.train.at(train).images,
        "train_labels": noisy[train],
        "corrupted": noisy[train] != data.train.labels[train],
        "validation_inputs": data.validation.at(validation).images,
        "validation_labels": data.validation.labels[validation],
        "test_inputs": data.test.at(test).images,
        "test_labels": data.test.labels[test],
        "shape": np.array(data.shape),
        "classes": np.array(data.classes),
        "mean": np.array(data.mean),
        "std": np.array(data.std),
    }


def _check(data: Dataset, agents: int, heterogeneity: float, corruption: float) -> None:
    require_number("task.heterogeneity", heterogeneity, np.finfo(float).tiny)
    require_number("task.corruption", corruption, 0, 1)
    for part, samples in (("training", data.train), ("validation", data.validation)):
        if agents > len(samples.labels):
            raise UsageError(
                f"{agents} agents cannot share the {len(samples.labels)} {part} samples: take "
                "fewer agents or a larger data set."
            )

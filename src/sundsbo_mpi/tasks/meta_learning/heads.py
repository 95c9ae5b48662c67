"""The linear heads of few-shot tasks: their logits, and how a new task gets its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import cross_entropy, one_hot

from sundsbo_mpi.options import require_integer, require_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

EVALUATED_AT_ONCE = 16
"""New tasks whose features are held together, to bound the memory of an evaluation."""

MOST_STEPS = 10_000
"""By which a new head is fitted, in every evaluation."""


class Fit(NamedTuple):
    """How the head of a new task is fitted: S steps of size eta with momentum beta, and C_r."""

    steps: int
    step_size: float
    momentum: float
    regularisation: float


def checked_fit(steps: int, step_size: float, momentum: float, regularisation: float) -> Fit:
    """Return how new heads are fitted, if the task's options for it are in range.

    Raises:
        UsageError: One is not.
    """
    require_integer("task.test_steps", steps, 1, MOST_STEPS)
    require_number("task.test_step_size", step_size, 0)
    require_number("task.test_momentum", momentum, 0, 1)
    require_number("task.regularisation", regularisation, 0)
    return Fit(steps, step_size, momentum, regularisation)


class Scores(NamedTuple):
    """How well images were told apart: right answers, summed cross-entropies, and images."""

    right: int
    loss: float
    images: int


class NewTasks(NamedTuple):
    """Tasks of held-out classes, and how their heads are fitted."""

    ways: int
    """Classes of a task."""
    shots: int
    """Support images of each class; the others of a task are query images."""
    fit: Fit

    def scores(self, images: Tensor, features: Callable[[Tensor], Tensor]) -> Scores:
        """Fit a head to each task's support images and judge it on its query images.

        Args:
            images: Shape (tasks, ways, images of a class, ...), support images first.
            features: Takes images (images, tasks, ...), ordered by class, to their features
                (tasks, images, features).
        """
        found = []
        for some in torch.split(images, EVALUATED_AT_ONCE):
            support, query = (
                features(kind.flatten(1, 2).transpose(0, 1))
                for kind in (some[:, :, : self.shots], some[:, :, self.shots :])
            )
            found.append(few_shot(support, query, self.ways, self.fit))
        right, loss, count = (sum(part) for part in zip(*found, strict=True))
        return Scores(int(right), loss, int(count))


def few_shot(support: Tensor, query: Tensor, ways: int, fit: Fit) -> Scores:
    """Fit a head of its own to each task's support images and judge it on its query images.

    Args:
        support: Features of the support images, (tasks, images, features), ordered by class.
        query: Features of the query images, likewise.
        ways: Number of classes of a task.
        fit: How the heads are fitted.
    """
    heads = fitted_heads(support, ways, fit)
    guesses = logits(heads, query).argmax(dim=2)
    right = int((guesses == labels(query[0], ways)).sum())
    return Scores(right, float(head_loss(heads, query)) * guesses.numel(), guesses.numel())


def labels(images: Tensor, ways: int) -> Tensor:
    """Return the classes of a task's images or features, which are ordered by class.

    Args:
        images: The images of a task along its first dimension.
        ways: Number of classes, which have equally many images.
    """
    every = torch.arange(ways, device=images.device)
    return every.repeat_interleave(len(images) // ways)


def head_loss(heads: Tensor, features: Tensor) -> Tensor:
    """Return the mean cross-entropy of several tasks' images by their own heads.

    Args:
        heads: Shape (tasks, ways, features).
        features: Shape (tasks, images, features), the images of a task ordered by class.
    """
    truth = labels(features[0], heads.shape[1]).repeat(len(heads))
    return cross_entropy(logits(heads, features).flatten(0, 1), truth)


def logits(heads: Tensor, features: Tensor) -> Tensor:
    """Return the logits of every task's images by its own head.

    Args:
        heads: Shape (tasks, ways, features).
        features: Shape (tasks, images, features).

    Returns:
        Shape (tasks, images, ways).
    """
    return torch.bmm(features, heads.transpose(1, 2))


def fitted_heads(features: Tensor, ways: int, fit: Fit) -> Tensor:
    """Fit the heads of several tasks, each alone, on the features of their support images.

    From h = 0 and v = 0, fit.steps times:

        v <- beta v + grad of (mean cross-entropy on the support images + C_r |h|^2)
        h <- h - eta v

    Args:
        features: Those of the support images, shape (tasks, images, features), ordered by class.
        ways: Number of classes of a task.
        fit: S, eta, beta and C_r.

    Returns:
        Shape (tasks, ways, features).
    """
    truth = one_hot(labels(features[0], ways), ways).to(features.dtype)
    heads = features.new_zeros(len(features), ways, features.shape[2])
    velocity = torch.zeros_like(heads)
    for _ in range(fit.steps):
        excess = (logits(heads, features).softmax(dim=2) - truth) / len(truth)
        slope = torch.bmm(excess.transpose(1, 2), features) + 2 * fit.regularisation * heads
        velocity = fit.momentum * velocity + slope
        heads = heads - fit.step_size * velocity
    return heads

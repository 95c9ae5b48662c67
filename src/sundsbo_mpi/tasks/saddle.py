"""The parts of the saddle function's gradient that need no network, without autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.tasks.labelled import Batch


FAINT = 1e-20
"""Of 1 / gamma: with a smaller ridge r, 1 / (gamma r) could be too large for float32."""


class Scaled(NamedTuple):
    """The vector factor * vector; adding a product of matrices to it applies the factor as well."""

    vector: Tensor
    """New: who adds to it may overwrite it."""
    factor: float


def ridge_and_proximal(
    y: Tensor, theta: Tensor, ridge: float, gamma: float
) -> tuple[Scaled, Scaled]:
    """Return what D_y and D_theta have beside the gradients of a network.

    With r the ridge, where g has the regulariser r |y|^2 / 2, and a = 1 / gamma these are

        r y + a (theta - y)   and   r theta + a (theta - y).

    As lines through y and theta they take one pass each: r (y + t (theta - y)) with t = a / r, and
    the same from theta.  Where theta is close to y their difference is exact, however large t is.
    Where r is too small for that, or 0, they are a (theta - y + (r / a) y), and the same at theta.
    """
    a = 1 / gamma
    if ridge <= a * FAINT:
        share = ridge / a if ridge else 0.0  # both are 0 where gamma is infinite
        away = theta - y
        return Scaled(away.add(y, alpha=share), a), Scaled(away.add_(theta, alpha=share), a)
    t = a / ridge
    return Scaled(y.lerp(theta, t), ridge), Scaled(theta.lerp(y, -t), ridge)


class Slopes(NamedTuple):
    """Derivatives of S = mu f(x, y) + g(x, y) - g(x, theta), and of g(x, theta)."""

    at_y: Tensor
    """Of S, with respect to the logits of all samples at y, (b + c, classes)."""
    at_theta: Tensor
    """Of g(x, theta), with respect to the logits of the training samples, (b, classes)."""
    at_weights: Tensor
    """Of S, with respect to the weight of each training sample, (b,)."""


def saddle_slopes(
    logits: Tensor, logits_theta: Tensor, batch: Batch, mu: float, weights: Tensor
) -> Slopes:
    """Differentiate S where f and g, but for a regulariser, are means of cross-entropies L.

    With h the logits,
        f(x, y) = mean over the validation samples of L(h(input; x, y), label)
        g(x, y) = mean over the training samples j of weight_j L(h(input_j; x, y), label_j)

    Args:
        logits: At y, of the b training samples and then of the c validation samples.
        logits_theta: At theta, of the training samples.
        batch: The samples.
        mu: Weight of f.
        weights: Of the training samples, (b,).
    """
    b, c = len(weights), len(logits) - len(weights)
    losses, slopes = _cross_entropies(
        torch.cat([logits, logits_theta]), torch.cat([batch.labels, batch.train_labels])
    )
    share = weights / b
    slopes.mul_(torch.cat([share, share.new_full((c,), mu / c), share]).unsqueeze(1))
    return Slopes(slopes[: b + c], slopes[b + c :], (losses[:b] - losses[b + c :]) / b)


def _cross_entropies(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return L of each sample, (samples,), and its gradient softmax(h) - e_label."""
    log_p = logits.log_softmax(dim=1)
    column = labels.unsqueeze(1)
    losses = -log_p.gather(1, column).squeeze(1)
    return losses, log_p.exp_().scatter_add_(1, column, log_p.new_full(column.shape, -1.0))

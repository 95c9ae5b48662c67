"""Data hyper-cleaning: one weight per training sample, learnt so that wrong labels count less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from sundsbo_mpi.options import require_integer, require_number
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.labelled import Batch, LabelledTask
from sundsbo_mpi.tasks.networks import MLP, MOST_UNITS
from sundsbo_mpi.tasks.saddle import ridge_and_proximal, saddle_slopes
from sundsbo_mpi.tasks.shards import Shard

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

    from sundsbo_mpi.tasks.base import Penalty


class HyperCleaning(LabelledTask):
    """Learn which training samples to trust, with a two-layer network.

    With L the cross-entropy, h the network, s the sigmoid, x = psi and y the parameters of h:

        f_i(x, y) = mean over agent i's validation samples of L(h(image; y), label)
        g_i(x, y) = mean over its training samples j of s(psi_j) L(h(image_j; y), label_j)
                    + alpha |y|^2

    The means go over minibatches.  x has one entry for each training sample of all agents, since
    the agents must agree on x; agent i's own are a contiguous block.  It starts at zero, and y as
    ``torch.nn.Linear`` does, equal on all agents.

    Data, batches, f, the report and ``single_level`` (for y alone: x is in no ordinary training
    loss; wrong labels count in full, nothing is regularised) are those of ``LabelledTask``, but
    ``train_loss`` is the weighted cross-entropy without the regulariser.  The report adds
    ``weight_clean`` and ``weight_corrupted``, means of s(psi_j) over samples with a right and with
    a wrong label, ``weight_gap``, their difference, and ``weight_auc``, the area under the ROC
    curve of the weight as a sign of a right label (it judges the order alone, and may be high while
    all weights are nearly equal).

    Args:
        agent: The agent's rank i.
        agents: Number n of agents.
        seed: Seed of the start and of the batches.
        shard: What ``shards`` returned for this agent.
        dataset: Name of a data set of images.
        data_dir: Where the data set lies; digits need none.
        heterogeneity: The Dirichlet parameter H by which classes are divided.
        corruption: Probability that a training label is drawn anew.
        alpha: Weight of the regulariser.
        batch: Samples in a minibatch, of training and of validation samples each.
        hidden: Units in the hidden layer.

    Source: the paper's data hyper-cleaning experiment.
    """

    def __init__(  # noqa: PLR0913  (keyword parameters are a task's options)
        self,
        *,
        agent: int,
        agents: int,
        seed: int,
        shard: Shard,
        dataset: str = "digits",
        data_dir: str | None = None,
        heterogeneity: float = 0.1,
        corruption: float = 0.3,
        alpha: float = 0.001,
        batch: int = 50,
        hidden: int = 300,
    ) -> None:
        require_number("task.alpha", alpha, 0)
        require_integer("task.hidden", hidden, 1, MOST_UNITS)
        super().__init__(shard, batch, agent=agent, seed=seed)
        self.alpha = alpha
        own = agent * self.train_samples
        self.private = slice(own, own + self.train_samples)
        self._corrupted = shard["corrupted"]
        self._network = MLP(self.features, hidden, self.classes)
        self.begin_at(
            torch.zeros(agents * self.train_samples, dtype=torch.float64),
            self._network.initial(generator(seed, Stream.START)),
        )

    def outputs(self, x: Tensor, y: Tensor, inputs: Tensor) -> Tensor:
        """Return the network's outputs; x has no part in them."""
        return self._network(y, inputs)

    def lower(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the weighted mean cross-entropy on the training samples plus alpha |y|^2."""
        outputs = self.outputs(x, y, batch.train_inputs)
        losses = cross_entropy(outputs, batch.train_labels, reduction="none")
        weights = x.index_select(0, batch.train_places + self.private.start).sigmoid()
        return weights @ losses / len(losses) + self.alpha * (y @ y)

    def saddle(
        self, x: Tensor, y: Tensor, theta: Tensor, batch: Batch, penalty: Penalty
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what ``tasks.base`` says of ``saddle``, by hand."""
        mu, gamma = penalty
        places = batch.train_places + self.private.start
        weights = x.index_select(0, places).sigmoid_()
        logits, to_y = self._network.traced(y, batch.inputs)
        logits_theta, to_theta = self._network.traced(theta, batch.train_inputs)
        slopes = saddle_slopes(logits, logits_theta, batch, mu, weights)
        at_psi = slopes.at_weights * weights * (1 - weights)
        beside_y, beside_theta = ridge_and_proximal(y, theta, 2 * self.alpha, gamma)
        return (
            torch.zeros_like(x).index_add_(0, places, at_psi),
            to_y(slopes.at_y, beside_y),
            to_theta(slopes.at_theta, beside_theta),
        )

    def report(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        """Evaluate on the agent's share of the test data, all its samples, and its weights."""
        return super().report(x, y) | {
            "weight": self._weights(x).cpu().numpy(),
            "corrupted": self._corrupted,
        }

    def train_total(self, x: Tensor, y: Tensor) -> float:
        """Return the weighted sum of the cross-entropies of the training samples."""
        return float(self._weights(x) @ self.evaluate(x, y, "train")[0])

    @staticmethod
    def summarise(arrays: dict[str, list[npt.NDArray[Any]]]) -> dict[str, float]:
        """Say how well the weights of all agents tell right labels from wrong ones.

        Everything is NaN where no label is wrong, or none is right.
        """
        weight = np.concatenate(arrays["weight"]).astype(np.float64)
        corrupted = np.concatenate(arrays["corrupted"])
        if corrupted.all() or not corrupted.any() or not np.isfinite(weight).all():
            clean, wrong, auc = np.nan, np.nan, np.nan
        else:
            clean, wrong = float(weight[~corrupted].mean()), float(weight[corrupted].mean())
            auc = _area(weight, ~corrupted)
        return {
            "weight_clean": clean,
            "weight_corrupted": wrong,
            "weight_gap": clean - wrong,
            "weight_auc": auc,
        }

    def _weights(self, x: Tensor) -> Tensor:
        return x[self.private].detach().sigmoid()


def _area(weight: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> float:
    """Return the chance that a sample that is right outweighs one that is not; ties count half."""
    _, place, ties = np.unique(weight, return_inverse=True, return_counts=True)
    rank = np.cumsum(ties) - (ties - 1) / 2
    positives = int(right.sum())
    above = rank[place][right].sum() - positives * (positives + 1) / 2
    return float(above / (positives * (len(right) - positives)))

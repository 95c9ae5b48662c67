"""Hyperparameter optimisation: one ridge coefficient per feature of a logistic regression."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cross_entropy, linear, pad

from sundsbo_mpi.datasets import load_dataset
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.options import require_integer
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.labelled import Batch, LabelledTask
from sundsbo_mpi.tasks.saddle import saddle_slopes
from sundsbo_mpi.tasks.shards import Shard, labelled_shards
from sundsbo_mpi.tasks.synthetic import synthetic_shards

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.datasets import Dataset
    from sundsbo_mpi.tasks.base import Penalty
    from sundsbo_mpi.tasks.on_demand import OnDemand

SYNTHETIC = "synthetic"
"""Stands for samples that are drawn (``synthetic_shards``), not loaded."""

SYNTHETIC_SAMPLES = 1_000
"""Of each part, for each agent, unless asked otherwise."""

LARGEST_DRAW = 2**27
"""Numbers in all inputs together, 1 GiB, which are drawn in one place before they are dealt out."""


class Hyperparameter(LabelledTask):
    """Learn ridge coefficients x = pi on validation samples, a linear model y = tau on training.

    With L the cross-entropy of the logits h = tau u of an input u with s features and c classes,
    tau of shape (c, s) and without intercept:

        f_i(pi, tau) = mean over agent i's validation samples of L(tau u, label)
        g_i(pi, tau) = mean over its training samples of L(tau u, label)
                       + 1/(c s) sum_j e^(pi_j) sum_k tau_kj^2

    Synthetic samples have two classes and one row of tau: the logits are (0, tau u), so that L is
    log(1 + e^(-tau u)) for one class and log(1 + e^(tau u)) for the other, and the ridge is
    1/2 sum_j e^(pi_j) tau_j^2.  All variables start at zero.  Data, batches, f and the report are
    those of ``LabelledTask``; ``train_loss`` is without the ridge, and so is ``single_level``,
    which trains tau alone.

    Args:
        agent: The agent's rank i.
        agents: Number n of agents.
        seed: Seed of the batches.
        shard: What ``shards`` returned for this agent.
        dataset: "synthetic", or the name of a data set of images.
        data_dir: Where the data set lies; synthetic and digits need none.
        heterogeneity: The Dirichlet parameter H by which classes are divided; synthetic samples
            differ between agents by their scale instead.
        features: Length of a synthetic input.
        train: Number of training samples of all agents together; 0 stands for all of a data set,
            and for 1,000 synthetic samples per agent.
        validation: The same for validation samples.
        test: The same for test samples.
        batch: Samples in a minibatch, of training and of validation samples each.

    Source: the paper's hyperparameter optimisation for l2-regularised logistic regression, after
    Chen, Huang and Ma (2022, arXiv 2206.05670).  Differences from the source: (1) it prints sums
    over the synthetic samples where means are taken, with which its steps are stable: the same
    problem with each pi_j shifted by the logarithm of the number of samples, and f scaled; (2) it
    prints neither sizes of the synthetic data nor the batch nor the start; (3) of MNIST it takes
    "20,000 training and 5,000 test samples" and does not say which are for f: the validation
    samples of this program's split, 5,000 of them in the preset.
    """

    def __init__(  # noqa: PLR0913  (keyword parameters are a task's options)
        self,
        *,
        agent: int,
        agents: int,
        seed: int,
        shard: Shard,
        dataset: str = SYNTHETIC,
        data_dir: str | None = None,
        heterogeneity: float = 0.5,
        features: int = 50,
        train: int = 0,
        validation: int = 0,
        test: int = 0,
        batch: int = 50,
    ) -> None:
        super().__init__(shard, batch, agent=agent, seed=seed)
        self._binary = dataset == SYNTHETIC
        rows = 1 if self._binary else self.classes
        self._shape = (rows, self.features)
        self._scale = 1 / 2 if self._binary else 1 / (self.classes * self.features)
        self.begin_at(
            torch.zeros(self.features, dtype=torch.float64),
            torch.zeros(rows * self.features, dtype=torch.float64),
        )

    @staticmethod
    def shards(  # type: ignore[override]  # noqa: PLR0913  (keyword parameters are options)
        *,
        agents: int,
        seed: int,
        dataset: str,
        data_dir: str | None,
        heterogeneity: float,
        features: int,
        train: int,
        validation: int,
        test: int,
        **_others: object,
    ) -> OnDemand[Shard]:
        """Draw the synthetic samples, or load a data set, cut it to size and divide it.

        Raises:
            UsageError: An option is out of range, the data are missing, or there are too few.
        """
        sizes = {"train": train, "validation": validation, "test": test}
        for part, size in sizes.items():
            require_integer(f"task.{part}", size, 0)
        if dataset != SYNTHETIC:
            data = _subset(load_dataset(dataset, data_dir, seed), sizes, seed)
            return labelled_shards(data, agents, seed, heterogeneity=heterogeneity)
        require_integer("task.features", features, 1)
        for part, size in sizes.items():
            if 0 < size < agents:
                raise UsageError(
                    f"task.{part} is {size}, too few samples for {agents} agents: give a larger "
                    "number, or 0 for 1,000 per agent."
                )
        each = {part: size // agents or SYNTHETIC_SAMPLES for part, size in sizes.items()}
        if agents * features * sum(each.values()) > LARGEST_DRAW:
            raise UsageError(
                f"{agents * sum(each.values()):,} synthetic samples with {features:,} features are "
                f"more than {LARGEST_DRAW:,} numbers: lower task.features, task.train, "
                "task.validation or task.test."
            )
        return synthetic_shards(agents, seed, features=features, sizes=each)

    def outputs(self, x: Tensor, y: Tensor, inputs: Tensor) -> Tensor:
        """Return the logits; x has no part in them."""
        logits = linear(inputs, y.view(self._shape))
        return pad(logits, (1, 0)) if self._binary else logits

    def lower(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on the training samples plus the ridge."""
        outputs = self.outputs(x, y, batch.train_inputs)
        ridge = self._scale * (x.exp() @ y.view(self._shape).square().sum(dim=0))
        return cross_entropy(outputs, batch.train_labels) + ridge

    def saddle(
        self, x: Tensor, y: Tensor, theta: Tensor, batch: Batch, penalty: Penalty
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what ``tasks.base`` says of ``saddle``, by hand."""
        mu, gamma = penalty
        logits = self.outputs(x, y, batch.inputs)
        logits_theta = self.outputs(x, theta, batch.train_inputs)
        ones = x.new_ones(len(batch.train_places))
        slopes = saddle_slopes(logits, logits_theta, batch, mu, ones)
        tau, tau_theta = y.view(self._shape), theta.view(self._shape)
        rows, ridge = self._shape[0], self._scale * x.exp()
        away = (tau_theta - tau) / gamma
        D_y = torch.addmm(2 * ridge * tau + away, slopes.at_y[:, -rows:].t(), batch.inputs)
        at_theta = slopes.at_theta[:, -rows:].t()
        D_theta = torch.addmm(2 * ridge * tau_theta + away, at_theta, batch.train_inputs)
        D_x = ridge * (tau.square() - tau_theta.square()).sum(dim=0)
        return D_x, D_y.flatten(), D_theta.flatten()


def _subset(data: Dataset, sizes: dict[str, int], seed: int) -> Dataset:
    """Return as many samples of each part as asked for, drawn at random; 0 stands for all."""
    parts = {"train": data.train, "validation": data.validation, "test": data.test}
    for key, (part, samples) in enumerate(parts.items()):
        known, size = len(samples.labels), sizes[part]
        if size > known:
            raise UsageError(
                f"task.{part} is {size}, but there are {known} samples of that part: give a "
                "smaller number, or 0 for all."
            )
        if size:
            order = generator(seed, Stream.SUBSET, key).permutation(known)
            parts[part] = samples.at(order[:size])
    return replace(data, train=parts["train"], validation=parts["validation"], test=parts["test"])

"""Data hyper-cleaning: one weight per training sample, learnt so that wrong labels count less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.cleaning_shards import Shard, cleaning_shards
from sundsbo_mpi.tasks.datasets import CLASSES, load_dataset
from sundsbo_mpi.tasks.mlp import MLP
from sundsbo_mpi.tasks.options import require_count, require_number
from sundsbo_mpi.tasks.sampling import Epochs, Stream, generator

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor


class Batch(NamedTuple):
    """Training samples with labels that may be wrong, and clean validation samples."""

    train_images: Tensor
    """Standardised pixels, (b, pixels), of the run's dtype."""
    train_labels: Tensor
    psi: Tensor
    """Place in x of each training sample's weight, (b,)."""
    validation_images: Tensor
    validation_labels: Tensor


class HyperCleaning:
    """Learn which training samples to trust, with a two-layer network.

    With L the cross-entropy, h the network, s the sigmoid, x = psi and y the parameters of h:

        f_i(x, y) = mean over agent i's validation samples of L(h(image; y), label)
        g_i(x, y) = mean over its training samples j of s(psi_j) L(h(image_j; y), label_j)
                    + alpha |y|^2

    The means go over minibatches.  x has one entry for each training sample of all agents, since
    the agents must agree on x; agent i's own are a contiguous block.  It starts at zero, and y as
    ``torch.nn.Linear`` does, equal on all agents.  Pixels are standardised.

    ``test_accuracy`` is in percent; ``train_loss`` is the weighted cross-entropy without the
    regulariser.  ``weight_clean`` and ``weight_corrupted`` are means of s(psi_j) over samples with
    a right and with a wrong label, ``weight_gap`` is their difference, and ``weight_auc`` the area
    under the ROC curve of the weight as a sign of a right label (it judges the order alone, and
    may be high while all weights are nearly equal).

    Args:
        agent: The agent's rank i.
        agents: Number n of agents.
        seed: Seed of the start and of the batches.
        shard: What ``shards`` returned for this agent.
        dataset: Used by ``shards``: a key of ``DATASETS``.
        data_dir: Used by ``shards``: where Fashion-MNIST lies.
        heterogeneity: Used by ``shards``: the Dirichlet parameter H.
        corruption: Used by ``shards``: probability that a training label is drawn anew.
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
        require_number("alpha", alpha, 0)
        require_count("batch", batch)
        require_count("hidden", hidden)
        self.alpha = alpha
        self.train_samples, pixels = shard["train_images"].shape
        self.validation_samples = len(shard["validation_labels"])
        self._offset = agent * self.train_samples
        self._network = MLP(pixels, hidden, CLASSES)
        self.sizes = {"x": agents * self.train_samples, "y": self._network.size}
        self._start = self._network.initial(generator(seed, Stream.START))
        self._corrupted = shard["corrupted"]
        self._mean, self._std = float(shard["mean"]), float(shard["std"])
        self._data = {
            name: torch.from_numpy(array)
            for name, array in shard.items()
            if name.endswith(("_images", "_labels"))
        }
        self._train, self._validation = (
            Epochs(samples, batch, seed=seed, agent=agent, stream=stream)
            for samples, stream in (
                (self.train_samples, Stream.TRAIN_BATCHES),
                (self.validation_samples, Stream.VALIDATION_BATCHES),
            )
        )
        self.to(torch.device("cpu"), torch.get_default_dtype())

    @staticmethod
    def shards(  # noqa: PLR0913  (keyword parameters are a task's options)
        *,
        agents: int,
        seed: int,
        dataset: str = "digits",
        data_dir: str | None = None,
        heterogeneity: float = 0.1,
        corruption: float = 0.3,
        **_others: object,
    ) -> list[Shard]:
        """Load the data, draw wrong labels, and divide all samples (``cleaning_shards``).

        Raises:
            UsageError: An option is out of range, the data are missing, or there are more agents
                than validation samples.
        """
        require_number("heterogeneity", heterogeneity, np.finfo(float).tiny)
        require_number("corruption", corruption, 0, 1)
        data = load_dataset(dataset, data_dir, seed)
        if agents > len(data.validation.labels):
            raise UsageError(
                f"{agents} agents cannot share the {len(data.validation.labels)} validation "
                f"samples of {dataset}: take fewer agents or a larger data set."
            )
        return cleaning_shards(data, agents, seed, heterogeneity, corruption)

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move the agent's samples to the device and choose the dtype of pixels and variables."""
        self._device, self._dtype = device, dtype
        self._data = {name: tensor.to(device) for name, tensor in self._data.items()}

    def start(self) -> tuple[Tensor, Tensor]:
        """Return x^0 = 0, that is all weights 1/2, and the network's initial parameters."""
        x = torch.zeros(self.sizes["x"], device=self._device, dtype=self._dtype)
        return x, self._start.to(self._device, self._dtype)

    def sample(self, k: int, draw: int = 0) -> Batch:
        """Return the next training and validation samples of their shuffled epochs."""
        train = torch.from_numpy(self._train.indices(k, draw)).to(self._device)
        validation = torch.from_numpy(self._validation.indices(k, draw)).to(self._device)
        return self._batch(train, validation)

    def everything(self) -> Batch:
        """Return all training and validation samples of the agent."""
        return self._batch(
            torch.arange(self.train_samples, device=self._device),
            torch.arange(self.validation_samples, device=self._device),
        )

    def upper(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on the validation samples; x has no direct part in it."""
        return cross_entropy(self._network(y, batch.validation_images), batch.validation_labels)

    def lower(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the weighted mean cross-entropy on the training samples plus alpha |y|^2."""
        outputs = self._network(y, batch.train_images)
        losses = cross_entropy(outputs, batch.train_labels, reduction="none")
        weights = x.index_select(0, batch.psi).sigmoid()
        return weights @ losses / len(losses) + self.alpha * (y @ y)

    def report(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        """Evaluate on the agent's share of the test data, all its samples, and its weights."""
        with torch.no_grad():
            weights = x[self._offset : self._offset + self.train_samples].sigmoid()
            outputs = self._network(y, self._pixels("test_images"))
            labels = self._data["test_labels"]
            right = (outputs.argmax(dim=1) == labels).sum()
            return {
                "test_accuracy": (100.0 * float(right), len(labels)),
                "test_loss": (float(cross_entropy(outputs, labels, reduction="sum")), len(labels)),
                "validation_loss": self._loss(y, "validation"),
                "train_loss": self._loss(y, "train", weights),
                "weight": weights.cpu().numpy(),
                "corrupted": self._corrupted,
            }

    @staticmethod
    def summarise(arrays: dict[str, list[npt.NDArray[Any]]]) -> dict[str, float]:
        """Say how well the weights of all agents tell right labels from wrong ones.

        Everything is NaN where no label is wrong, or none is right.
        """
        from sklearn.metrics import roc_auc_score

        weight = np.concatenate(arrays["weight"]).astype(np.float64)
        corrupted = np.concatenate(arrays["corrupted"])
        if corrupted.all() or not corrupted.any() or not np.isfinite(weight).all():
            clean, wrong, auc = np.nan, np.nan, np.nan
        else:
            clean, wrong = float(weight[~corrupted].mean()), float(weight[corrupted].mean())
            auc = float(roc_auc_score(~corrupted, weight))
        return {
            "weight_clean": clean,
            "weight_corrupted": wrong,
            "weight_gap": clean - wrong,
            "weight_auc": auc,
        }

    def _pixels(self, name: str, places: Tensor | None = None) -> Tensor:
        stored = self._data[name] if places is None else self._data[name][places]
        return (stored.to(self._dtype) - self._mean) / self._std

    def _batch(self, train: Tensor, validation: Tensor) -> Batch:
        return Batch(
            self._pixels("train_images", train),
            self._data["train_labels"][train],
            train + self._offset,
            self._pixels("validation_images", validation),
            self._data["validation_labels"][validation],
        )

    def _loss(self, y: Tensor, part: str, weights: Tensor | None = None) -> tuple[float, int]:
        labels = self._data[f"{part}_labels"]
        outputs = self._network(y, self._pixels(f"{part}_images"))
        losses = cross_entropy(outputs, labels, reduction="none")
        total = losses.sum() if weights is None else weights @ losses
        return float(total), len(labels)

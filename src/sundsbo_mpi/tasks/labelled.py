"""What the tasks on labelled samples share: data, batches, upper level, evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from sundsbo_mpi.datasets import load_dataset
from sundsbo_mpi.options import require_integer
from sundsbo_mpi.randomness import Stream
from sundsbo_mpi.tasks.sampling import Epochs
from sundsbo_mpi.tasks.shards import Shard, labelled_shards

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.tasks.on_demand import OnDemand

LARGEST_BATCH = 100_000
"""More samples than an agent can have of any known data set."""


class Batch(NamedTuple):
    """Training samples, b of them, and then the validation samples, c of them."""

    inputs: Tensor
    """Standardised, (b + c, features), of the run's dtype."""
    labels: Tensor
    """Shape (b + c,)."""
    train_places: Tensor
    """Where each training sample stands in the agent's shard, (b,)."""

    @property
    def train_inputs(self) -> Tensor:
        """Shape (b, features)."""
        return self.inputs[: len(self.train_places)]

    @property
    def train_labels(self) -> Tensor:
        """Shape (b,)."""
        return self.labels[: len(self.train_places)]

    @property
    def validation_inputs(self) -> Tensor:
        """Shape (c, features)."""
        return self.inputs[len(self.train_places) :]

    @property
    def validation_labels(self) -> Tensor:
        """Shape (c,)."""
        return self.labels[len(self.train_places) :]


class LabelledTask(ABC):
    """A classifier with parameters in x and y, judged by the cross-entropy L of its outputs h.

        f_i(x, y) = mean over agent i's validation samples of L(h(input; x, y), label)

    ``single_level`` is the mean of L over all its training and validation samples together, with
    the training labels as they are.  Estimated from a batch it is

        N_t / (N_t + N_v) mean over training + N_v / (N_t + N_v) mean over validation samples,

    whose expectation it equals, with N_t training and N_v validation samples in the shard.

    Batches are cut from shuffled epochs (``sampling.Epochs``).  Each channel of the inputs is
    standardised with one mean and standard deviation.  A subclass sets ``sizes`` and the start by
    ``begin_at`` and adds ``outputs`` and ``lower``.

    ``report`` returns pairs (sum, count): test and validation accuracy in percent, and the mean L
    on each of the three parts.

    Args:
        shard: What the agent holds (``shards.Shard``).
        batch: Samples in a minibatch, of training and of validation samples each.
        agent: The agent's rank i.
        seed: Seed of the batches.
    """

    single_level_variables: ClassVar[tuple[str, ...]] = ("y",)
    EVALUATED_AT_ONCE = 5_000
    """Samples; bounds the memory of an evaluation."""

    def __init__(self, shard: Shard, batch: int, *, agent: int, seed: int) -> None:
        require_integer("task.batch", batch, 1, LARGEST_BATCH)
        self.train_samples, self.features = shard["train_inputs"].shape
        self.validation_samples = len(shard["validation_labels"])
        self.classes = int(shard["classes"])
        self.train_label_counts, self.validation_label_counts = (
            np.bincount(shard[f"{part}_labels"], minlength=self.classes)
            for part in ("train", "validation")
        )
        self._data = {
            name: torch.from_numpy(array)
            for name, array in shard.items()
            if name.endswith(("_inputs", "_labels"))
        }
        repeats = self.features // len(shard["mean"])  # inputs are channel-major
        self._scales = [
            torch.from_numpy(np.repeat(shard[name], repeats)) for name in ("mean", "std")
        ]
        self._train, self._validation = (
            Epochs(samples, batch, seed=seed, agent=agent, stream=stream)
            for samples, stream in (
                (self.train_samples, Stream.TRAIN_BATCHES),
                (self.validation_samples, Stream.VALIDATION_BATCHES),
            )
        )

    @staticmethod
    def shards(  # noqa: PLR0913  (keyword parameters are a task's options)
        *,
        agents: int,
        seed: int,
        dataset: str,
        data_dir: str | None = None,
        heterogeneity: float,
        corruption: float = 0.0,
        **_others: object,
    ) -> OnDemand[Shard]:
        """Load a data set, draw wrong labels, and divide all samples (``labelled_shards``).

        Raises:
            UsageError: An option is out of range, the data are missing, or there are more agents
                than samples.
        """
        data = load_dataset(dataset, data_dir, seed)
        return labelled_shards(
            data, agents, seed, heterogeneity=heterogeneity, corruption=corruption
        )

    def begin_at(self, x: Tensor, y: Tensor) -> None:
        """Set the start, float64 on the CPU, and with it the sizes."""
        self._start = (x, y)
        self.sizes = {"x": len(x), "y": len(y)}
        self.to(torch.device("cpu"), torch.get_default_dtype())

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move the agent's samples to the device and choose the dtype of inputs and variables."""
        self._device, self._dtype = device, dtype
        self._data = {name: tensor.to(device) for name, tensor in self._data.items()}
        self._mean, self._std = (scale.to(device, dtype) for scale in self._scales)

    def start(self) -> tuple[Tensor, Tensor]:
        """Return x^0 and y^0."""
        x, y = (variable.to(self._device, self._dtype) for variable in self._start)
        return x, y

    def sample(self, k: int, draw: int = 0) -> Batch:
        """Return the next training and validation samples of their shuffled epochs."""
        train, validation = (
            torch.from_numpy(epochs.indices(k, draw)).to(self._device)
            for epochs in (self._train, self._validation)
        )
        return self._batch(train, validation)

    def everything(self) -> Batch:
        """Return all training and validation samples of the agent."""
        train, validation = (
            torch.arange(samples, device=self._device)
            for samples in (self.train_samples, self.validation_samples)
        )
        return self._batch(train, validation)

    @abstractmethod
    def outputs(self, x: Tensor, y: Tensor, inputs: Tensor) -> Tensor:
        """Return h, one row of logits per input, shape (samples, classes)."""

    @abstractmethod
    def lower(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the scalar g_i(x, y; batch)."""

    def upper(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on the validation samples."""
        return cross_entropy(self.outputs(x, y, batch.validation_inputs), batch.validation_labels)

    def single_level(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on training and validation samples merged."""
        train = cross_entropy(self.outputs(x, y, batch.train_inputs), batch.train_labels)
        share = self.train_samples / (self.train_samples + self.validation_samples)
        merged: Tensor = share * train + (1 - share) * self.upper(x, y, batch)
        return merged

    def report(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        """Evaluate on the agent's share of the test data and on all its samples."""
        found: dict[str, Any] = {}
        for part in ("test", "validation"):
            losses, right = self.evaluate(x, y, part)
            found[f"{part}_accuracy"] = (100.0 * float(right.sum()), len(right))
            found[f"{part}_loss"] = (float(losses.sum()), len(losses))
        return found | {"train_loss": (self.train_total(x, y), self.train_samples)}

    def train_total(self, x: Tensor, y: Tensor) -> float:
        """Return the sum of the cross-entropies of the training samples."""
        return float(self.evaluate(x, y, "train")[0].sum())

    @torch.no_grad()
    def evaluate(self, x: Tensor, y: Tensor, part: str) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy of each sample of a part, and whether its class is found."""
        losses, right = [], []
        labels = self._data[f"{part}_labels"]
        everything = torch.arange(len(labels), device=self._device)
        for places in torch.split(everything, self.EVALUATED_AT_ONCE):
            outputs = self.outputs(x, y, self._standardised(self._rows(f"{part}_inputs", places)))
            losses.append(cross_entropy(outputs, labels[places], reduction="none"))
            right.append(outputs.argmax(dim=1) == labels[places])
        return torch.cat(losses), torch.cat(right)

    def _rows(self, name: str, places: Tensor) -> Tensor:
        return self._data[name].index_select(0, places)

    def _standardised(self, inputs: Tensor) -> Tensor:
        return (inputs.to(self._dtype) - self._mean).div_(self._std)

    def _batch(self, train: Tensor, validation: Tensor) -> Batch:
        parts = {"train": train, "validation": validation}
        inputs, labels = (
            torch.cat([self._rows(f"{part}_{of}", places) for part, places in parts.items()])
            for of in ("inputs", "labels")
        )
        return Batch(self._standardised(inputs), labels, train)

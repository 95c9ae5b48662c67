"""Meta-learning: features with which a linear head for new classes is learnt from few images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sundsbo_mpi.datasets import load_characters
from sundsbo_mpi.options import require_integer
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.meta_learning.backbone import MOST_CHANNELS, Backbone
from sundsbo_mpi.tasks.meta_learning.batches import Batch, MetaBatches
from sundsbo_mpi.tasks.meta_learning.heads import NewTasks, checked_fit, head_loss
from sundsbo_mpi.tasks.meta_learning.shards import (
    Shard,
    Tasks,
    check_sizes,
    images_of,
    meta_learning_shards,
)

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.tasks.base import Penalty
    from sundsbo_mpi.tasks.on_demand import OnDemand


class MetaLearning:
    """Learn features from a pool of R few-shot tasks, with a linear head for each.

    With L_s(x, y_s; images) the mean cross-entropy of task s, x the backbone and y_s its head:

        f_i(x, y) = mean over the tasks s of  L_s(x, y_s; agent i's query images)
        g_i(x, y) = mean over the tasks s of  L_s(x, y_s; agent i's support images) + C_r |y_s|^2

    The means go over a meta-batch, the same tasks on all agents.  A task tells ``ways`` classes
    apart.  x are the parameters of four convolutional layers (``Backbone``), drawn as
    ``torch.nn.Conv2d`` does and equal on all agents; y = (y_1, ..., y_R) starts at zero, and a head
    is a matrix (ways, features) with the bias in its last column.  A task outside of the
    meta-batch has no part in a loss, so its head has the gradient zero.

    ``test_accuracy`` and ``validation_accuracy`` (percent), ``test_loss`` and ``validation_loss``
    are those of the query images of new tasks, whose classes are not among the training classes
    and whose heads are fitted from zero to ``test_shots`` support images of each class
    (``fitted_heads``); each agent evaluates its share of these tasks.  ``support_loss`` and
    ``query_loss`` are the mean cross-entropies of the pool's own heads on the first meta-batch.

    Args:
        agent: The agent's rank i.
        agents: Number n of agents.
        seed: Seed of the start and of all draws.
        shard: What ``shards`` returned for this agent.
        dataset: Name of a data set of characters.
        data_dir: Where Omniglot, or the folder of class folders, lies.
        image_size: Height and width to which images are scaled; 0 stands for the customary ones of
            the data set.
        ways: Classes of a task.
        shots: Support images of each class that an agent contributes to a training task.
        queries: Query images of each class that an agent contributes to a training task.
        meta_batch: Tasks of an iteration.
        pool: Number R of training tasks.
        channels: Channels of each layer of the backbone.
        regularisation: Weight C_r of the regulariser.
        evaluation_tasks: Number of validation tasks, and of test tasks.
        test_shots: Support images of each class of a validation or test task.
        test_queries: Query images of each class of a validation or test task.
        test_steps: Number S of steps by which the head of a new task is fitted.
        test_step_size: Size of these steps.
        test_momentum: Momentum of these steps.

    Source: the paper's meta-learning experiment.  Differences from the source, where it
    contradicts itself or leaves the choice open:

    1. f_i is printed with the training images and a regulariser, as g_i is; here it has the query
       (validation) images and none.  The regulariser is taken inside the mean over the tasks.
    2. One head for each of 20,000 tasks is printed.  A head is trained only while its task is in
       the meta-batch, so with 16 of 20,000 tasks in each of 4,000 iterations it would move three
       times, and x not at all in the first 1,250, since a head of zero passes no gradient on.
       The pool is smaller here, and its size an option.  Heads persist: nothing is fitted inside
       an iteration.
    3. "5-way 5-shot, with support and query sets containing 5x2 images each": ``shots`` and
       ``queries`` are numbers per class and agent, 2 each in the literal reading, and the five
       shots are those of the new tasks.  Agents share no image, and every image serves either as
       support or as query image for the whole run, so that f_i measures what y was not trained
       on: of Omniglot's 20 images of a class 10 agents have 2 each, one of either kind.  A third
       reading, five support and five query images, is ``shots=5`` and ``queries=5``.
    4. The normalisation takes mean and variance from the images at hand, of one task, support and
       query apart, in training as in evaluation: running statistics would be a state outside of x
       and y, which no agent averages and no gradient sees.
    5. How many steps fit a new head, and how long, is not printed; their momentum, 0.85, is.
    6. There is no parameter H: the source has "H = 1" in one place and "the data is uniformly
       split" in another, and here every agent has equally many images of every class.
    """

    single_level_variables = ("x", "y")

    def __init__(  # noqa: PLR0913  (keyword parameters are a task's options)
        self,
        *,
        agent: int,
        agents: int,
        seed: int,
        shard: Shard,
        dataset: str = "digits",
        data_dir: str | None = None,
        image_size: int = 0,
        ways: int = 5,
        shots: int = 2,
        queries: int = 2,
        meta_batch: int = 16,
        pool: int = 64,
        channels: int = 16,
        regularisation: float = 0.001,
        evaluation_tasks: int = 200,
        test_shots: int = 5,
        test_queries: int = 5,
        test_steps: int = 50,
        test_step_size: float = 0.1,
        test_momentum: float = 0.85,
    ) -> None:
        require_integer("task.channels", channels, 1, MOST_CHANNELS)
        fit = checked_fit(test_steps, test_step_size, test_momentum, regularisation)
        self._new_tasks = NewTasks(ways, test_shots, fit)
        self._regularisation = regularisation
        tasks = Tasks(pool, ways, shots, queries)
        self._batches = MetaBatches(shard["counts"], tasks, meta_batch, seed=seed, agent=agent)
        self.train_samples = int(self._batches.support_counts.sum())
        self.validation_samples = int(self._batches.query_counts.sum())
        self._backbone = Backbone(tuple(shard["shape"].tolist()), channels)
        self._heads_shape = (pool, ways, self._backbone.features)
        self.sizes = {"x": self._backbone.size, "y": math.prod(self._heads_shape)}
        self._start = self._backbone.initial(generator(seed, Stream.START))
        self._images = images_of(shard)
        self._moments = [torch.from_numpy(shard[n]).view(-1, 1, 1) for n in ("mean", "std")]
        self.to(torch.device("cpu"), torch.get_default_dtype())

    @staticmethod
    def shards(  # noqa: PLR0913  (keyword parameters are a task's options)
        *,
        agents: int,
        seed: int,
        dataset: str,
        data_dir: str | None,
        image_size: int,
        ways: int,
        shots: int,
        queries: int,
        pool: int,
        evaluation_tasks: int,
        test_shots: int,
        test_queries: int,
        **_others: object,
    ) -> OnDemand[Shard]:
        """Load the data, and divide images and evaluation tasks (``meta_learning_shards``).

        Raises:
            UsageError: An option is out of range, the data are missing, or there are too few
                classes, or too few images for so many agents.
        """
        training = Tasks(pool, ways, shots, queries)
        tested = Tasks(evaluation_tasks, ways, test_shots, test_queries)
        check_sizes(training, tested)
        data = load_characters(dataset, data_dir, seed, image_size or None)
        return meta_learning_shards(data, agents, seed, training, tested)

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move the agent's images to the device and choose the dtype of pixels and variables."""
        self._device, self._dtype = device, dtype
        self._images = {name: images.to(device) for name, images in self._images.items()}
        self._mean, self._std = (moment.to(device, dtype) for moment in self._moments)

    def start(self) -> tuple[Tensor, Tensor]:
        """Return the backbone's initial parameters, and heads that are zero."""
        y = torch.zeros(self.sizes["y"], device=self._device, dtype=self._dtype)
        return self._start.to(self._device, self._dtype), y

    def sample(self, k: int, draw: int = 0) -> Batch:
        """Return the next tasks of the pool's shuffled epochs and the agent's images for them."""
        tasks, support, query = (
            torch.from_numpy(np.ascontiguousarray(places)).to(self._device)
            for places in self._batches.places(k, draw)
        )
        images = self._images["images"]
        return Batch(tasks, self._pixels(images[support]), self._pixels(images[query]))

    def upper(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on the query images."""
        return self._loss(x, self._heads(y, batch), batch.query)

    def lower(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on the support images plus the mean of C_r |y_s|^2."""
        return self._lower(self._heads(y, batch), self._backbone(x, batch.support))

    def saddle(
        self, x: Tensor, y: Tensor, theta: Tensor, batch: Batch, penalty: Penalty
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what ``tasks.base`` says of ``saddle``; the support features are made once."""
        away = (theta - y) / penalty.gamma
        at = x, y, theta = tuple(v.detach().requires_grad_() for v in (x, y, theta))
        features = self._backbone(x, batch.support)
        g, g_at_theta = (self._lower(self._heads(v, batch), features) for v in (y, theta))
        S = penalty.mu * self.upper(x, y, batch) + g - g_at_theta
        S_x, S_y, S_theta = torch.autograd.grad(S, at)
        return S_x, S_y + away, away - S_theta

    def single_level(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the ordinary training loss of both kinds of images, with g's regulariser.

        It goes over all of a task's images; as in f and g, the two kinds are normalised apart.
        """
        heads, kinds = self._heads(y, batch), (batch.support, batch.query)
        total = sum(len(images) * self._loss(x, heads, images) for images in kinds)
        return total / sum(map(len, kinds)) + self._penalty(heads)

    def report(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        """Evaluate on the agent's share of the new tasks, and on the first meta-batch."""
        with torch.no_grad():
            batch = self.sample(0)
            heads = self._heads(y, batch)
            return {
                **self._judged(x, "test"),
                **self._judged(x, "validation"),
                "support_loss": float(self._loss(x, heads, batch.support)),
                "query_loss": float(self._loss(x, heads, batch.query)),
            }

    def _pixels(self, stored: Tensor) -> Tensor:
        return (stored.to(self._dtype) - self._mean) / self._std

    def _heads(self, y: Tensor, batch: Batch) -> Tensor:
        return y.view(self._heads_shape).index_select(0, batch.tasks)

    def _loss(self, x: Tensor, heads: Tensor, images: Tensor) -> Tensor:
        return head_loss(heads, self._backbone(x, images))

    def _lower(self, heads: Tensor, features: Tensor) -> Tensor:
        return head_loss(heads, features) + self._penalty(heads)

    def _penalty(self, heads: Tensor) -> Tensor:
        return self._regularisation * heads.square().sum() / len(heads)

    def _judged(self, x: Tensor, part: str) -> dict[str, tuple[float, int]]:
        stored = self._images[f"{part}_images"]
        found = self._new_tasks.scores(stored, lambda of: self._backbone(x, self._pixels(of)))
        totals = {"accuracy": 100.0 * found.right, "loss": found.loss}
        return {f"{part}_{name}": (total, found.images) for name, total in totals.items()}

"""Hyper-representation: features that serve linear classifiers, learnt above the classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from torch.nn.functional import cross_entropy

from sundsbo_mpi.options import require_integer, require_number
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.labelled import Batch, LabelledTask
from sundsbo_mpi.tasks.networks import CNN, MLP, MOST_UNITS
from sundsbo_mpi.tasks.saddle import ridge_and_proximal, saddle_slopes
from sundsbo_mpi.tasks.shards import Shard

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.tasks.base import Penalty


class HyperRepresentation(LabelledTask):
    """Learn a representation x on validation samples, a linear classifier y on training samples.

    With L the cross-entropy, r the backbone with parameters x, and A and b the weights and biases
    in y:

        h(image; x, y) = A relu(r(image; x)) + b
        f_i(x, y) = mean over agent i's validation samples of L(h(image; x, y), label)
        g_i(x, y) = mean over its training samples of L(h(image; x, y), label) + alpha |y|^2

    The backbone of grey images is one layer of ``hidden`` units, so that h is a two-layer MLP; that
    of colour images is LeNet-5 without its last layer (``networks.CNN``).  x and y start as
    torch.nn's layers do, equal on all agents.  Data, batches, f and the report are those of
    ``LabelledTask``; ``train_loss`` is without the regulariser, and so is ``single_level``, which
    trains x and y.

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
        hidden: Units of the backbone of grey images.

    Source: the paper's hyper-representation experiment.  Differences from the source: (1) it calls
    its network for CIFAR-10 a "7-layer CNN (LeCun et al., 1998)", read here as LeNet-5; (2) it
    mentions a rate of wrong labels, which its formulation has no use for: 0 unless asked for;
    (3) it splits CIFAR-10 into 50,000 and 10,000 images of 60,000; of the 50,000 that are not test
    images 40,000 and 10,000 are taken.
    """

    single_level_variables: ClassVar[tuple[str, ...]] = ("x", "y")

    def __init__(  # noqa: PLR0913  (keyword parameters are a task's options)
        self,
        *,
        agent: int,
        agents: int,
        seed: int,
        shard: Shard,
        dataset: str = "digits",
        data_dir: str | None = None,
        heterogeneity: float = 0.5,
        corruption: float = 0.0,
        alpha: float = 0.001,
        batch: int = 30,
        hidden: int = 200,
    ) -> None:
        require_number("task.alpha", alpha, 0)
        require_integer("task.hidden", hidden, 1, MOST_UNITS)
        super().__init__(shard, batch, agent=agent, seed=seed)
        self.alpha = alpha
        channels, height, width = (int(length) for length in shard["shape"])
        self._backbone: MLP | CNN
        if channels == 1:
            self._backbone, units = MLP(self.features, hidden), hidden
        else:
            self._backbone, units = CNN((channels, height, width)), CNN.WIDTHS[-1]
        self._head = MLP(units, self.classes)
        rng = generator(seed, Stream.START)
        self.begin_at(self._backbone.initial(rng), self._head.initial(rng))

    def outputs(self, x: Tensor, y: Tensor, inputs: Tensor) -> Tensor:
        """Return what the classifier makes of the representation."""
        return self._head(y, self._backbone(x, inputs).relu())

    def lower(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on the training samples plus alpha |y|^2."""
        outputs = self.outputs(x, y, batch.train_inputs)
        return cross_entropy(outputs, batch.train_labels) + self.alpha * (y @ y)

    def saddle(
        self, x: Tensor, y: Tensor, theta: Tensor, batch: Batch, penalty: Penalty
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what ``tasks.base`` says of ``saddle``, by hand but for a convolutional network.

        The representation of the training samples, the same for y and theta, is made once.
        """
        (mu, gamma), b = penalty, len(batch.train_places)
        made, to_x = self._backbone.traced(x, batch.inputs)
        representation = made.relu_()
        logits, to_y = self._head.traced(y, representation)
        logits_theta, to_theta = self._head.traced(theta, representation[:b])
        slopes = saddle_slopes(logits, logits_theta, batch, mu, x.new_ones(b))
        ((A, _),), ((A_theta, _),) = self._head.cut(y), self._head.cut(theta)
        back = slopes.at_y @ A
        back[:b].addmm_(slopes.at_theta, A_theta, alpha=-1)
        beside_y, beside_theta = ridge_and_proximal(y, theta, 2 * self.alpha, gamma)
        return (
            to_x(back.mul_(representation.sign())),
            to_y(slopes.at_y, beside_y),
            to_theta(slopes.at_theta, beside_theta),
        )

"""What a bilevel problem must offer: two losses, a start, batches, and a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor


class Penalty(NamedTuple):
    """μ_k and γ of the saddle function that an iteration descends on; γ may be infinite."""

    mu: float
    gamma: float


@runtime_checkable
class Task(Protocol):
    """One agent's share of the problem min_x F(x, y), y in argmin G(x, .).

    F and G are the averages over the agents of ``upper`` and ``lower``.  A task is built on every
    rank as ``Class(agent=i, agents=n, seed=s, **options)``; its keyword parameters are the options
    that ``--set task.name=value`` may set.  x and y are flat tensors of the run's dtype and device.

    Optional members, looked up by name:

    - ``everything() -> batch``: all of the agent's data as one batch (for ``--stationarity``);
    - ``reference(mu, gamma) -> {name: {"x": tensor, "y": tensor}}``: known solutions, to which the
      relative distance of the averaged iterate is recorded as ``error_<name>_<variable>``; both
      arguments are None for a method without a penalty;
    - ``single_level(x, y, batch) -> scalar`` and ``single_level_variables``, which of "x" and "y"
      it trains: ordinary training, for the single-level methods;
    - ``summarise(arrays) -> {name: float}``: called on rank 0 with the arrays that ``report``
      returned, one list entry per agent; required if ``report`` returns arrays;
    - ``shards(*, agents, seed, **options) -> [shard, ...]`` (static): loads and divides the data on
      rank 0 alone; agent i is then built with the i-th shard, a dict of numpy arrays.  Shards that
      are yielded are sent one by one, and rank 0 holds one at a time: ``yield {...}`` as it is
      made, since a variable would keep it while the next one is made;
    - ``to(device, dtype)``: called once after construction, to move the agent's data;
    - ``saddle(x, y, theta, batch, penalty) -> (D_x, D_y, D_theta)`` with mu and gamma in
      ``penalty``: the gradients in x and y, and minus that in theta, of the saddle function
      ``mu f_i(x, y) + g_i(x, y) - g_i(x, theta) - |theta - y|^2 / (2 gamma)`` on ``batch``, as new
      flat tensors without a graph, which the caller keeps.  They must be those of ``upper`` and
      ``lower`` but for rounding.  Methods that descend on it ask for them in place of the losses,
      for speed: both losses may be evaluated together (unless a normalisation sees its batch),
      shared parts once, and differentiated by hand;
    - ``private``: the slice of x that the agent's data alone touch, where the agents' slices make
      up x: f_j and g_j do not depend on it for j != i (for ``algorithm.private``);
    - ``lipschitz``: the smoothness L2 of G(x, .) where it is known, to judge ``gamma``;
    - ``train_samples`` and ``validation_samples``: shard sizes for the run file;
    - ``train_label_counts`` and ``validation_label_counts``: how many of them are of each class, as
      the agent holds them, for the run file.
    """

    sizes: Mapping[str, int]
    """``{"x": d_x, "y": d_y}``."""

    def start(self) -> tuple[Tensor, Tensor]:
        """Return x^0 of shape (d_x,) and y^0 of shape (d_y,), equal on all agents."""
        ...

    def sample(self, k: int, draw: int = 0) -> Any:
        """Return the batch of iteration k; a pure function, ``draw`` counts draws within k."""
        ...

    def upper(self, x: Tensor, y: Tensor, batch: Any) -> Tensor:
        """Return the scalar f_i(x, y; batch)."""
        ...

    def lower(self, x: Tensor, y: Tensor, batch: Any) -> Tensor:
        """Return the scalar g_i(x, y; batch)."""
        ...

    def report(self, x: Tensor, y: Tensor) -> Mapping[str, Any]:
        """Evaluate the agent's share of the test data at (x, y).

        A float is averaged over the agents, a pair (sum, count) is merged as sum / sum, an array
        is gathered to rank 0 and handed to ``summarise``.
        """
        ...

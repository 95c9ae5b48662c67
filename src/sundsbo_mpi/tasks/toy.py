"""The paper's example with a merely convex lower level."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from sundsbo_mpi.tasks.closed_form import Form, mean, smoothness, solutions

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor


class Toy:
    """Two upper terms and a lower level that says nothing about half of y.

    With y = (y1, y2), a_i = 1 + 0.1 i, b_i = 1 + 0.05 i and e the vector of ones,

        f_i(x, y) = |a_i x - y2|^2 / 2 + |b_i y1 - e|^2 / 2
        g_i(x, y) = |b_i y1|^2 / 2 - a_i x' y1

    where x, y1 and y2 have N = 10 entries.  F and G are means over the agents; the paper prints
    sums, which have the same bilevel solution.  All entries of a vector are equal, so one entry of
    each decides the solutions.  All variables start at zero.

    Args:
        agent: The agent's rank i.
        agents: Number of agents; the paper has 5.
        seed: Without effect, nothing is random.

    Source: the paper's synthetic verification of the merely convex case.
    """

    N = 10
    sizes: ClassVar = {"x": N, "y": 2 * N}

    def __init__(self, *, agent: int, agents: int, seed: int) -> None:
        self._a, self._b = _scales(agent)
        forms = [_one_entry(*_scales(other)) for other in range(agents)]
        self._mean_upper = mean([upper for upper, _ in forms])
        self._mean_lower = mean([lower for _, lower in forms])
        self.lipschitz = smoothness(self._mean_lower, 1)
        self.to(torch.device("cpu"), torch.get_default_dtype())

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Choose where the variables live and their dtype."""
        self._device, self._dtype = device, dtype

    def start(self) -> tuple[Tensor, Tensor]:
        """Return zeros."""
        return self._tensor(np.zeros(self.N)), self._tensor(np.zeros(2 * self.N))

    def sample(self, k: int, draw: int = 0) -> None:
        """Return nothing: the gradients are exact."""

    def everything(self) -> None:
        """Return nothing, as ``sample`` does."""

    def upper(self, x: Tensor, y: Tensor, batch: None) -> Tensor:
        """Return f_i(x, y)."""
        y1, y2 = torch.split(y, self.N)
        return ((self._a * x - y2).square().sum() + (self._b * y1 - 1).square().sum()) / 2

    def lower(self, x: Tensor, y: Tensor, batch: None) -> Tensor:
        """Return g_i(x, y)."""
        y1, _ = torch.split(y, self.N)
        return (self._b * y1).square().sum() / 2 - self._a * (x @ y1)

    def report(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Return the agent's two losses."""
        with torch.no_grad():
            return {
                "upper_loss": float(self.upper(x, y, None)),
                "lower_loss": float(self.lower(x, y, None)),
            }

    def reference(self, mu: float | None, gamma: float | None) -> dict[str, dict[str, Tensor]]:
        """Return the bilevel solution, and the penalised one where mu and gamma are given."""
        found = solutions(self._mean_upper, self._mean_lower, 1, mu=mu, gamma=gamma)
        return {
            name: {"x": self._tensor(np.repeat(x, self.N)), "y": self._tensor(np.repeat(y, self.N))}
            for name, (x, y) in found.items()
        }

    def _tensor(self, values: npt.NDArray[np.float64]) -> Tensor:
        return torch.from_numpy(values).to(self._device, self._dtype)


def _scales(agent: int) -> tuple[float, float]:
    return 1 + 0.1 * agent, 1 + 0.05 * agent


def _one_entry(a: float, b: float) -> tuple[Form, Form]:
    """Return f_i and g_i as functions of one entry of (x, y1, y2)."""
    upper = np.array([[a * a, 0, -a], [0, b * b, 0], [-a, 0, 1]])
    lower = np.array([[0, -a, 0], [-a, b * b, 0], [0, 0, 0]])
    return Form(upper, np.array([0, b, 0]), 0.5), Form(lower, np.zeros(3))

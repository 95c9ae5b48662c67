"""A heterogeneous, strongly convex problem with known solutions: the test bench."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from sundsbo_mpi.options import require_integer, require_number
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.closed_form import Form, mean, smoothness, solutions

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

MOST_ENTRIES = 1_000
"""Of x and of y: every agent builds the dense matrices of all agents."""

EQUALLY_FAR = 1e100
"""A heterogeneity beyond which nothing changes until its products overflow."""


class Noise(NamedTuple):
    """What is added to the gradients of f_i and g_i at any point, each of shape (d_x + d_y,)."""

    upper: Tensor
    lower: Tensor


class Quadratic:
    """Two quadratics per agent, with gradient noise if wanted.

        f_i(x, y) = (x - s_i)' R_i (x - s_i) / 2 + (y - t_i)' Q_i (y - t_i) / 2
        g_i(x, y) = y' A_i y / 2 - y' (B_i x + c_i)

    R_i, Q_i and A_i have eigenvalues of at least 1.  Every matrix and vector is a mixture
    (common + h own_i) / sqrt(1 + h^2) of normal draws, so h = 0 makes all agents equal.  With
    noise sigma the losses of a batch are f_i + e' (x, y) and g_i + e'' (x, y), where the entries of
    e and e'' are normal with standard deviation sigma and depend on (seed, agent, k, draw) alone.
    All variables start at zero.

    Args:
        agent: The agent's rank i.
        agents: Number of agents.
        seed: Seed of the problem and of the noise.
        d_x: Length of x.
        d_y: Length of y.
        heterogeneity: The factor h >= 0.
        noise: Standard deviation sigma >= 0 of each entry of a gradient.
    """

    def __init__(  # noqa: PLR0913  (keyword parameters are a task's options)
        self,
        *,
        agent: int,
        agents: int,
        seed: int,
        d_x: int = 5,
        d_y: int = 8,
        heterogeneity: float = 1.0,
        noise: float = 0.0,
    ) -> None:
        require_integer("task.d_x", d_x, 1, MOST_ENTRIES)
        require_integer("task.d_y", d_y, 1, MOST_ENTRIES)
        require_number("task.heterogeneity", heterogeneity, 0, EQUALLY_FAR)
        require_number("task.noise", noise, 0)
        self.sizes = {"x": d_x, "y": d_y}
        self._seed, self._agent, self._sigma = seed, agent, noise
        forms = [_forms(d_x, d_y, heterogeneity, (seed, other)) for other in range(agents)]
        self._upper, self._lower = forms[agent]
        self._mean_upper = mean([upper for upper, _ in forms])
        self._mean_lower = mean([lower for _, lower in forms])
        self.lipschitz = smoothness(self._mean_lower, d_x)
        self.to(torch.device("cpu"), torch.get_default_dtype())

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move the agent's matrices and vectors."""
        self._device, self._dtype = device, dtype
        self._hessians = [self._tensor(form.hessian) for form in (self._upper, self._lower)]
        self._linears = [self._tensor(form.linear) for form in (self._upper, self._lower)]

    def start(self) -> tuple[Tensor, Tensor]:
        """Return zeros."""
        return self._tensor(np.zeros(self.sizes["x"])), self._tensor(np.zeros(self.sizes["y"]))

    def sample(self, k: int, draw: int = 0) -> Noise:
        """Return the noise of iteration k."""
        rng = generator(self._seed, Stream.NOISE, self._agent, k, draw)
        upper, lower = self._sigma * rng.standard_normal((2, sum(self.sizes.values())))
        return Noise(self._tensor(upper), self._tensor(lower))

    def everything(self) -> Noise:
        """Return no noise: the exact losses."""
        zeros = self._tensor(np.zeros(sum(self.sizes.values())))
        return Noise(zeros, zeros)

    def upper(self, x: Tensor, y: Tensor, batch: Noise) -> Tensor:
        """Return f_i(x, y) plus the batch's noise."""
        v = torch.cat([x, y])
        value = v @ (self._hessians[0] @ v) / 2 - self._linears[0] @ v + self._upper.constant
        return value + batch.upper @ v

    def lower(self, x: Tensor, y: Tensor, batch: Noise) -> Tensor:
        """Return g_i(x, y) plus the batch's noise."""
        v = torch.cat([x, y])
        return v @ (self._hessians[1] @ v) / 2 - self._linears[1] @ v + batch.lower @ v

    def report(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Return the agent's two losses without noise."""
        with torch.no_grad():
            return {
                "upper_loss": float(self.upper(x, y, self.everything())),
                "lower_loss": float(self.lower(x, y, self.everything())),
            }

    def reference(self, mu: float | None, gamma: float | None) -> dict[str, dict[str, Tensor]]:
        """Return the bilevel solution, and the penalised one where mu and gamma are given."""
        found = solutions(self._mean_upper, self._mean_lower, self.sizes["x"], mu=mu, gamma=gamma)
        return {
            name: {"x": self._tensor(x), "y": self._tensor(y)} for name, (x, y) in found.items()
        }

    def _tensor(self, values: npt.NDArray[np.float64]) -> Tensor:
        return torch.from_numpy(values).to(self._device, self._dtype)


def _forms(d_x: int, d_y: int, h: float, owner: tuple[int, int]) -> tuple[Form, Form]:
    """Return f_i and g_i of the ``owner`` (seed, agent)."""
    seed, agent = owner
    common, own = generator(seed, Stream.PROBLEM), generator(seed, Stream.PROBLEM, agent)

    def draw(*shape: int) -> npt.NDArray[np.float64]:
        mixture = common.standard_normal(shape) + h * own.standard_normal(shape)
        return np.asarray(mixture / np.hypot(1, h))

    def definite(d: int) -> npt.NDArray[np.float64]:
        root = draw(d, d)
        return np.asarray(np.eye(d) + root @ root.T / d)

    R, Q, A = definite(d_x), definite(d_y), definite(d_y)
    B = draw(d_y, d_x) / np.sqrt(d_x)
    s, t, c = draw(d_x), draw(d_y), draw(d_y)
    zero = np.zeros((d_x, d_y))
    upper = Form(
        np.block([[R, zero], [zero.T, Q]]),
        np.concatenate([R @ s, Q @ t]),
        float(s @ R @ s + t @ Q @ t) / 2,
    )
    lower = Form(
        np.block([[np.zeros((d_x, d_x)), -B.T], [-B, A]]), np.concatenate([np.zeros(d_x), c])
    )
    return upper, lower

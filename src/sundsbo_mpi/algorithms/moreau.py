"""What methods on the Moreau-envelope penalty share: options, start, and the penalty itself.

They move x, y and an auxiliary θ that follows the proximal point of the lower level at y, with
θ^0 = y^0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi.algorithms.base import MethodOptions
from sundsbo_mpi.composition.estimators import Variables
from sundsbo_mpi.composition.schedules import Scheduled, power_decay
from sundsbo_mpi.options import require_number, require_positive
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class MoreauOptions(MethodOptions):
    """The options of methods on the Moreau-envelope penalty.

    Args:
        step_x: Step of x.
        step_y: Step of y.
        step_theta: Step of θ.
        mu0: The penalty's μ_0 in μ_k = μ_0 (1 + k)^-p.
        p: How fast μ_k falls.
        gamma: γ itself, not 1/γ.
    """

    step_x: Scheduled = 0.01
    step_y: Scheduled = 0.01
    step_theta: Scheduled = 0.01
    mu0: float = 1.0
    p: float = 0.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        super().__post_init__()
        require_positive("algorithm.gamma", self.gamma)
        require_number("algorithm.mu0", self.mu0, 0)
        require_number("algorithm.p", self.p, 0)

    def penalty(self, k: int) -> Penalty:
        """Return μ_k = μ_0 (1 + k)^-p and γ."""
        return Penalty(power_decay(self.mu0, self.p)(k), self.gamma)


def begin(task: Task) -> Variables:
    """Return the task's start with θ^0 = y^0."""
    x, y = task.start()
    return {"x": x, "y": y, "theta": y}

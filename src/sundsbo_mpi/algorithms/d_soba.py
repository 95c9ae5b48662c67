"""D-SOBA (Kong, Zhu, Lu, Huang and Yuan, 2024, arXiv 2402.03167): diffusion on all variables.

With u, v and p of ``directions`` at (x^k, y^k, z^k) on one batch,

    h^{k+1} = (1 - θ) h^k + θ u,    h^0 = 0
    x^{k+1} = W (x^k - α h^{k+1}),    y^{k+1} = W (y^k - β v),    z^{k+1} = W (z^k - η p)

Nothing corrects for differences between agents, so with constant steps it settles near the solution
at a distance proportional to the steps.

Differences from the source, of which the algorithm box could not be consulted:
    1. That all directions are taken at (x^k, y^k, z^k) is our reading, as in SOBA (Dagreou et al.,
       2022, arXiv 2201.13409).
    2. x moves along h^{k+1}, not h^k: where the source is read as the latter, a lag of one
       iteration is missing here.  So ``moving_average = 1`` is SOBA without delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.algorithms.aid import ALL_AT_ONCE, AveragedOptions, averaged, begin, unpenalised
from sundsbo_mpi.algorithms.base import Horizon, steps
from sundsbo_mpi.composition import Composed, Oracles, directions
from sundsbo_mpi.composition.techniques import technique

if TYPE_CHECKING:
    from sundsbo_mpi.algorithms.aid import Pieces


def _d_soba(options: AveragedOptions, horizon: Horizon, pieces: Pieces, price: Oracles) -> Composed:
    return Composed(
        begin=begin,
        direction=unpenalised(pieces),
        estimator=averaged(options, horizon),
        techniques=dict.fromkeys(("x", "y", "z"), technique("se")),
        step_sizes=steps(options, "x", "y", "z", horizon=horizon),
        price=price,
    )


def second_order(options: AveragedOptions, horizon: Horizon) -> Composed:
    """D-SOBA-SO: ◇^{k+1} = W (◇^k - λ d^k), products by a double backward."""
    return _d_soba(options, horizon, directions.soba, ALL_AT_ONCE)


def first_order(options: AveragedOptions, horizon: Horizon) -> Composed:
    """D-SOBA-FO: ◇^{k+1} = W (◇^k - λ d^k), products by finite differences of gradients.

    Differences from the source:
        1. Central differences, and the length of the difference (``directions.soba_first_order``),
           are our choice.
    """
    return _d_soba(options, horizon, directions.soba_first_order, Oracles(f=1, g=3))

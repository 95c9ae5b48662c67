"""The theorems on the noisy quadratic: measured slopes beside what the bounds allow.

With λ = c (n/K)^(1/2), Theorems 1 and 2 and Propositions 1 and 2 of the SUN-DSBO paper bound the
averages over k < K

    of ‖∇Ψ_μk(x̄, ȳ)‖²        by  C (nK)^(-1/2) + C' n (1 - ρ)^-a K^-1
    of the consensus error    by  C K^(-1/2) + C' n^(3/2) (1 - ρ)^-a K^-1

where a = 2 for SE and 4 for GT.  On logarithmic axes the averages may fall faster than the leading
term and grow more slowly than the worst one.  A claim is contradicted where the whole confidence
interval of the slope lies on the wrong side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from sundsbo_mpi.campaign.tables import Table, spread_text
from sundsbo_mpi.statistics import CONFIDENCE, spread

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.results import Cell
    from sundsbo_mpi.runfile import RunData

    Points: TypeAlias = Mapping[int, Sequence[tuple[float, float]]]


class Slope(NamedTuple):
    """The exponent of a power law and its 95 % confidence interval."""

    value: float
    low: float
    high: float


class Claim(NamedTuple):
    """What is measured against what, in which experiment, and the exponent that the bound has."""

    text: str
    experiment: str
    along: Callable[[RunData], float]
    measure: Callable[[RunData], float]
    bounds: Mapping[str, float]
    """By method."""
    grows: bool = False
    """Whether the bound is on a growth, as the abscissa falls, and not on a fall, as it grows."""


def time_average(run: RunData, curve: np.ndarray) -> float:
    """Average a curve over the iterations, by the trapezoidal rule between evaluations."""
    return float(np.trapezoid(curve, run.iteration) / run.iteration[-1])


def stationarity(run: RunData) -> float:
    """Return the average of ‖∇Ψ_μk(x̄, ȳ)‖² over the run."""
    return time_average(run, run.stationarity)


def consensus(run: RunData) -> float:
    """Return the average of the consensus error of all variables together over the run."""
    return time_average(run, np.sum(list(run.consensus.values()), axis=0))


def _agents(run: RunData) -> float:
    return run.agent_count


def _iterations(run: RunData) -> float:
    return float(run.iteration[-1])


def _gap(run: RunData) -> float:
    return 1.0 - float(run.attributes["rho"])


HALF = {"sun-dsbo-se": -0.5, "sun-dsbo-gt": -0.5}
GAP = {"sun-dsbo-se": -2.0, "sun-dsbo-gt": -4.0}
CLAIMS = (
    Claim("stationarity falls with n", "thm-agents", _agents, stationarity, HALF),
    Claim("stationarity falls with K", "thm-iterations", _iterations, stationarity, HALF),
    Claim("also with p = 0", "thm-constant-penalty", _iterations, stationarity, HALF),
    Claim("consensus error falls with K", "thm-iterations", _iterations, consensus, HALF),
    Claim("stationarity grows as 1 - rho falls", "thm-gap", _gap, stationarity, GAP, grows=True),
    Claim("consensus error grows as 1 - rho falls", "thm-gap", _gap, consensus, GAP, grows=True),
)


def fit(points: Points) -> Slope:
    """Fit one exponent and one factor for every seed to (abscissa, value), all positive.

    Each seed is a problem of its own, so its mean is taken off before the regression, and costs a
    degree of freedom.

    Args:
        points: By seed.
    """
    from scipy.stats import linregress, t

    centred = [np.log(np.array(of_seed)) for of_seed in points.values() if len(of_seed) > 1]
    if not centred:
        return Slope(np.nan, np.nan, np.nan)
    x, y = np.concatenate([logs - logs.mean(axis=0) for logs in centred]).T
    line = linregress(x, y)
    freedom = len(x) - len(centred) - 1
    if freedom < 1:
        return Slope(float(line.slope), np.nan, np.nan)
    error = float(line.stderr) * np.sqrt((len(x) - 2) / freedom)
    half = float(t.ppf((1 + CONFIDENCE) / 2, freedom)) * error
    return Slope(float(line.slope), float(line.slope - half), float(line.slope + half))


def verdict(slope: Slope, bound: float, *, grows: bool) -> str:
    """Say whether a slope contradicts a bound of the form O(abscissa^bound)."""
    if np.isnan(slope.low):
        return "open: too few runs for an interval"
    if grows:
        return "contradicted: grows faster" if slope.high < bound else "within the bound"
    return "contradicted: falls more slowly" if slope.low > bound else "within the bound"


def claims_table(cells: Mapping[str, Sequence[Cell]]) -> Table:
    """Fit and judge every claim for both methods, from the cells of each experiment."""
    rows = []
    for claim in CLAIMS:
        found = cells.get(claim.experiment, ())
        for method in dict.fromkeys(cell.method for cell in found):
            slope = fit(_points(claim, [cell for cell in found if cell.method == method]))
            bound = claim.bounds[method]
            measured = f"{slope.value:+.2f} [{slope.low:+.2f}, {slope.high:+.2f}]"
            rows.append(
                (
                    claim.text,
                    method,
                    verdict(slope, bound, grows=claim.grows),
                    measured,
                    f"{bound:+.2g}",
                )
            )
    header = ("claim", "method", "verdict", "exponent, 95 % interval", "of the bound")
    return Table("exponents on the noisy quadratic", header, tuple(rows), words=3)


def averages_table(cells: Mapping[str, Sequence[Cell]]) -> Table:
    """List the averages over k < K behind the exponents."""
    rows = []
    for name, found in cells.items():
        for cell in found:
            measures = [
                spread(measure(run) for run in cell.runs.values())
                for measure in (stationarity, consensus)
            ]
            shown = map(spread_text, measures)
            rows.append((name, cell.condition, cell.method, str(len(cell.runs)), *shown))
    header = ("experiment", "condition", "method", "seeds", "stationarity", "consensus error")
    return Table("averages over k < K on the noisy quadratic", header, tuple(rows), words=3)


def _points(claim: Claim, cells: Sequence[Cell]) -> Points:
    points: dict[int, list[tuple[float, float]]] = {}
    for cell in cells:
        for seed, run in cell.runs.items():
            points.setdefault(seed, []).append((float(claim.along(run)), claim.measure(run)))
    return points

"""Why a run's numbers cease to be finite, or grow without bound: the likely causes in order.

What is said is for people: nothing is decided by it.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.safety import large_gamma
from sundsbo_mpi.composition.compressors import COMPRESSORS
from sundsbo_mpi.composition.directions import gradient, leaf
from sundsbo_mpi.composition.schedules import as_schedule
from sundsbo_mpi.config.resolving import usual_options
from sundsbo_mpi.diagnosis.growth import Growth
from sundsbo_mpi.diagnosis.health import NotFiniteError
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.config.resolving import Config
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.tasks.base import Task
    from sundsbo_mpi.topology import Mixing

SLOW_RHO = 0.9
"""Above it, a network spreads news slowly beside an ordinary step."""
NEAR = 0.1
"""A smallest eigenvalue that close to a method's bound."""
CONSENSUS, LOSS = "the consensus error of ", ""


class Diagnosis:
    """Looks at the rows of a run, and names causes when its numbers go astray.

    Args:
        config: The run's configuration.
        algorithm: The method.
        weights: What it mixes with.
        task: This agent's problem.
        agents: Number of agents in the beginning, on which steps may depend.
    """

    def __init__(
        self, config: Config, algorithm: Algorithm, weights: Mixing, task: Task, agents: int
    ) -> None:
        self._config, self._options = config, config.algorithm
        self._algorithm, self._weights, self._task = algorithm, weights, task
        self._agents = agents
        self._lipschitz = getattr(task, "lipschitz", math.nan)
        self._growth: dict[tuple[str, str], Growth] = {}
        self._said: set[str] = set()

    def note(self, row: Row) -> str | None:
        """Return a remark if some consensus error or loss now grows without bound; for rank 0.

        Once for the consensus errors and once for the losses: the growth of a loss takes that of
        the consensus errors along.
        """
        if math.isfinite(row.lipschitz):
            self._lipschitz = row.lipschitz
        losses = {name: value for name, value in row.task.items() if name.endswith("loss")}
        for kind, values in ((LOSS, losses), (CONSENSUS, row.consensus)):
            found = [(self._watch(kind, v, row.iteration, e), v) for v, e in values.items()]
            growing = [(since, v) for since, v in found if since is not None]
            if growing and kind not in self._said:
                self._said |= {kind, CONSENSUS}
                since, name = growing[0]
                return f"{kind}{name} has grown without bound since iteration {since}; " + _likely(
                    self._of_growth(kind, name, row.iteration)
                )
        return None

    def _watch(self, kind: str, name: str, k: int, value: float) -> int | None:
        return self._growth.setdefault((kind, name), Growth()).since(k, value)

    def explain(self, error: NotFiniteError, number: int, tally: Tally) -> NotFiniteError:
        """Return the error with its likely causes, by the agent of a number; collective."""
        variable, agent, k, _ = trouble = error.trouble
        if any(tally.everyone(number == agent and _spoils(self._task, k))):
            return NotFiniteError(
                trouble,
                f"the losses of agent {agent} on its batch of that iteration, or their gradients, "
                "are not finite at the start either: look at its data and its loss.",
            )
        first, then = [self._steps_as_they_are(variable, k)], self._compression()
        if self._said == {CONSENSUS}:
            first, then = [*then, *self._unfit_weights()], first
        causes = [
            *self._too_long(k),
            *self._too_large_for_messages(),
            *self._penalty(k),
            *first,
            *then,
            "a loss without a finite gradient there (a logarithm, root or quotient at 0)",
        ]
        return NotFiniteError(trouble, f"{_likely(causes)}.")

    def _of_growth(self, kind: str, name: str, k: int) -> list[str]:
        descent = [*self._too_long(k), *self._penalty(k)]
        if kind == LOSS:
            steps = self._steps_as_they_are("y", k)
            return [*descent, steps, *self._compression(), *self._unfit_weights()]
        rising = any(g.rises(k) for (of, _), g in self._growth.items() if of == LOSS)
        compression, weights = self._compression(), self._unfit_weights()
        steps = self._steps_as_they_are(name, k)
        if rising:
            return [*descent, *compression, steps, *weights]
        return [*compression, *weights, *descent, steps]

    def _steps(self, k: int, options: Mapping[str, Any] | None = None) -> dict[str, float]:
        """The steps λ^k of the run, or of other options, by the variable whose option sets them."""
        agents, iterations = self._agents, max(1, self._config.run.iterations)
        options = self._options if options is None else options
        return {
            option.removeprefix("step_"): as_schedule(
                option, value, agents=agents, iterations=iterations
            )(k)
            for option, value in options.items()
            if option.startswith("step_")
        }

    def _too_long(self, k: int) -> list[str]:
        """Steps at which descent alone would diverge: above 2 over the direction's smoothness.

        Known are that of g in y, L2, and what the proximal term adds to it in θ.
        """
        steps, penalty = self._steps(k), self._algorithm.penalty(k)
        known = math.isfinite(self._lipschitz)
        bounds = {}
        if known and not steps.keys().isdisjoint(("theta", "z")):
            bounds = dict.fromkeys(("y", "z"), (2 / self._lipschitz, "2/L2"))
        if penalty is not None and math.isfinite(penalty.gamma):
            most = 2 / ((self._lipschitz if known else 0.0) + 1 / penalty.gamma)
            bounds["theta"] = (most, "2/(L2 + 1/gamma)" if known else "2 gamma")
        excess = {v: steps[v] / bounds[v][0] for v in bounds if v in steps}
        return [
            f"step_{v} = {steps[v]:.3g} is above {bounds[v][1]} = {bounds[v][0]:.3g}"
            for v in sorted(excess, key=lambda v: -excess[v])
            if excess[v] > 1
        ]

    def _penalty(self, k: int) -> list[str]:
        """A γ at which the proximal problem of θ need not be convex."""
        said = large_gamma(self._algorithm.penalty(k), self._lipschitz)
        return [said] if said else []

    def _steps_as_they_are(self, first: str, k: int) -> str:
        """Name the step first that is furthest above its default, else that of a variable."""
        steps = self._steps(k)
        above = dict.fromkeys(steps, 1.0)
        with suppress(UsageError):  # of a user's defaults, which must not hide what went wrong
            usual = self._steps(k, usual_options(self._config, type(self._task)))
            above = {v: max(1.0, round(step / (usual[v] or step), 3)) for v, step in steps.items()}
        ordered = sorted(steps, key=lambda v: (-above[v], v != first))
        values = ", ".join(f"step_{v} = {steps[v]:.3g}" for v in ordered)
        return f"a step that is too long ({values}): try a tenth"

    def _too_large_for_messages(self) -> list[str]:
        if self._options["wire"] != "fp16":
            return []
        return ["wire = fp16, in which 65504 is the largest number: take bf16"]

    def _unfit_weights(self) -> list[str]:
        """Properties of the weights that let agents drift apart."""
        bound, lambda_min = self._algorithm.lambda_min, self._weights.lambda_min
        causes = []
        if bound > -math.inf and not self._weights.steady:
            causes.append(
                "weights that change, on which techniques that need symmetric ones may diverge: "
                "take GT"
            )
        elif bound > -math.inf and lambda_min is not None and lambda_min < bound + NEAR:
            causes.append(
                f"weights with the eigenvalue {lambda_min:.3f}, close to the method's bound "
                f"{bound:.3f}: set algorithm.lazy=true"
            )
        if self._weights.rho > SLOW_RHO:
            causes.append(
                f"rho = {self._weights.rho_text}, a network too slow for these steps: smaller "
                "steps, more links, or algorithm.gossip_steps"
            )
        return causes

    def _compression(self) -> list[str]:
        name = self._options["compressor"]
        if not name:
            return []
        offer = COMPRESSORS[name]
        share = self._options["gamma_c"] or offer.gamma_c
        own = ", ".join(f"{option} = {self._options[option]:g}" for option in offer.options)
        return [f"{name} with {own} and gamma_c = {share:g}: less of gamma_c, or more in a message"]


def _likely(causes: Iterable[str]) -> str:
    return f"likely, in this order: {'; '.join(causes)}"


def _spoils(task: Task, k: int) -> bool:
    """Whether the batch of iteration k makes the agent's losses not finite even at the start."""
    with suppress(Exception):  # of the user's code, which must not hide what went wrong before
        x, y = map(leaf, task.start())
        batch = task.sample(k)
        value = task.upper(x, y, batch) + task.lower(x, y, batch)
        return not all(bool(v.isfinite().all()) for v in (value, *gradient(value, x, y)))
    return False

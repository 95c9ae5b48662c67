"""What the tests of the remaining baselines share: options, and what the oracle makes of them."""

import bench
import oracle
import oracle_others
import pytest
import torch

from sundsbo_mpi.algorithms import method
from sundsbo_mpi.tasks.quadratic import Quadratic

SINGLE_LEVEL = ("d-psgd", "gnsd")
DECENTRALISED = ("dsgda-gt", "ma-dsbo", "mdbo", "vrdbo", "dsbo", "gossip-dsbo", *SINGLE_LEVEL)
STEPS = {
    "step_x": {"scale": 0.05, "power": 0.3},
    "step_y": {"scale": 0.08, "power": 0.5},
    "step_z": {"scale": 0.06, "power": 0.2},
}
OPTIONS = STEPS | {
    "nu": 0.7,
    "moving_average": {"scale": 0.8, "power": 0.1},
    "inner_y": 3,
    "inner_z": 2,
    "eta": 0.8,
    "terms": 4,
    "lipschitz": 6.0,
}
"""Options with which everything moves and changes on the quadratic."""
VARIANTS = [pytest.param(name, {}, id=name) for name in DECENTRALISED] + [
    pytest.param("dsgda-gt", {"inner_y": 1}, id="dsgda-gt-single-loop")
]
every_baseline = pytest.mark.parametrize(("name", "changes"), VARIANTS)


class Merged:
    """Adds an ordinary training loss, f + g, which trains what ``single_level_variables`` says."""

    single_level_variables = ("y",)

    def single_level(self, x, y, batch):
        return self.upper(x, y, batch) + self.lower(x, y, batch)


class MergedQuadratic(Merged, Quadratic):
    pass


class MergedElsewhere(Merged, bench.Elsewhere):
    pass


def lively(name, **changes):
    """Return the options of OPTIONS that the method has, and ``changes``."""
    return {o: v for o, v in OPTIONS.items() if o in bench.option_names(name)} | changes


def noise_of(tasks):
    """Return the tasks' noise of a draw of iteration k as the oracle wants it."""

    def noise(k, draw):
        drawn = [t.sample(k, draw) for t in tasks]
        return [torch.stack(rows).numpy() for rows in zip(*drawn, strict=True)]

    return noise


def history(name, options, tasks, W, iterations, problem=None):
    """Return what the oracle makes of ``bench.build(name, **options)``."""
    values = vars(method(name).options(**options))
    problem = problem or oracle.Quadratic(len(tasks), bench.SEED)
    known = (problem, W, bench.start_of(tasks), iterations, noise_of(tasks))
    lam = {v: bench._function(values[f"step_{v}"]) for v in "xyz" if f"step_{v}" in values}
    average = bench._function(values.get("moving_average"))
    match name:
        case "dsgda-gt":
            inner = values["inner_y"]
            return oracle_others.dsgda_gt(*known, lam=lam, nu=values["nu"], inner=inner)
        case "ma-dsbo":
            T, N = values["inner_y"], values["inner_z"]
            return oracle_others.ma_dsbo(*known, lam=lam, theta=average, T=T, N=N)
        case "dsbo":
            return oracle_others.dsbo(*known, lam=lam, T=values["inner_y"], N=values["inner_z"])
        case "gossip-dsbo":
            b, L = values["terms"], values["lipschitz"]
            return oracle_others.gossip_dsbo(*known, lam=lam, beta=average, b=b, L=L)
        case "mdbo" | "vrdbo":
            series = {"eta": values["eta"], "J": values["terms"], "L": values["lipschitz"]}
            return oracle_others.neumann(
                *known, lam=lam, rho=average, storm=name == "vrdbo", **series
            )
        case _:
            trained = tasks[0].single_level_variables
            return oracle_others.single_level(
                *known, lam=lam, trained=trained, tracked=name == "gnsd"
            )

"""What the oracle of the remaining baselines makes of a method and its options."""

import bench
import oracle
import oracle_others
import torch

from sundsbo_mpi.algorithms import method

SINGLE_LEVEL = ("d-psgd", "gnsd")


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
    lam = {v: bench.function(values[f"step_{v}"]) for v in "xyz" if f"step_{v}" in values}
    average = bench.function(values.get("moving_average"))
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
        case "d-psgd" | "gnsd":
            trained = tasks[0].single_level_variables
            return oracle_others.single_level(
                *known, lam=lam, trained=trained, tracked=name == "gnsd"
            )
        case _:
            raise KeyError(f"{name} has no oracle: write its recursion in oracle_others.py")

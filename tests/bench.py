"""Problems and networks for the tests, each as the package's tasks and as the oracle's arrays."""

import numpy as np
import oracle
import torch

from sundsbo_mpi.algorithms import Horizon, SunOptions, method
from sundsbo_mpi.tasks.quadratic import Quadratic
from sundsbo_mpi.tasks.toy import Toy

SEED = 3
CPU = torch.device("cpu")


def ring(agents, self_weight):
    """Ring with weights (1 - a)/2 for both neighbours; at least three agents."""
    eye = np.eye(agents)
    links = np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1)
    return self_weight * eye + (1 - self_weight) / 2 * links


def uneven():
    """Five agents of different degrees: a ring with a chord; its smallest eigenvalue is -0.21."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]
    degree = np.bincount(np.ravel(edges))
    W = np.zeros((5, 5))
    for i, j in edges:
        W[i, j] = W[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return W + np.diag(1 - W.sum(axis=1))


class Elsewhere(Quadratic):
    """A quadratic whose agents do not start at one point, which the program never does."""

    def start(self):
        rng = np.random.default_rng([SEED, self._agent])
        x, y = (rng.standard_normal(self.sizes[v]) for v in ("x", "y"))
        return torch.from_numpy(x), torch.from_numpy(y)


def quadratics(agents=5, task=Quadratic, dtype=torch.float64, **options):
    tasks = [task(agent=i, agents=agents, seed=SEED, **options) for i in range(agents)]
    for t in tasks:
        t.to(CPU, dtype)
    return tasks


def toys(agents=5):
    tasks = [Toy(agent=i, agents=agents, seed=0) for i in range(agents)]
    for t in tasks:
        t.to(CPU, torch.float64)
    return tasks


def start_of(tasks):
    """Return the agents' starts as the oracle wants them; theta^0 = y^0."""
    x, y = (torch.stack(rows).numpy() for rows in zip(*(t.start() for t in tasks), strict=True))
    return {"x": x, "y": y, "theta": y}


def noise_of(tasks):
    """Return the tasks' noise of iteration k as the oracle wants it."""

    def noise(k):
        drawn = [t.sample(k) for t in tasks]
        return oracle.Noise(
            torch.stack([xi.upper for xi in drawn]).numpy(),
            torch.stack([xi.lower for xi in drawn]).numpy(),
        )

    return noise


def build(name, agents=5, iterations=60, **options):
    """Build a method of the registry."""
    return method(name).build(SunOptions(**options), Horizon(agents, iterations))


def setting(name, options, noise=oracle.no_noise):
    """Say to the oracle what ``build(name, **options)`` says to the package.

    A technique named in the options overrides the method's, as does any option its default here.
    """
    values = vars(SunOptions(**options))
    own = oracle.METHODS[name]

    def by_variable(kind):
        return {v: _function(values[f"{kind}_{v}"]) for v in oracle.VARIABLES}

    return oracle.Setting(
        techniques=tuple(
            values[v] or of_method for v, of_method in zip(oracle.VARIABLES, own, strict=True)
        ),
        lam=by_variable("step"),
        mu=lambda k: values["mu0"] / (1 + k) ** values["p"],
        gamma=values["gamma"],
        estimator=values["estimator"],
        rho=by_variable("rho"),
        noise=noise,
    )


def _function(value):
    """Read a number or {scale, power} without the package."""
    if isinstance(value, dict):
        return lambda k: value["scale"] / (1 + k) ** value["power"]
    return lambda _k: value

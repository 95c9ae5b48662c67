"""Problems and networks for the tests, each as the package's tasks and as the oracle's arrays."""

import dataclasses
import itertools

import numpy as np
import oracle
import oracle_aid
import pytest
import torch

from sundsbo_mpi.algorithms import METHODS, Horizon, method
from sundsbo_mpi.algorithms.sparkle import ORDERS
from sundsbo_mpi.algorithms.sun_dsbo import SunOptions
from sundsbo_mpi.composition.estimators import ESTIMATORS
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


class Merged(Quadratic):
    """A quadratic with an ordinary training loss, f + g, which the single-level methods need."""

    single_level_variables = ("y",)

    def single_level(self, x, y, batch):
        return self.upper(x, y, batch) + self.lower(x, y, batch)


class Elsewhere(Merged):
    """A quadratic whose agents do not start at one point, which the program never does."""

    def start(self):
        rng = np.random.default_rng([SEED, self._agent])
        x, y = (rng.standard_normal(self.sizes[v]) for v in ("x", "y"))
        return torch.from_numpy(x), torch.from_numpy(y)


class Counting(Merged):
    """Counts the evaluations of f and g and the batches drawn."""

    def __init__(self, **options):
        super().__init__(**options)
        self.of_f, self.of_g, self.batches = 0, 0, []

    def upper(self, x, y, batch):
        self.of_f += 1
        return super().upper(x, y, batch)

    def lower(self, x, y, batch):
        self.of_g += 1
        return super().lower(x, y, batch)

    def sample(self, k, draw=0):
        self.batches.append((k, draw))
        return super().sample(k, draw)


def sweeps_of(monkeypatch):
    """Return a list that gets, for every sweep of back-propagation, what it was for.

    That is the number of variables differentiated along, and whether the graph was kept.
    """
    swept = []
    grad = torch.autograd.grad

    def counted(value, at, *vector, **options):
        along = len(at) if isinstance(at, tuple) else 1
        swept.append((along, options.get("create_graph", False)))
        return grad(value, at, *vector, **options)

    monkeypatch.setattr(torch.autograd, "grad", counted)
    return swept


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


SUN = tuple(name for name, entry in METHODS.items() if issubclass(entry.options, SunOptions))
AID = tuple(oracle_aid.METHODS)
OTHERS = tuple(name for name in METHODS if name not in (*SUN, *AID, "meha"))
DECENTRALISED = SUN + AID + OTHERS
"""All methods but MEHA, which knows no neighbours; whatever is registered is held to the laws."""
ALTERNATIVES = {"estimator": tuple(ESTIMATORS), "order": ORDERS}
"""Options that change what a method is, with all that they may be."""


def option_names(name):
    return {field.name for field in dataclasses.fields(method(name).options)}


def _variants():
    for name in SUN + AID:
        of_method = [option for option in ALTERNATIVES if option in option_names(name)]
        for values in itertools.product(*(ALTERNATIVES[option] for option in of_method)):
            chosen = dict(zip(of_method, values, strict=True))
            yield pytest.param(name, chosen, id="-".join([name, *values]))


VARIANTS = tuple(_variants())
"""SUN-DSBO and the AID methods, with each of their alternatives: (name, options)."""
OTHER_VARIANTS = (
    *(pytest.param(name, {}, id=name) for name in OTHERS),
    pytest.param("dsgda-gt", {"inner_y": 1}, id="dsgda-gt-single-loop"),
)
every_variant = pytest.mark.parametrize(("name", "variant"), VARIANTS)
every_other = pytest.mark.parametrize(("name", "variant"), OTHER_VARIANTS)
every_method = pytest.mark.parametrize(("name", "variant"), VARIANTS + OTHER_VARIANTS)

STEPS = {
    "step_x": {"scale": 0.05, "power": 0.3},
    "step_y": {"scale": 0.08, "power": 0.5},
    "step_theta": 0.04,
    "step_z": {"scale": 0.06, "power": 0.2},
}
LIVELY = STEPS | {
    "mu0": 1.5,
    "p": 0.2,
    "gamma": 0.5,
    "rho_x": {"scale": 0.9, "power": 0.2},
    "rho_y": 0.3,
    "rho_theta": 0.7,
    "moving_average": {"scale": 0.8, "power": 0.1},
    "projection_radius": 0.2,
    "nu": 0.7,
    "inner_y": 3,
    "inner_z": 2,
    "eta": 0.8,
    "terms": 4,
    "lipschitz": 6.0,
}
"""Options with which everything moves and changes on the quadratic."""


def lively(name, **changes):
    """Return the options of LIVELY that the method has, and ``changes``."""
    known = option_names(name)
    return {option: value for option, value in LIVELY.items() if option in known} | changes


def build(name, agents=5, iterations=60, **options):
    """Build a method of the registry."""
    entry = method(name)
    return entry.build(entry.options(**options), Horizon(agents, iterations))


def techniques(name, **options):
    """Return the technique of every variable, by name, as the oracles know them."""
    if name in AID:
        return dict(zip(oracle_aid.VARIABLES, oracle_aid.METHODS[name], strict=True))
    own = zip(oracle.VARIABLES, oracle.METHODS[name], strict=True)
    return {v: options.get(v) or of_method for v, of_method in own}


def history_of(name, options, tasks, problem, W, iterations):
    """Return what the oracle makes of ``build(name, **options)``: histories by variable."""
    known = {"problem": problem, "W": W, "start": start_of(tasks), "iterations": iterations}
    if name in AID:
        return oracle_aid.trajectory(**known, setting=aid_setting(name, options, noise_of(tasks)))
    return oracle.trajectory(**known, setting=setting(name, options, noise_of(tasks)))


def setting(name, options, noise=oracle.no_noise):
    """Say to the oracle what ``build(name, **options)`` says to the package, for SUN-DSBO.

    A technique named in the options overrides the method's, as does any option its default here.
    """
    values = vars(SunOptions(**options))

    def by_variable(kind):
        return {v: function(values[f"{kind}_{v}"]) for v in oracle.VARIABLES}

    return oracle.Setting(
        techniques=tuple(techniques(name, **options).values()),
        lam=by_variable("step"),
        mu=lambda k: values["mu0"] / (1 + k) ** values["p"],
        gamma=values["gamma"],
        estimator=values["estimator"],
        rho=by_variable("rho"),
        noise=noise,
    )


def aid_setting(name, options, noise=oracle.no_noise):
    """Say to the oracle of the AID methods what ``build(name, **options)`` says to the package."""
    values = vars(method(name).options(**options))
    return oracle_aid.Setting(
        techniques=oracle_aid.METHODS[name],
        lam={v: function(values[f"step_{v}"]) for v in oracle_aid.VARIABLES},
        theta=function(values.get("moving_average", 1.0)),
        gauss_seidel=values.get("order") == "gauss-seidel",
        radius=values.get("projection_radius", np.inf),
        noise=noise,
    )


def function(value):
    """Read a number or {scale, power} without the package."""
    if isinstance(value, dict):
        return lambda k: value["scale"] / (1 + k) ** value["power"]
    return lambda _k: value

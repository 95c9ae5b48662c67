"""Runs to be killed: of any method, estimator, transport, form of messages and number of ranks."""

from __future__ import annotations

from dataclasses import dataclass

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.algorithms.moreau import MoreauOptions
from sundsbo_mpi.algorithms.sparkle import ORDERS, SparkleOptions
from sundsbo_mpi.algorithms.sun_dsbo import SunOptions
from sundsbo_mpi.composition.compressors import COMPRESSORS
from sundsbo_mpi.composition.estimators import ESTIMATORS

ALGORITHMS = [name for name in METHODS if name not in ("meha", "d-psgd", "gnsd")]
"""MEHA knows one agent only, and the quadratic no ordinary training."""
TRANSPORTS = ("auto", "neighbor", "persistent", "p2p", "shared")
ITERATIONS = {1: 3000, 2: 2500, 3: 2000, 5: 1200}
"""By ranks: a few seconds."""
STEPS = {"step_x": 0.02, "step_y": 0.02, "step_theta": 0.02, "step_z": 0.02}
FEW = 3
"""Iterations between evaluations, or checkpoints, that a run spends most of its time with."""


@dataclass(frozen=True)
class Plan:
    """What a run does, in the words that ask for it."""

    agents: int
    iterations: int
    eval_every: int
    checkpoint_every: int
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        said = [
            word for word in self.words if not word.startswith(("--", "task.", "algorithm.step"))
        ]
        return " ".join(said)


def draw(rng) -> Plan:
    """Draw a run."""
    agents = int(rng.choice(list(ITERATIONS)))
    name = str(rng.choice(ALGORITHMS))
    options = METHODS[name].options
    settings = {v: s for v, s in STEPS.items() if v in options.__dataclass_fields__}
    if issubclass(options, MoreauOptions):
        settings |= {"mu0": 0.1, "gamma": 0.1}
    if issubclass(options, SunOptions):
        settings["estimator"] = str(rng.choice(list(ESTIMATORS)))
    if issubclass(options, SparkleOptions):
        settings["order"] = str(rng.choice(ORDERS))
    settings |= _messages(rng, name)
    eval_every = int(rng.choice([FEW, 20, 150]))
    checkpoint_every = int(rng.choice([FEW, 25, 200]))
    often = FEW in (eval_every, checkpoint_every)
    words = ["--algorithm", name, "--transport", str(rng.choice(TRANSPORTS))]
    for setting, value in settings.items():
        words += ["--set", f"algorithm.{setting}={value}"]
    words += ["--dtype", str(rng.choice(["float32", "float64"])), "--set", "task.noise=0.1"]
    return Plan(
        agents,
        ITERATIONS[agents] // (4 if often else 1) + int(rng.integers(20)),
        eval_every,
        checkpoint_every,
        (*words, "--seed", str(rng.integers(1000))),
    )


def _messages(rng, name):
    """Draw the form of messages, among those with which the method converges."""
    compressors = [
        c
        for c, offer in COMPRESSORS.items()
        if offer.dense or by_default(METHODS[name]).lambda_min < -1
    ]
    form = str(rng.choice(["whole", "whole", "fp16", "bf16", *compressors]))
    if form == "whole":
        return {}
    return {"wire": form} if form in ("fp16", "bf16") else {"compressor": form}

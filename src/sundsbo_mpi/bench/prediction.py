"""What an iteration costs on a network that is not at hand, from what a bench has fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sundsbo_mpi.algorithms import METHODS, Horizon, by_default, method
from sundsbo_mpi.algorithms.messages import Sizes, message_bytes
from sundsbo_mpi.algorithms.sending import built, require_steady
from sundsbo_mpi.bench.model import OTHER, Load, Model, load
from sundsbo_mpi.config.settings import complete
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology.mixing import edges_of

if TYPE_CHECKING:
    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.topology import Mixing


@dataclass(frozen=True)
class Placed:
    """A network whose agents are put on nodes, and how many links every agent then has."""

    agents: int
    ranks_per_node: int
    loads: tuple[Load, ...]
    """One for every matrix of the period, or for every draw of the sample."""
    steady: bool
    """Whether the links stay."""


@dataclass(frozen=True)
class Prediction:
    """Per iteration; bytes are means over the matrices where these change."""

    method: str
    agents: int
    ranks_per_node: int
    """On the fullest node."""
    rounds: int
    vectors: int
    exchange: float
    """Seconds that the slowest agent's rounds take."""
    iteration: float
    """Seconds of the gradient and then the rounds: nothing overlaps."""
    shortest: int
    """Bytes of a message in the round with the fewest."""
    longest: int
    """In the round with the most."""
    bytes_most: float
    """Sent by the agent that sends most."""
    bytes_all: float
    """Sent by all agents together."""
    bytes_between: float
    """Of these, from node to node."""


class Asked(NamedTuple):
    """Methods, the sizes of their problem, and how they are to be run."""

    methods: Sequence[str]
    """Names in the table of methods."""
    sizes: Sizes
    gradient: float = 0.0
    """Seconds of an iteration that every agent computes."""
    options: Mapping[str, Any] = {}
    """Those of all the methods that are not the default ones."""


class Refused(NamedTuple):
    """A method that cannot run so, or on a problem of these sizes, and why."""

    method: str
    reason: str


def placed(weights: Mixing, ranks_per_node: int) -> Placed:
    """Put agents 0 ... R - 1 on the first node, the next R on the second, and so on."""
    nodes = np.arange(weights.agents) // ranks_per_node
    loads = tuple(load(edges_of(W), nodes) for W in weights.sample)
    return Placed(weights.agents, ranks_per_node, loads, weights.steady)


def require_measured(model: Model, network: Placed) -> None:
    """Refuse a network with links of a class that the bench had none of.

    Raises:
        UsageError: it has.
    """
    missing = {kind for found in network.loads for kind in found.used} - model.links.keys()
    for kind in sorted(missing):
        remedy = (
            "give the file of a bench over several nodes, or --ranks-per-node "
            f"{network.agents} for a single one"
            if kind == OTHER
            else "give the file of a bench with several ranks to a node, or --ranks-per-node 1"
        )
        raise UsageError(
            f"{network.agents} agents with {network.ranks_per_node} to a node have links to the "
            f"{kind}, of which the bench had none: {remedy}."
        )


def predict(model: Model, network: Placed, asked: Asked) -> Iterator[Prediction | Refused]:
    """Predict what each method costs per iteration, or say why it cannot run.

    Args:
        model: What links cost.
        network: Where they are; all of a class that was measured.
        asked: What is to be predicted.
    """
    for name in asked.methods:
        try:
            algorithm = _built(name, asked.options, network)
            messages = message_bytes(algorithm, asked.sizes)
        except UsageError as error:
            yield Refused(name, str(error))
            continue
        exchange = np.mean([model.iteration_seconds(found, messages) for found in network.loads])
        sent = np.mean([found.sent for found in network.loads], axis=0) * sum(messages)
        yield Prediction(
            method=name,
            agents=network.agents,
            ranks_per_node=min(network.ranks_per_node, network.agents),
            rounds=len(messages),
            vectors=algorithm.vectors,
            exchange=float(exchange),
            iteration=asked.gradient + float(exchange),
            shortest=min(messages),
            longest=max(messages),
            bytes_most=float(sent.sum(axis=0).max()),
            bytes_all=float(sent.sum()),
            bytes_between=float(sent[1].sum()),
        )


def _built(name: str, given: Mapping[str, Any], network: Placed) -> Algorithm:
    """Build a method as a run with these options would."""
    entry = METHODS[name]
    options = entry.options(**complete("algorithm", entry.options, given))
    sent = built(entry, options, Horizon(network.agents, iterations=1))
    require_steady(sent, steady=network.steady)
    return sent


def decentralised() -> tuple[str, ...]:
    """Return the methods that send anything."""
    return tuple(name for name, entry in METHODS.items() if by_default(entry).rounds)


def senders(names: Sequence[str]) -> Sequence[str]:
    """Return the methods of these names, or without any names all that send anything.

    Raises:
        UsageError: there is none of a name, or it sends nothing.
    """
    sending = decentralised()
    for name in names:
        method(name)
        if name not in sending:
            raise UsageError(f"{name} sends nothing: name a decentralised method.")
    return names or sending

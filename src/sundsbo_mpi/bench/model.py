"""The alpha-beta model: what a round of averaging costs on given links.

A link is of one of two classes, c = "same node" or "other node".  Agent i, with d_ic links of class
c, needs for a round in which a message of b bytes goes to every neighbour

    t_i(b) = max( sum_c d_ic (alpha_c + beta_c b),  sum_c (D_ic / R) beta_c b )

seconds.  In the first term the agent deals with its neighbours one after the other, alpha_c being
the seconds per message and beta_c those per byte; d_ic is the larger of the numbers of messages
that it sends and receives.  In the second, the D_ic links of all agents of its node share what the
node has of memory and network, R being the agents per node where alpha and beta were measured: what
they measured was already shared by R.  The round of the network takes max_i t_i(b).

Assumptions and limits:
    1. Costs add up: nothing overlaps within an agent, everything does between nodes.  Switches
       that are shared by several nodes are not modelled.
    2. With R agents per node, memory and network of a node were in full use.  Where they were not,
       more agents per node cost less than is predicted here.
    3. One alpha and beta for all sizes.  Caches and changes of protocol are not straight lines:
       ``fit`` tells the largest error at the sizes that were measured.
    4. Agents that wait for each other go at the pace of the slowest one; noise, which also adds to
       the pace of many agents, is only in so far as it was in the measured medians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

SAME, OTHER = "same node", "other node"
CLASSES = (SAME, OTHER)
"""Of links."""


class Fit(NamedTuple):
    """Seconds per message and per byte of one class of links, and how well they fit."""

    alpha: float
    beta: float
    error: float
    """The largest |predicted - measured| / measured at the measured sizes."""


def fit(messages: int, sizes: Integers, seconds: Floats) -> Fit:
    """Fit T(b) = d (alpha + beta b) with alpha, beta >= 0 to measured rounds.

    Minimises the sum of ((predicted - measured) / measured)^2, so that short messages, which tell
    alpha, count as much as long ones.

    Args:
        messages: The number d of messages of the busiest agent.
        sizes: Bytes b of a message, (S,).
        seconds: Measured T, (S,), above 0.
    """
    from scipy.optimize import nnls

    bytes_ = np.asarray(sizes, dtype=np.float64)
    scale = bytes_.max()
    # In units of the longest message both columns are of the same order.
    columns = messages * np.column_stack([np.ones_like(bytes_), bytes_ / scale])
    (alpha, beta), _ = nnls(columns / seconds[:, np.newaxis], np.ones_like(seconds))
    predicted = columns @ (alpha, beta)
    error = np.abs(predicted / seconds - 1).max()
    return Fit(float(alpha), float(beta / scale), float(error))


@dataclass(frozen=True)
class Load:
    """How many links every agent has, and where."""

    messages: Integers
    """d_ic, (classes, n)."""
    of_node: Integers
    """D_ic, the sum of d_jc over the agents j of agent i's node, (classes, n)."""
    sent: Integers
    """Messages that every agent sends, (classes, n)."""

    @property
    def used(self) -> tuple[str, ...]:
        """The classes of the links that there are."""
        return tuple(c for c, d in zip(CLASSES, self.messages, strict=True) if d.any())


def load(edges: Integers, nodes: Integers) -> Load:
    """Count the links.

    Args:
        edges: Sender and receiver of every message, (E, 2).
        nodes: The node of every agent, any numbers, (n,).
    """
    _, nodes = np.unique(nodes, return_inverse=True)
    agents = len(nodes)
    senders, receivers = edges.T
    together = nodes[senders] == nodes[receivers]
    kinds = (together, ~together)
    sent = np.stack([np.bincount(senders[kind], minlength=agents) for kind in kinds])
    received = np.stack([np.bincount(receivers[kind], minlength=agents) for kind in kinds])
    messages = np.maximum(sent, received)
    by_node = np.stack([np.bincount(nodes, weights=d) for d in messages]).astype(np.int64)
    return Load(messages, by_node[:, nodes], sent)


@dataclass(frozen=True)
class Model:
    """Alpha and beta of each class of links that was measured, and R."""

    links: Mapping[str, Fit]
    ranks_per_node: int

    def round_seconds(self, of: Load, size: float) -> Floats:
        """Return t_i(b) of every agent, (n,), for messages of ``size`` bytes.

        Raises:
            KeyError: the load has links of a class that was not measured.
        """
        own, shared = np.zeros((2, of.messages.shape[1]))
        for c, d, of_node in zip(CLASSES, of.messages, of.of_node, strict=True):
            if d.any():
                link = self.links[c]
                own += d * (link.alpha + link.beta * size)
                shared += of_node / self.ranks_per_node * link.beta * size
        return np.maximum(own, shared)

    def iteration_seconds(self, of: Load, sizes: Sequence[float]) -> float:
        """Return what the rounds of an iteration take the slowest agent.

        Args:
            of: The links.
            sizes: Bytes of the message of every round.
        """
        agents = of.messages.shape[1]
        return float(sum((self.round_seconds(of, b) for b in sizes), np.zeros(agents)).max())

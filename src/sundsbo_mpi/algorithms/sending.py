"""How the messages of a method travel, by the options that all methods have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sundsbo_mpi.composition.compression import Compressed
from sundsbo_mpi.composition.compressors import COMPRESSORS
from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.composition.private import Private
from sundsbo_mpi.composition.rounding import Rounded
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.options import require_positive

if TYPE_CHECKING:
    from sundsbo_mpi.algorithms.base import Horizon, Method, MethodOptions
    from sundsbo_mpi.composition import Algorithm


def built(method: Method, options: MethodOptions, horizon: Horizon, *, seed: int = 0) -> Algorithm:
    """Build a method whose messages travel as its options say.

    Args:
        method: The entry of the method.
        options: Its own options, with those that all methods have.
        horizon: The numbers of agents and iterations that it is built for.
        seed: Of what a compressor draws.

    Raises:
        UsageError: an option is not what it must be, or the method cannot be sent so.
    """
    algorithm = method.build(options, horizon)
    return sending(algorithm, options, agents=horizon.agents, seed=seed)


def sending(algorithm: Algorithm, options: MethodOptions, *, agents: int, seed: int) -> Algorithm:
    """Let a method send as the options say: what, in how many rounds, and in which form.

    Raises:
        UsageError: an option is not what it must be, or the method cannot be sent so.
    """
    if options.gamma_c is not None:
        require_positive("algorithm.gamma_c", options.gamma_c, 1)
        if not options.compressor:
            raise UsageError(
                f"algorithm.gamma_c is {options.gamma_c:g}, but no message is compressed: give "
                "algorithm.compressor too, or leave gamma_c out."
            )
    if options.private:
        algorithm = Private.of(algorithm, agents)
    if options.gossip_steps != 1:
        algorithm = MultiStep(algorithm, options.gossip_steps)
    if options.wire and options.compressor:
        raise UsageError(
            f"algorithm.wire is '{options.wire}' and algorithm.compressor "
            f"'{options.compressor}': a message travels in one form, so leave one of them out."
        )
    if options.wire:
        return Rounded(algorithm, options.wire)
    if options.compressor:
        return _compressed(algorithm, options.compressor, options, seed)
    return algorithm


def _compressed(algorithm: Algorithm, name: str, options: MethodOptions, seed: int) -> Compressed:
    if name not in COMPRESSORS:
        raise unknown("compressor", name, COMPRESSORS)
    offer = COMPRESSORS[name]
    # EXTRA and ED were seen to diverge on sparse news.
    if not offer.dense and algorithm.lambda_min > -math.inf:
        dense = " or ".join(other for other, line in COMPRESSORS.items() if line.dense)
        raise UsageError(
            f"{name} sends a part of every vector, on which techniques that need symmetric "
            f"weights, such as EXTRA and ED, diverge: take --set algorithm.compressor={dense}, or "
            "a method of other techniques, such as sun-dsbo-gt."
        )
    share = offer.gamma_c if options.gamma_c is None else options.gamma_c
    return Compressed(algorithm, offer.build(options), share, seed)


def require_steady(algorithm: Algorithm, *, steady: bool) -> None:
    """Refuse compressed messages on a network that changes.

    Raises:
        UsageError: what neighbours know of one another would be summed with other weights.
    """
    if isinstance(algorithm, Compressed) and not steady:
        raise UsageError(
            "compressed messages tell what is new since the last one and so need neighbours that "
            "stay, but the weights change: take a topology that does not, or leave "
            "algorithm.compressor out (algorithm.wire=bf16 halves the bytes on any network)."
        )

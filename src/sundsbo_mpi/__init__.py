"""Decentralised stochastic bilevel optimisation (SUN-DSBO) with one agent per MPI rank."""

__version__ = "0.1.0"

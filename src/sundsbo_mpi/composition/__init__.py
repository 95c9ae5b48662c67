"""Of what a method is made, and how the pieces are put together.

The pieces are a direction (``directions``, ``matrix_directions``), an estimator (``estimators``)
and one technique per variable (``techniques``), with step sizes from ``schedules``.  ``composed``
puts them together; ``staged`` has several such methods in a row, ``loops`` repeats one of them,
``multi_step`` repeats the exchange, and ``fusion`` lets variables share their messages.
Methods made of a method by doing something else with what it sends (``wrapped``) are
``compression``, by the ``compressors`` and with the bits of ``packing``, and ``rounding``;
``private`` leaves out coordinates of x.
"""

from sundsbo_mpi.composition.algorithm import Algorithm, Lengths, Oracles, State, no_penalty
from sundsbo_mpi.composition.composed import Composed

__all__ = ["Algorithm", "Composed", "Lengths", "Oracles", "State", "no_penalty"]

"""The network: which world we are in, neighbour averages, and reductions."""

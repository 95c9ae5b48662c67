"""The program as a library: a task, weights and a communicator in, the solution out.

mpirun -n 2 python -m mpi4py examples/library.py

With ``-m mpi4py`` an exception on one rank ends the job; without it the others would wait for ever.
"""

import torch

from sundsbo_mpi import build_weights, solve, start_mpi


class Ridge:
    """One agent's part: choose a ridge penalty exp(x) for the coefficients y on other rows."""

    def __init__(self, agent):
        generator = torch.Generator().manual_seed(agent)
        self.A = torch.randn(40, 5, generator=generator)
        self.b = self.A.sum(1) + torch.randn(40, generator=generator)
        self.sizes = {"x": 1, "y": 5}

    def start(self):
        return torch.zeros(1), torch.zeros(5)

    def sample(self, k, draw=0):
        return None  # all rows, in every iteration

    def upper(self, x, y, batch):
        return (self.A[20:] @ y - self.b[20:]).square().mean()

    def lower(self, x, y, batch):
        error = (self.A[:20] @ y - self.b[:20]).square().mean()
        return error + x.exp().squeeze() * y.square().mean()

    def report(self, x, y):
        return {"upper_loss": float(self.upper(x, y, None))}


if __name__ == "__main__":
    comm = start_mpi()  # COMM_WORLD; any communicator of your own will do
    weights = build_weights("ring", agents=comm.size)
    steps = {"step_x": 0.1, "step_y": 0.05, "step_theta": 0.05}
    found = solve(Ridge(comm.rank), weights, comm, method="sun-dsbo-gt", iterations=300, **steps)
    if comm.rank == 0:
        first, last = found.history[0], found.history[-1]
        print(f"upper loss {first['upper_loss']:.3f} -> {last['upper_loss']:.3f}")
        print(f"penalty {float(found.x.exp()):.3f}, coefficients {found.y.numpy().round(2)}")

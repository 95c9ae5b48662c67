"""A small run that goes on without the agents that it loses, as a program to be started by mpirun.

    mpirun --with-ft ulfm -n 6 python tests/e2e/enduring.py PLAN FOLDER

PLAN is one of kills.py, in JSON.  Agents die on purpose: each of its ``deaths`` says which, in
which iteration, and at which moment of it (``Doomed``).  Every agent that comes to its end writes
what it found to FOLDER/AGENT.json.
"""

import faulthandler
import json
import os
import signal
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import torch
from mpi4py import rc

rc.initialize = False

from sundsbo_mpi.agent import answer  # noqa: E402
from sundsbo_mpi.algorithms import Horizon, method  # noqa: E402
from sundsbo_mpi.algorithms.safety import is_safe  # noqa: E402
from sundsbo_mpi.clock import Clock  # noqa: E402
from sundsbo_mpi.comm.gossip import Gossip  # noqa: E402
from sundsbo_mpi.comm.survivors import Survivors, endure, fault_tolerance  # noqa: E402
from sundsbo_mpi.comm.transports.network import Wires  # noqa: E402
from sundsbo_mpi.comm.waiting import Watchful  # noqa: E402
from sundsbo_mpi.comm.world import start_mpi  # noqa: E402
from sundsbo_mpi.ranks.control import GO_ON, Control  # noqa: E402
from sundsbo_mpi.tasks.closed_form import mean, penalised_solution  # noqa: E402
from sundsbo_mpi.tasks.quadratic import Quadratic  # noqa: E402
from sundsbo_mpi.topology import BUILDERS  # noqa: E402
from sundsbo_mpi.topology.survivors import remaining  # noqa: E402

MU, GAMMA, STEP = 1.0, 0.5, 0.1
STACKS_AFTER = 100
"""Seconds after which every agent that hangs says where."""


class Doomed:
    """Ends this process, as a crash would, when it comes to a moment that was chosen.

    The moments of iteration k are "begun", "posted" (a message is under way), "collected",
    "evaluating" (rows have been sent), "evaluated"; those of the r-th recovery "recovering",
    "recovered"; and at the end, with any number, "agreeing" and "gone".
    """

    def __init__(self, agent, deaths):
        self._moments = {(moment, k) for who, k, moment in deaths if who == agent}

    def meet(self, moment, k=0):
        if (moment, k) in self._moments:
            os.kill(os.getpid(), signal.SIGKILL)


class DoomedGossip(Gossip):
    """Passes by two of those moments in every round, of which the first counts."""

    def watch(self, doom):
        self._doom = doom

    def turn_to(self, k):
        self._k = k
        super().turn_to(k)

    def post(self, outgoing):
        super().post(outgoing)
        self._doom.meet("posted", self._k)

    def collect(self):
        found = super().collect()
        self._doom.meet("collected", self._k)
        return found


class Run:
    """One agent, from one loss to the next."""

    def __init__(self, plan, comm):
        self.plan, self.number, self.agents = plan, comm.rank, comm.size
        torch.set_default_dtype(torch.float64)
        numbered = [{"agent": i, "agents": comm.size, "seed": 3} for i in range(comm.size)]
        self.tasks = [Quadratic(**numbers) for numbers in numbered]
        self.task = self.tasks[comm.rank]
        entry = method(plan["method"])
        options = entry.options(step_x=STEP, step_y=STEP, step_theta=STEP, mu0=MU, gamma=GAMMA)
        self.algorithm = entry.build(options, Horizon(comm.size, plan["iterations"]))
        self.mixing = BUILDERS[plan["topology"]](comm.size)
        self.done, (self.w, self.state) = 0, self.algorithm.start(self.task)
        self.lives = []
        self.rows = []
        self.defect = 0.0
        self.doom = Doomed(self.number, plan["deaths"])

    def live(self, here):
        """Do what is left to do with those who are left."""
        recovery = len(self.lives)
        if recovery:
            self.doom.meet("recovering", recovery)
        weights, bridges = self.mixing, ()
        if recovery:
            found = -here.tally.smallest(-self.done)
            self.done, self.state = found, self.algorithm.anew(self.w, self.state)
            fits = partial(is_safe, self.algorithm)
            weights, bridges = remaining(self.mixing, here.agents, fits)
        life = {"agents": here.agents, "from": self.done, "bridges": bridges, "rho": weights.rho}
        self.lives.append(life)
        gossip = DoomedGossip(here.comm, weights, Clock(), Wires(waiting=here.waiting))
        gossip.watch(self.doom)
        if recovery:
            self.doom.meet("recovered", recovery)
        self.iterate(here, gossip)
        self.doom.meet("agreeing")

    def iterate(self, here, gossip):
        control = Control(here.tally)
        while self.done < self.plan["iterations"]:
            k = self.done
            self.doom.meet("begun", k)
            gossip.turn_to(k)
            step = self.algorithm.step(self.task, k, self.w, self.state)
            before = self.w
            self.w, self.state = answer(step, gossip, Clock(), nullcontext())
            self.done = k + 1
            assert control.finish() == GO_ON
            control.start(GO_ON)
            if self.done % self.plan["eval_every"] == 0 or self.done == self.plan["iterations"]:
                self.evaluate(here.tally, before)
        assert control.finish() == GO_ON

    def evaluate(self, tally, before):
        """Note how far the agents are from the law that their method keeps."""
        k = self.done - 1
        rows = tally.stack(self.w["x"].numpy())
        self.doom.meet("evaluating", k)
        defects = self.algorithm.defect(k, self.w, before, self.state)
        found = [np.abs(tally.total(defect.numpy())).max() for defect, _ in defects.values()]
        self.defect = max(self.defect, *found)
        assert tally.everyone(k) == [k] * tally.agents
        tally.tell(None if rows is None else f"{len(rows)} rows")
        self.rows.append(self.done)
        self.doom.meet("evaluated", k)

    def outcome(self):
        """What the agent says in the end; the distance is that from the survivors' solution."""
        left = [self.tasks[i] for i in self.lives[-1]["agents"]]
        upper, lower = mean([t._upper for t in left]), mean([t._lower for t in left])
        x, y = penalised_solution(upper, lower, self.task.sizes["x"], mu=MU, gamma=GAMMA)
        off = [np.abs(self.w[v].numpy() - s).max() for v, s in (("x", x), ("y", y))]
        return {
            "done": self.done,
            "distance": max(off),
            "defect": self.defect,
            "lives": self.lives,
            "rows": self.rows,
        }


def main():
    plan, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    faulthandler.dump_traceback_later(STACKS_AFTER)
    comm = start_mpi()
    if reason := fault_tolerance():
        sys.exit(reason)
    (folder / f"{comm.rank}.pid").write_text(str(os.getpid()))
    comm.Barrier()
    run = Run(plan, comm)
    try:
        endure(Survivors(comm, tuple(range(comm.size)), Watchful(comm)), run.live)
    except BaseException:
        import traceback

        traceback.print_exc()
        comm.Abort(1)
    run.doom.meet("gone")
    if run.lives[-1]["agents"][0] == run.number:  # who would still have files to close
        time.sleep(plan["closing_seconds"])
    (folder / f"{run.number}.json").write_text(json.dumps(run.outcome()))
    sys.exit(plan["status"])


if __name__ == "__main__":
    main()

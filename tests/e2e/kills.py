"""Kills agents of small runs that are to go on without them, and checks what the others reach.

    python tests/e2e/kills.py --count 30        # needs Open MPI, whose mpirun is beside this python

Every run is drawn from (seed, number); one that fails can be repeated by --only NUMBER.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from programs import BIN, environment

PROGRAM = Path(__file__).parent / "enduring.py"
TIME_LIMIT = 180
"""Seconds for one run, whose processes share few cores; a hang is a failure."""
METHODS = ("sun-dsbo-gt", "sun-dsbo-extra", "sun-dsbo-ed")
TOPOLOGIES = ("ring", "star", "line", "exponential", "complete")
PLAN = {
    "method": "sun-dsbo-gt",
    "topology": "ring",
    "iterations": 400,
    "eval_every": 10,
    "status": 0,
    "closing_seconds": 0.0,
}
"""Of a run in which nobody dies: what enduring.py wants to know besides the deaths."""
MOMENTS = ("begun", "posted", "collected", "evaluating", "evaluated")
ENOUGH = 300
"""Iterations after which every method has come to its solution, from wherever it starts."""
NEAR = 1e-8


def start(agents, plan, folder):
    """Start a run in a process group of its own."""
    command = [BIN / "mpirun", "--with-ft", "ulfm", "-n", agents, sys.executable, PROGRAM]
    return subprocess.Popen(
        [str(word) for word in (*command, json.dumps(plan), folder)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )


def finish(process):
    """Return what a run printed once it is over; raise if it does not come to its end."""
    try:
        return process.communicate(timeout=TIME_LIMIT)[0].replace("\0", "")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(
            f"not over after {TIME_LIMIT} s:\n{process.communicate()[0]}"
        ) from None


def check(agents, plan, dead, folder, printed):
    """Compare what the agents found with what they should have; return their common last life."""
    found = {int(path.stem): json.loads(path.read_text()) for path in folder.glob("*.json")}
    left, lost = set(found), set(range(agents)) - set(found)
    # The first death is certain; it may save others from their moments.
    assert dead[0] in lost <= set(dead), f"{lost} were lost, not {dead}:\n{printed}"
    (last,) = {json.dumps(each["lives"][-1]) for each in found.values()}
    last = json.loads(last)
    assert left <= set(last["agents"]), (left, last)
    for each in found.values():
        assert each["done"] == plan["iterations"], each
        assert each["defect"] < 1e-10, each
        if plan["iterations"] - last["from"] >= ENOUGH:
            assert each["distance"] < NEAR, each
    return last


def try_one(agents, plan, kills=()):
    """Let a run live through its deaths, and ``kills``: pairs of seconds and agents."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = start(agents, plan, folder)
        timers = threading.Thread(target=_kill, args=(process, folder, agents, kills), daemon=True)
        timers.start()
        printed = finish(process)
        timers.join()
        assert process.returncode == plan["status"], printed
        dead = [who for who, *_ in sorted(plan["deaths"], key=_moment)]
        dead += [who for _, who in sorted(kills)]
        return check(agents, plan, dead, folder, printed)


def _moment(death):
    _, k, moment = death
    return (k, MOMENTS.index(moment)) if moment in MOMENTS else (math.inf,)


def _kill(process, folder, agents, kills):
    """Kill agents from outside, some seconds after all have begun."""
    while process.poll() is None and len(list(folder.glob("*.pid"))) < agents:
        time.sleep(0.01)
    began = time.monotonic()
    for seconds, who in sorted(kills):
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        try:
            os.kill(int((folder / f"{who}.pid").read_text()), signal.SIGKILL)
        except (OSError, ValueError):
            return


def draw(seed, number):
    """Draw a run: its agents, its plan, and who is killed from outside."""
    rng = random.Random(f"{seed} {number}")
    agents, iterations = rng.randint(3, 7), 400
    plan = PLAN | {
        "method": rng.choice(METHODS),
        "topology": rng.choice(TOPOLOGIES),
        "iterations": iterations,
        "eval_every": rng.choice([1, 5, 10]),
        "status": rng.choice([0, 85]),
        "closing_seconds": 0.2,
    }
    who = rng.sample(range(agents), agents)

    def hit(i, k=None, moments=MOMENTS):
        moment = rng.choice(moments)
        k = rng.randrange(100) if k is None else k
        if moment in MOMENTS[3:]:  # in an evaluation, which there must be
            k += -(k + 1) % plan["eval_every"]
        return (i, k, moment)

    one = hit(who[0])
    deaths = {
        "one": [one],
        "the first agent": [hit(0)],
        "two at once": [one, hit(who[1], one[1])],
        "two in turn": [one, hit(who[1], one[1] + rng.randint(1, 50))],
        "in a recovery": [one, (who[1], 1, rng.choice(("recovering", "recovered")))],
        "in the first iteration": [hit(who[0], 0, MOMENTS[:3])],
        "in the last iteration": [hit(who[0], iterations - 1)],
        "in an evaluation": [hit(who[0], moments=MOMENTS[3:])],
        "at the end": [(who[0], 0, rng.choice(("agreeing", "gone")))],
        "all but one": [hit(i, 10 * place) for place, i in enumerate(who[1:])],
        "from outside": [],
        "two from outside": [],
    }
    kind = list(deaths)[number % len(deaths)]
    plan["deaths"] = deaths[kind]
    kills = []
    if "outside" in kind:
        plan["iterations"] = 1500  # so that it lives long enough to be killed
        kills = [(rng.uniform(0, 1.5), i) for i in who[: 1 + ("two" in kind)]]
    return kind, agents, plan, kills


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    asked = parser.parse_args()
    failed = 0
    for number in range(asked.count) if asked.only is None else [asked.only]:
        kind, agents, plan, kills = draw(asked.seed, number)
        began = time.monotonic()
        try:
            last = try_one(agents, plan, kills)
            said = f"{len(last['agents'])} of {agents} left since iteration {last['from']}"
        except AssertionError as error:
            failed += 1
            said = f"FAILED: {plan} {kills}: {error}"
        print(f"{number:3} {kind}: {said} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{failed} failed")
    sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()

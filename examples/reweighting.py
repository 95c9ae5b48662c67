"""Which rows of your table to trust: one weight for every training row, learnt on trusted rows.

The table is a CSV file with a header: numbers, one column of class labels (any text), and one
column that is 1 for the few rows that you trust and 0 for all others.

    python examples/reweighting.py table.csv          (only to try it: writes such a table)
    sundsbo-mpi task check examples/reweighting.py:Reweighting --set task.csv=table.csv
    sundsbo-mpi topology ring --agents 4 -o ring4.npz
    mpirun -n 4 sundsbo-mpi --topology ring4.npz --task examples/reweighting.py:Reweighting \
        --set task.csv=table.csv --save-final --output weights.h5
    python examples/reweighting.py table.csv weights.h5        (the rows that are trusted least)

With r_j the loss of a small network with parameters y on row j, and s the sigmoid,

    upper:  the mean of r_j over the agent's trusted rows
    lower:  the mean of s(x_j) r_j over its other rows, plus alpha |y|^2

Two thirds of the trusted rows are for the upper loss, one third is for testing.  A column named
"wrong", which the table to try has, is never learnt from: it tells which labels are wrong, so that
the report can say how far the weights of right and wrong ones have come apart.
"""

import csv as tables
import json
import sys
from itertools import pairwise

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from sundsbo_mpi import SplitModule
from sundsbo_mpi.errors import UsageError


class Reweighting:
    """One agent's rows; the keyword parameters after ``shard`` are the options."""

    defaults = {
        "algorithm": {"step_x": 60, "step_y": 0.1, "step_theta": 0.1, "private": True},
        "run": {"iterations": 1000, "eval_every": 100},
    }

    def __init__(
        self,
        *,
        agent,
        agents,
        seed,
        shard,
        csv,
        label="label",
        trusted="trusted",
        hidden=16,
        batch=32,
        alpha=0.001,
    ):
        self._key, self._batch, self._alpha = (seed, agent), batch, alpha
        self._inputs = torch.from_numpy(shard["inputs"])
        self._labels = torch.from_numpy(shard["labels"])
        self._wrong = torch.from_numpy(shard["wrong"])
        self._parts = [torch.from_numpy(shard[part]) for part in ("train", "validation", "test")]
        self.train_samples, self.validation_samples = map(len, self._parts[:2])
        first, total = shard["block"].tolist()
        self.private = slice(first, first + self.train_samples)
        torch.manual_seed(seed)  # the start is equal on all agents
        features, classes = self._inputs.shape[1], int(shard["classes"])
        network = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes))
        self._model = SplitModule(network)  # all of its parameters are in y
        self.sizes = {"x": total, "y": self._model.sizes["y"]}
        self.to(torch.device("cpu"), torch.get_default_dtype())

    @staticmethod
    def shards(*, agents, seed, csv, label, trusted, **_others):
        """Read the table on rank 0, and deal its rows out at random."""
        inputs, labels, is_trusted, wrong, classes = read(csv, label, trusted)
        shards, first, total = [], 0, int((is_trusted == 0).sum())
        for parts in dealt(is_trusted, agents, seed):
            rows = np.concatenate(parts)
            ends = np.cumsum([0, *map(len, parts)])
            train, validation, test = (np.arange(*pair) for pair in pairwise(ends))
            shards.append(
                {
                    "inputs": inputs[rows],
                    "labels": labels[rows],
                    "wrong": wrong[rows],
                    "train": train,
                    "validation": validation,
                    "test": test,
                    "block": np.array([first, total]),
                    "classes": np.array(len(classes)),
                }
            )
            first += len(train)
        return shards

    def to(self, device, dtype):
        self._inputs = self._inputs.to(device, dtype)
        self._labels, self._wrong = self._labels.to(device), self._wrong.to(device)
        self._parts = [part.to(device) for part in self._parts]
        self._model.to(device, dtype)

    def start(self):
        y = self._model.start()[1]
        return y.new_zeros(self.sizes["x"]), y

    def sample(self, k, draw=0):
        rng = np.random.default_rng([*self._key, k, draw])
        return [part[rng.integers(0, len(part), self._batch)] for part in self._parts[:2]]

    def everything(self):
        return self._parts[:2]

    def upper(self, x, y, batch):
        return self._losses(x, y, batch[1]).mean()

    def lower(self, x, y, batch):
        weights = x[self.private][batch[0]].sigmoid()
        return (weights * self._losses(x, y, batch[0])).mean() + self._alpha * y.square().sum()

    def report(self, x, y):
        train, _, test = self._parts
        with torch.no_grad():
            right = self._model(x, y, self._inputs[test]).argmax(1) == self._labels[test]
        weights, wrong = x[self.private].sigmoid(), self._wrong[train]
        return {
            "test_accuracy": (100 * float(right.sum()), len(test)),
            "weight_right": (float(weights[~wrong].sum()), int((~wrong).sum())),
            "weight_wrong": (float(weights[wrong].sum()), int(wrong.sum())),
        }

    def _losses(self, x, y, rows):
        outputs = self._model(x, y, self._inputs[rows])
        return cross_entropy(outputs, self._labels[rows], reduction="none")


def read(path, label, trusted):
    """Return standardised numbers, labels 0, 1, ..., trust, which labels are wrong, and classes."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(tables.DictReader(file))
    for option, name in (("label", label), ("trusted", trusted)):
        if not rows or name not in rows[0]:
            raise UsageError(f"{path} has no rows with a column '{name}': set task.{option}.")
    names = [name for name in rows[0] if name not in (label, trusted, "wrong")]
    inputs = np.array([[float(row[name]) for name in names] for row in rows])
    classes, labels = np.unique([row[label] for row in rows], return_inverse=True)
    is_trusted = np.array([int(row[trusted]) for row in rows])
    wrong = np.array([row.get("wrong") == "1" for row in rows])
    spread = inputs.std(axis=0)
    inputs = (inputs - inputs.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return inputs, labels.astype(np.int64), is_trusted, wrong, classes


def write(path, seed=0):
    """Write a table to try: tumours of scikit-learn's, of whose untrusted labels 30 % are wrong."""
    from sklearn.datasets import load_breast_cancer

    data, rng = load_breast_cancer(), np.random.default_rng(seed)
    is_trusted = rng.random(len(data.target)) < 0.3
    wrong = ~is_trusted & (rng.random(len(data.target)) < 0.3)
    labels = data.target_names[data.target ^ wrong]
    with open(path, "x", newline="", encoding="utf-8") as file:
        table = tables.writer(file)
        table.writerow([*data.feature_names, "label", "trusted", "wrong"])
        for values, *rest in zip(data.data.tolist(), labels, is_trusted, wrong, strict=True):
            table.writerow([*values, rest[0], int(rest[1]), int(rest[2])])


def dealt(is_trusted, agents, seed):
    """Return every agent's rows of the table: training, validation and test rows."""
    rng = np.random.default_rng(seed)
    others, good = (rng.permutation(np.flatnonzero(is_trusted == want)) for want in (0, 1))
    parts = [others, *np.split(good, [2 * len(good) // 3])]
    return [[rows[agent::agents] for rows in parts] for agent in range(agents)]


def least_trusted(path, run_file, number=20):
    """Print the rows of a table with the smallest weights, as a run with --save-final left them."""
    with h5py.File(run_file) as run:
        config, x = json.loads(run.attrs["config"]), run["final/x"][:]
    options = config["task"]
    _, labels, is_trusted, _, classes = read(path, options["label"], options["trusted"])
    agents = dealt(is_trusted, len(x), config["run"]["seed"])
    rows = np.concatenate([train for train, _, _ in agents])
    weights = 1 / (1 + np.exp(-x[0]))
    for place in np.argsort(weights)[:number]:
        row = rows[place]  # the header is line 1
        print(f"line {row + 2}: weight {weights[place]:.3f}, label {classes[labels[row]]}")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write(sys.argv[1])
    else:
        least_trusted(*sys.argv[1:3])

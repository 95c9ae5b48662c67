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
the report can say how far the weights of right and wrong ones have come apart.  Longer runs take
them further apart, but on a table this small the network then learns its trusted rows by heart, and
its accuracy on the rows for testing falls.
"""

import csv as tables
import json
import math
import sys
from itertools import pairwise
from typing import NamedTuple

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from sundsbo_mpi import SplitModule
from sundsbo_mpi.errors import UsageError, brief


class Reweighting:
    """One agent's rows; the keyword parameters after ``shard`` are the options."""

    defaults = {
        "algorithm": {"step_x": 60, "step_y": 0.1, "step_theta": 0.1, "private": True},
        "run": {"iterations": 200, "eval_every": 20},
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
        table = read(csv, label, trusted)
        shards, first, total = [], 0, int((table.trusted == 0).sum())
        for parts in dealt(table.trusted, agents, seed):
            if not all(map(len, parts)):
                raise UsageError(
                    f"{csv} has {total} rows that are not trusted and {len(table.trusted) - total} "
                    f"that are: too few for {agents} agents, each of which needs one row to train "
                    "with, one to validate and one to test."
                )
            rows = np.concatenate(parts)
            ends = np.cumsum([0, *map(len, parts)])
            train, validation, test = (np.arange(*pair) for pair in pairwise(ends))
            shards.append(
                {
                    "inputs": table.inputs[rows],
                    "labels": table.labels[rows],
                    "wrong": table.wrong[rows],
                    "train": train,
                    "validation": validation,
                    "test": test,
                    "block": np.array([first, total]),
                    "classes": np.array(len(table.classes)),
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


class Table(NamedTuple):
    """A table, row by row."""

    inputs: np.ndarray  # standardised
    labels: np.ndarray  # 0, 1, ...
    trusted: np.ndarray
    wrong: np.ndarray
    lines: list  # of the file, whose header is line 1
    classes: np.ndarray  # what the labels stand for


def read(path, label, trusted):
    """Read a table; what cannot be used is named with its line and column."""
    header, rows = cells(path)
    for option, name in (("label", label), ("trusted", trusted)):
        if not rows or name not in header:
            raise UsageError(f"{path} has no rows with a column '{name}': set task.{option}.")

    def column(name, *only):
        return [number(path, line, name, row[name], only) for line, row in rows]

    for line, row in rows:
        if not row[label].strip():
            raise UsageError(
                f"line {line} of {path} has nothing in column '{label}': mend it, or drop the row."
            )
    names = [name for name in header if name not in (label, trusted, "wrong")]
    classes, labels = np.unique([row[label] for _, row in rows], return_inverse=True)
    if len(classes) < 2 or not names:
        raise UsageError(f"{path} has {len(classes)} classes and {len(names)} columns of numbers.")
    inputs = np.array([column(name) for name in names]).T
    # A column that never changes becomes 0; its deviation may be that of rounding.
    spread = np.where(np.ptp(inputs, axis=0) > 0, inputs.std(axis=0), 1)
    return Table(
        inputs=(inputs - inputs.mean(axis=0)) / spread,
        labels=labels.astype(np.int64),
        trusted=np.array(column(trusted, 0, 1)),
        wrong=np.array(column("wrong", 0, 1) if "wrong" in header else [0] * len(rows)) == 1,
        lines=[line for line, _ in rows],
        classes=classes,
    )


def cells(path):
    """Return the names of the columns, and every row with its line, as a dict of texts by name."""
    try:
        # Spreadsheets may begin a file with a mark of its encoding, which is no part of a name.
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = tables.reader(file)
            header = next(reader, [])
            found = [(reader.line_num, row) for row in reader if row]
    except (OSError, UnicodeDecodeError, tables.Error) as error:
        raise UsageError(f"cannot read {path}: {error}; expected a CSV file in UTF-8.") from None
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise UsageError(f"{path} has two columns '{twice}': rename one of them.")
    for line, row in found:
        if len(row) != len(header):
            raise UsageError(
                f"line {line} of {path} has {len(row)} cells, but the header has {len(header)}: "
                "mend the row, or drop it."
            )
    return header, [(line, dict(zip(header, row, strict=True))) for line, row in found]


def number(path, line, name, cell, only):
    """Return what stands in a cell, one of the numbers in ``only`` if there are any."""
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (only and value not in only):
        raise UsageError(
            f"line {line} of {path} has {brief(cell)} in column '{name}': expected "
            f"{'0 or 1' if only else 'a finite number'}; mend it, or drop the row or the column."
        )
    return value


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
    table = read(path, options["label"], options["trusted"])
    agents = dealt(table.trusted, len(x), config["run"]["seed"])
    rows = np.concatenate([train for train, _, _ in agents])
    weights = 1 / (1 + np.exp(-x[0]))
    for place in np.argsort(weights)[:number]:
        line, label = table.lines[rows[place]], table.classes[table.labels[rows[place]]]
        print(f"line {line}: weight {weights[place]:.3f}, label {label}")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write(sys.argv[1])
    else:
        least_trusted(*sys.argv[1:3])

"""Learning rate and penalty of a scikit-learn-style model, tuned on data that stay with the agents.

    sundsbo-mpi task check examples/tuning.py:Tuning
    sundsbo-mpi topology ring --agents 4 -o ring4.npz
    mpirun -n 4 sundsbo-mpi --topology ring4.npz --task examples/tuning.py:Tuning \
        --save-final --output tuned.h5
    python examples/tuning.py tuned.h5          (beside a grid search on all data in one place)

The model, ``GradientClassifier``, is a logistic regression that is trained by a fixed number of
gradient steps, so that both its learning rate and its penalty matter.  With w_i(x) what agent i
trains on its own training rows with learning rate exp(x_1) and penalty exp(x_2),

    upper:  the loss of y on the agent's validation rows
    lower:  |y - w_i(x)|^2 / 2

so that y is the average of the agents' models, and x is chosen so that this average does well.
The gradient of the lower loss goes through all steps of the training.
"""

import json
import sys

import h5py
import numpy as np
import torch
from sklearn import datasets
from sklearn.base import BaseEstimator, ClassifierMixin
from torch.nn.functional import cross_entropy, one_hot, pad


def train(inputs, labels, classes, rate, penalty, steps):
    """Return (classes, features + 1) after gradient steps on the mean loss + penalty |w|^2 / 2."""
    inputs = pad(inputs, (0, 1), value=1.0)
    w, wanted = inputs.new_zeros(classes, inputs.shape[1]), one_hot(labels, classes)
    for _ in range(steps):
        slopes = ((inputs @ w.T).softmax(1) - wanted) / len(inputs)
        w = w - rate * (slopes.T @ inputs + penalty * w)
    return w


def logits(w, inputs):
    return pad(inputs, (0, 1), value=1.0) @ w.T


class Tuning:
    """One agent's rows of a data set of scikit-learn's; the last parameters are the options."""

    defaults = {
        # A small mu0, so that y is what was trained, and hardly pulled towards the upper loss.
        "algorithm": {"mu0": 0.1, "step_x": 5, "step_y": 0.5, "step_theta": 0.5, "gamma": 1.0},
        "run": {"iterations": 150, "eval_every": 10},
    }

    def __init__(self, *, agent, agents, seed, data="digits", steps=10, rate=0.01, penalty=1.0):
        inputs, labels = load(data)
        self._classes, self._steps = int(labels.max()) + 1, steps
        rows = np.random.default_rng(seed).permutation(len(labels))[agent::agents]
        parts = np.split(rows, [len(rows) // 2, 3 * len(rows) // 4])
        self._parts = [(torch.from_numpy(inputs[p]), torch.from_numpy(labels[p])) for p in parts]
        self._start = torch.tensor([rate, penalty], dtype=torch.float64).log()
        self.train_samples, self.validation_samples = len(parts[0]), len(parts[1])
        self.sizes = {"x": 2, "y": self._classes * (inputs.shape[1] + 1)}
        self.to(torch.device("cpu"), torch.get_default_dtype())

    def to(self, device, dtype):
        self._parts = [(rows.to(device, dtype), labels.to(device)) for rows, labels in self._parts]
        self._start = self._start.to(device, dtype)

    def start(self):
        return self._start.clone(), self._start.new_zeros(self.sizes["y"])

    def sample(self, k, draw=0):
        return None  # all rows, in every iteration

    def upper(self, x, y, batch):
        inputs, labels = self._parts[1]
        return cross_entropy(logits(y.view(self._classes, -1), inputs), labels)

    def lower(self, x, y, batch):
        rate, penalty = x.exp()
        trained = train(*self._parts[0], self._classes, rate, penalty, self._steps)
        return (y - trained.flatten()).square().sum() / 2

    def report(self, x, y):
        inputs, labels = self._parts[2]
        right = logits(y.view(self._classes, -1), inputs).argmax(1) == labels
        return {
            "test_accuracy": (100 * float(right.sum()), len(labels)),
            "validation_loss": float(self.upper(x, y, None)),
            "rate": float(x[0].exp()),
            "penalty": float(x[1].exp()),
        }


class GradientClassifier(ClassifierMixin, BaseEstimator):
    """The same model for scikit-learn; float64."""

    def __init__(self, rate=0.1, penalty=0.01, steps=10):
        self.rate, self.penalty, self.steps = rate, penalty, steps

    def fit(self, X, y):
        self.classes_, labels = np.unique(y, return_inverse=True)
        given = torch.from_numpy(X), torch.from_numpy(labels), len(self.classes_)
        self.w_ = train(*given, self.rate, self.penalty, self.steps)
        return self

    def predict(self, X):
        return self.classes_[logits(self.w_, torch.from_numpy(X)).argmax(1).numpy()]


def load(name):
    """Return standardised float64 inputs and integer labels of a data set of scikit-learn's."""
    inputs, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    spread = inputs.std(axis=0)
    inputs = (inputs - inputs.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return inputs.astype(np.float64), labels.astype(np.int64)


def compare(run_file):
    """Print the cross-validated accuracy with what a run found, and with what a grid search does.

    The run's own ``test_accuracy`` is another: of y, the average of models that were each trained
    on one agent's rows.
    """
    from sklearn.model_selection import GridSearchCV, cross_val_score

    with h5py.File(run_file) as run:
        options = json.loads(run.attrs["config"])["task"]
        rate, penalty = np.exp(run["final/x"][:].astype(np.float64).mean(axis=0)).tolist()
    inputs, labels = load(options["data"])
    tuned = GradientClassifier(rate, penalty, options["steps"])
    score = cross_val_score(tuned, inputs, labels).mean()
    print("accuracy of one model, cross-validated on the rows of all agents together, with what")
    print(f"the run found, rate {rate:.3g} and penalty {penalty:.3g}: {100 * score:.1f} %")
    grid = {"rate": [0.01, 0.1, 1.0, 10.0], "penalty": [0.001, 0.01, 0.1, 1.0]}
    search = GridSearchCV(tuned, grid).fit(inputs, labels)
    print(f"a grid search found, {search.best_params_}: {100 * search.best_score_:.1f} %")


if __name__ == "__main__":
    compare(sys.argv[1])

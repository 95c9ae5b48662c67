"""Few-shot heads on your own pictures: features from which new classes are learnt from few images.

The folder has one folder of images for each class; what is no image is left out, and named.

    python examples/fewshot.py pictures         (only to try it: writes such a folder, of digits)
    sundsbo-mpi task check examples/fewshot.py:FewShot --set task.folder=pictures
    sundsbo-mpi topology ring --agents 4 -o ring4.npz
    mpirun -n 4 sundsbo-mpi --topology ring4.npz --task examples/fewshot.py:FewShot \
        --set task.folder=pictures --output fewshot.h5

A training task r is to tell some classes apart.  With x the convolutional body of a network, y the
linear heads y_r of all training tasks, and L the mean cross-entropy,

    upper:  L on query images of every task
    lower:  L on a few support images of every task, plus alpha |y|^2

The last classes by name are kept for judging: their images are told apart by the nearest mean of
the features of a few of them ("new_accuracy"), which no head has been trained for.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import cross_entropy

from sundsbo_mpi import SplitModule
from sundsbo_mpi.errors import DataNote, UsageError


class Network(nn.Module):
    """A body, and one head for each task; group norm, since batch norm keeps running statistics."""

    def __init__(self, tasks, ways, colours, channels):
        super().__init__()
        layers = [
            [nn.Conv2d(inputs, channels, 3, padding=1), nn.GroupNorm(1, channels), nn.ReLU()]
            for inputs in (colours, channels)
        ]
        self.body = nn.Sequential(*layers[0], nn.MaxPool2d(2), *layers[1], nn.AdaptiveAvgPool2d(2))
        self.heads = nn.Parameter(torch.zeros(tasks, ways, 4 * channels))

    def features(self, images):
        """Return (tasks, images of a task, features)."""
        return self.body(images.flatten(0, 1)).view(*images.shape[:2], -1)

    def forward(self, images):
        """Return the logits, (tasks, images of a task, ways)."""
        return self.features(images) @ self.heads.transpose(1, 2)


class FewShot:
    """One agent's images; the keyword parameters after ``shard`` are the options."""

    defaults = {
        "algorithm": {"step_x": 0.1, "step_y": 0.3, "step_theta": 0.3, "gamma": 1.0},
        "run": {"iterations": 100, "eval_every": 10},
    }

    def __init__(
        self,
        *,
        agent,
        agents,
        seed,
        shard,
        folder,
        side=16,
        held_out=3,
        tasks=6,
        ways=3,
        shots=2,
        queries=2,
        channels=8,
        alpha=0.01,
    ):
        self._key, self._alpha = (seed, agent), alpha
        self._shots, self._taken = shots, shots + queries
        images = torch.from_numpy(shard["images"])  # (classes, images of a class, colours, ...)
        self._images = {"old": images[: len(images) - held_out], "new": images[-held_out:]}
        chosen = np.random.default_rng(seed)  # the tasks are the same on all agents
        self._tasks = np.stack(
            [chosen.permutation(len(images) - held_out)[:ways] for _ in range(tasks)]
        )
        torch.manual_seed(seed)  # the start is equal on all agents
        self._network = Network(tasks, ways, images.shape[2], channels)
        self._model = SplitModule(self._network, x="body.*")
        self.sizes = self._model.sizes
        self.to(torch.device("cpu"), torch.get_default_dtype())

    @staticmethod
    def shards(*, agents, seed, folder, side, held_out, ways, shots, queries, **_others):
        """Read the images on rank 0, and give every agent equally many of every class."""
        classes = read(folder, side)
        each = min(map(len, classes)) // agents
        if each < shots + queries or len(classes) - held_out < ways:
            raise UsageError(
                f"{folder} has {len(classes)} classes with {each} images for each of {agents} "
                "agents: lower task.shots, task.queries, task.ways or task.held_out, or take fewer "
                "agents."
            )
        rng = np.random.default_rng(seed)
        mixed = np.stack(
            [images[rng.permutation(len(images))[: each * agents]] for images in classes]
        )
        return [{"images": mixed[:, agent::agents]} for agent in range(agents)]

    def to(self, device, dtype):
        self._images = {name: images.to(device, dtype) for name, images in self._images.items()}
        self._model.to(device, dtype)

    def start(self):
        return self._model.start()

    def sample(self, k, draw=0):
        """Return support and query images, (tasks, ways times shots or queries, ...)."""
        rng = np.random.default_rng([*self._key, k, draw])
        number = self._images["old"].shape[1]
        places = np.stack([rng.permutation(number)[: self._taken] for _ in self._tasks])
        images = self._images["old"][self._tasks[:, :, None], places[:, None, :]]
        parts = images.split([self._shots, self._taken - self._shots], dim=2)
        return [part.flatten(1, 2) for part in parts]

    def upper(self, x, y, batch):
        return self._loss(x, y, batch[1])

    def lower(self, x, y, batch):
        return self._loss(x, y, batch[0]) + self._alpha * y.square().sum() / len(self._tasks)

    def report(self, x, y):
        with torch.no_grad():
            network = self._model.filled(x, y)
            features = network.features(self._images["new"])  # a class in place of a task
            means = features[:, : self._shots].mean(dim=1)
            queries = features[:, self._shots :]
            nearest = torch.cdist(queries.flatten(0, 1), means).argmin(dim=1)
            wanted = torch.arange(len(means)).repeat_interleave(queries.shape[1]).to(nearest)
            return {
                "new_accuracy": (100 * float((nearest == wanted).sum()), len(wanted)),
                "query_loss": float(self.upper(x, y, self.sample(0))),
            }

    def _loss(self, x, y, images):
        outputs = self._model(x, y, images)
        each = outputs.shape[1] // outputs.shape[2]
        wanted = torch.arange(outputs.shape[2], device=outputs.device).repeat_interleave(each)
        return cross_entropy(outputs.flatten(0, 1), wanted.repeat(len(outputs)))


def read(folder, side):
    """Return the images of every class, by name: (images, colours, side, side) from -1 to 1."""
    pictures = [[opened(path) for path in paths] for paths in found(folder).values()]
    grey = all(picture.mode in ("1", "L") for each in pictures for picture in each)
    classes = []
    for each in pictures:
        ready = [picture.convert("L" if grey else "RGB").resize((side, side)) for picture in each]
        images = np.stack(list(map(np.asarray, ready))).reshape(len(ready), side, side, -1)
        classes.append(images.transpose(0, 3, 1, 2) / 127.5 - 1)
    return classes


def found(folder):
    """Return the paths of the images by their folder, in order; say what is left out."""
    Image.init()
    suffixes = {s for s, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    images, others = {}, []
    try:
        for place in sorted(Path(folder).iterdir()):
            # Systems put files and folders of their own beside those of the user.
            if not place.is_dir() or place.name.startswith((".", "__")):
                others.append(place)
                continue
            images[place] = []
            for path in sorted(place.iterdir()):
                odd = path.suffix.lower() not in suffixes or path.name.startswith(".")
                (others if odd or path.is_dir() else images[place]).append(path)
    except OSError as error:
        raise UsageError(
            f"cannot read {error.filename}: {error.strerror}; set task.folder."
        ) from None
    if empty := [str(place) for place, paths in images.items() if not paths]:
        raise UsageError(f"{empty[0]} has no images: put some there, or take the folder away.")
    if others:
        names = ", ".join(str(path.relative_to(folder)) for path in others[:3])
        more = ", ..." * (len(others) > 3)
        warnings.warn(
            DataNote(f"{folder}: no images, and left out, are {names}{more}"), stacklevel=2
        )
    return images


def opened(path):
    """Return an image that needs its file no more."""
    try:
        with Image.open(path) as image:
            image.load()
            return image
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise UsageError(f"cannot read the image {path}: {error}; mend it, or delete it.") from None


def write(folder, each=40):
    """Write a folder to try: scikit-learn's digits, ``each`` images of every class."""
    from sklearn.datasets import load_digits

    data = load_digits()
    for digit in range(10):
        place = Path(folder) / str(digit)
        place.mkdir(parents=True)
        for number, image in enumerate(data.images[data.target == digit][:each]):
            Image.fromarray((15.9 * image).astype(np.uint8)).save(place / f"{number:03}.png")


if __name__ == "__main__":
    write(sys.argv[1])

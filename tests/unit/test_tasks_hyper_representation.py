import numpy as np
import pytest
import torch
from labelled_samples import AGENTS, COLOURS, DATA, MEAN, STD, cross_entropies
from learning import learn
from torch import nn

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.hyper_representation import HyperRepresentation
from sundsbo_mpi.tasks.shards import labelled_shards


def build(data=DATA, **options):
    shard = labelled_shards(data, AGENTS, 0, heterogeneity=1.0)[1]
    options = {"batch": 4, "hidden": 5, "alpha": 0.01, **options}
    task = HyperRepresentation(agent=1, agents=AGENTS, seed=0, shard=shard, **options)
    task.to(torch.device("cpu"), torch.float64)
    return task, shard


def point(task):
    rng = torch.Generator().manual_seed(0)
    return [torch.randn(task.sizes[v], generator=rng, dtype=torch.float64) for v in "xy"]


def test_losses_are_those_of_the_docstring():
    task, shard = build()
    x, y = point(task)
    A1, b1 = np.split(x.numpy(), [30])
    A2, b2 = np.split(y.numpy(), [50])

    def by_hand(part):
        pixels = (shard[f"{part}_inputs"] - MEAN) / STD
        hidden = np.maximum(pixels @ A1.reshape(5, 6).T + b1, 0)
        outputs = hidden @ A2.reshape(10, 5).T + b2
        return cross_entropies(outputs, shard[f"{part}_labels"]).mean()

    batch = task.everything()
    assert task.upper(x, y, batch).item() == pytest.approx(by_hand("validation"))
    lower = by_hand("train") + 0.01 * np.sum(y.numpy() ** 2)
    assert task.lower(x, y, batch).item() == pytest.approx(lower)
    assert task.single_level_variables == ("x", "y")


def test_colour_images_are_standardised_by_channel_and_shown_to_lenet():
    task, shard = build(COLOURS)
    layers = nn.Sequential(
        *(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(16, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    ).double()
    parameters = nn.utils.parameters_to_vector(layers.parameters()).detach()
    x, y = parameters.split(list(task.sizes.values()))
    images = torch.from_numpy(shard["validation_inputs"]).view(-1, 3, 16, 17)
    mean, std = (torch.from_numpy(v).view(3, 1, 1) for v in (COLOURS.mean, COLOURS.std))
    labels = torch.from_numpy(shard["validation_labels"])
    expected = nn.functional.cross_entropy(layers((images - mean) / std), labels)
    torch.testing.assert_close(task.upper(x, y, task.everything()), expected)


def test_backbone_and_head_start_as_torch_s_layers_do():
    x, y = build(hidden=50)[0].start()
    assert x.abs().max().item() == pytest.approx(6**-0.5, rel=0.05)
    assert y.abs().max().item() == pytest.approx(50**-0.5, rel=0.05)


def test_the_defaults_learn_digits():
    before, after = learn("hyper-representation", {"dataset": "digits"}, iterations=60)
    assert before["test_accuracy"] < 30
    assert after["test_accuracy"] > 85
    assert after["validation_accuracy"] > 85
    assert after["validation_loss"] < before["validation_loss"] / 2


@pytest.mark.parametrize("options", [{"alpha": -1.0}, {"hidden": 0}, {"hidden": 10_001}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match=f"task.{next(iter(options))} is"):
        build(**options)

"""What holds for every task on labelled samples."""

import numpy as np
import pytest
import torch
from labelled_samples import AGENTS, DATA, MEAN, STD, cross_entropies

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.base import Task
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
from sundsbo_mpi.tasks.hyper_representation import HyperRepresentation
from sundsbo_mpi.tasks.hyperparameter import Hyperparameter
from sundsbo_mpi.tasks.labelled import LabelledTask
from sundsbo_mpi.tasks.shards import labelled_shards

CLASSES = {
    HyperCleaning: {"hidden": 5},
    HyperRepresentation: {"hidden": 5},
    Hyperparameter: {"dataset": "digits"},
}
PARTS = ("train", "validation", "test")

every_task = pytest.mark.parametrize("task_class", CLASSES)


def build(task_class, *, agent=1, seed=0, dtype=torch.float64, **options):
    shard = labelled_shards(DATA, AGENTS, seed, heterogeneity=1.0)[agent]
    options = {"batch": 4, **CLASSES[task_class], **options}
    task = task_class(agent=agent, agents=AGENTS, seed=seed, shard=shard, **options)
    task.to(torch.device("cpu"), dtype)
    return task, shard


def point(task):
    rng = torch.Generator().manual_seed(0)
    return [
        torch.randn(task.sizes[v], generator=rng, dtype=torch.float64).requires_grad_()
        for v in "xy"
    ]


def losses(task, shard, part):
    """Cross-entropies of a part with pixels standardised here; the network is tested elsewhere."""
    pixels = torch.from_numpy((shard[f"{part}_inputs"] - MEAN) / STD)
    outputs = task.outputs(*point(task), pixels).detach().numpy()
    return cross_entropies(outputs, shard[f"{part}_labels"]), outputs


@every_task
def test_tasks_have_every_member(task_class):
    assert isinstance(build(task_class)[0], Task)


@every_task
def test_the_upper_level_is_the_mean_over_validation_samples(task_class):
    task, shard = build(task_class)
    expected = losses(task, shard, "validation")[0].mean()
    assert task.upper(*point(task), task.everything()).item() == pytest.approx(expected)


@every_task
def test_single_level_is_the_mean_over_training_and_validation_samples_together(task_class):
    task, shard = build(task_class)
    merged = np.concatenate([losses(task, shard, part)[0] for part in PARTS[:2]])
    found = task.single_level(*point(task), task.everything()).item()
    assert found == pytest.approx(merged.mean())


@every_task
def test_single_level_of_a_batch_is_unbiased(task_class):
    task, _ = build(task_class, batch=2)
    at = point(task)
    epochs = [task.single_level(*at, task.sample(k)).item() for k in range(6)]  # 12 of 12, 2 x 6
    assert np.mean(epochs) == pytest.approx(task.single_level(*at, task.everything()).item())
    assert np.std(epochs) > 0


@every_task
def test_single_level_moves_the_variables_that_it_names_alone(task_class):
    task, _ = build(task_class)
    x, y = point(task)
    slopes = torch.autograd.grad(task.single_level(x, y, task.sample(0)), (x, y), allow_unused=True)
    moved = {v for v, slope in zip("xy", slopes, strict=True) if slope is not None}
    assert moved == set(task.single_level_variables)


@every_task
def test_gradients_and_second_derivatives(task_class):
    task, _ = build(task_class)
    batch, at = task.sample(2), point(task)
    for loss in (task.upper, task.lower, task.single_level):
        assert torch.autograd.gradcheck(lambda x, y, loss=loss: loss(x, y, batch), at)
        assert torch.autograd.gradgradcheck(lambda x, y, loss=loss: loss(x, y, batch), at)


@every_task
def test_a_batch_depends_on_the_iteration_and_the_draw_alone(task_class):
    task, shard = build(task_class)
    again, _ = build(task_class)
    expected = task.sample(7, 1)
    again.sample(3)
    for mine, theirs in zip(expected, again.sample(7, 1), strict=True):
        assert torch.equal(mine, theirs)
    places = [task.sample(*key).train_places.tolist() for key in ((7, 1), (7, 0), (8, 1))]
    assert places[0] not in places[1:]
    raw = shard["train_inputs"][expected.train_places.numpy()]
    np.testing.assert_allclose(expected.train_inputs, (raw - MEAN) / STD)
    labels = shard["train_labels"][expected.train_places.numpy()]
    np.testing.assert_array_equal(expected.train_labels, labels)


@every_task
def test_training_and_validation_samples_are_shuffled_apart(task_class):
    shard = labelled_shards(DATA, AGENTS, 0, heterogeneity=1.0)[0]
    alike = {f"validation_{what}": shard[f"train_{what}"] for what in ("inputs", "labels")}
    options = {"agent": 0, "agents": AGENTS, "seed": 0, "batch": 4, **CLASSES[task_class]}
    batch = task_class(shard=shard | alike, **options).sample(0)
    assert not torch.equal(batch.train_inputs, batch.validation_inputs)


@every_task
@pytest.mark.parametrize("at_once", [3, 5_000])
def test_report_counts_all_samples(task_class, at_once, monkeypatch):
    monkeypatch.setattr(LabelledTask, "EVALUATED_AT_ONCE", at_once)
    task, shard = build(task_class)
    report = task.report(*(v.detach() for v in point(task)))
    for part in ("test", "validation"):
        expected, outputs = losses(task, shard, part)
        assert report[f"{part}_loss"] == pytest.approx((expected.sum(), len(expected)))
        right = (outputs.argmax(1) == shard[f"{part}_labels"]).sum()
        assert report[f"{part}_accuracy"] == (100 * right, len(expected))
    if task_class is not HyperCleaning:  # whose training loss is weighted
        expected, _ = losses(task, shard, "train")
        assert report["train_loss"] == pytest.approx((expected.sum(), 12))


@every_task
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_agents_start_alike(task_class, dtype):
    tasks = [build(task_class, agent=agent, dtype=dtype)[0] for agent in range(AGENTS)]
    starts = [task.start() for task in tasks]
    for task, start in zip(tasks, starts, strict=True):
        assert [len(v) for v in start] == list(task.sizes.values())
        assert task.lower(*start, task.sample(0)).dtype == dtype
        for mine, first in zip(start, starts[0], strict=True):
            assert torch.equal(mine, first)
            assert mine.dtype == dtype


@every_task
def test_an_empty_share_of_the_test_data_is_evaluated(task_class):
    task, _ = build(task_class)
    task._data["test_inputs"] = task._data["test_inputs"][:0]
    task._data["test_labels"] = task._data["test_labels"][:0]
    assert task.report(*(v.detach() for v in point(task)))["test_accuracy"] == (0.0, 0)


@every_task
@pytest.mark.parametrize("batch", [0, 2.5, True])
def test_a_batch_of_no_samples_is_refused(task_class, batch):
    with pytest.raises(UsageError, match=r"task\.batch is"):
        build(task_class, batch=batch)

import numpy as np
import pytest
import torch
from labelled_samples import AGENTS, DATA, MEAN, STD

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
from sundsbo_mpi.tasks.shards import labelled_shards

CPU = torch.device("cpu")
OPTIONS = {"dataset": "digits", "heterogeneity": 0.1, "corruption": 0.3}


def build(dtype=torch.float64, seed=0, **options):
    options = {"batch": 4, "hidden": 5, "alpha": 0.01, **options}
    shards = list(labelled_shards(DATA, AGENTS, seed, heterogeneity=1.0, corruption=0.4))
    tasks = [
        HyperCleaning(agent=agent, agents=AGENTS, seed=seed, shard=shards[agent], **options)
        for agent in range(AGENTS)
    ]
    for task in tasks:
        task.to(CPU, dtype)
    return tasks, shards


def point(task, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(task.sizes[v], generator=generator, dtype=torch.float64).requires_grad_()
        for v in "xy"
    ]


def losses_by_hand(y, images, labels):
    """Cross-entropies of the 6-5-10 network with numpy alone."""
    A1, b1, A2, b2 = np.split(y, np.cumsum([30, 5, 50]))
    pixels = (images - MEAN) / STD
    hidden = np.maximum(pixels @ A1.reshape(5, 6).T + b1, 0)
    outputs = hidden @ A2.reshape(10, 5).T + b2
    return np.log(np.exp(outputs).sum(1)) - outputs[np.arange(len(labels)), labels]


def test_losses_on_all_data_are_those_of_the_docstring():
    tasks, shards = build()
    for agent, (task, shard) in enumerate(zip(tasks, shards, strict=True)):
        x, y = (v.detach() for v in point(task))
        batch = task.everything()
        clean = losses_by_hand(y.numpy(), shard["validation_inputs"], shard["validation_labels"])
        noisy = losses_by_hand(y.numpy(), shard["train_inputs"], shard["train_labels"])
        psi = x.numpy()[agent * 12 : (agent + 1) * 12]
        weighted = np.mean(noisy / (1 + np.exp(-psi)))
        assert float(task.upper(x, y, batch)) == pytest.approx(clean.mean())
        lower = weighted + 0.01 * np.sum(y.numpy() ** 2)
        assert float(task.lower(x, y, batch)) == pytest.approx(lower)
        total, count = task.report(x, y)["train_loss"]
        assert total / count == pytest.approx(weighted)


def test_a_minibatch_has_the_losses_of_its_samples():
    (task, *_), (shard, *_) = build()
    x, y = (v.detach() for v in point(task))
    batch = task.sample(7)
    rows = batch.train_places.numpy()  # agent 0: its places in x are its places in the shard
    noisy = losses_by_hand(y.numpy(), shard["train_inputs"][rows], shard["train_labels"][rows])
    lower = np.mean(noisy / (1 + np.exp(-x.numpy()[rows]))) + 0.01 * np.sum(y.numpy() ** 2)
    assert float(task.lower(x, y, batch)) == pytest.approx(lower)


def test_gradients_and_second_derivatives():
    (_, task, _), _ = build()
    batch, at = task.sample(2), point(task)
    for loss in (task.upper, task.lower):
        assert torch.autograd.gradcheck(lambda x, y, loss=loss: loss(x, y, batch), at)
        assert torch.autograd.gradgradcheck(lambda x, y, loss=loss: loss(x, y, batch), at)


def test_an_agent_s_loss_depends_on_its_own_block_of_x_alone():
    tasks, _ = build()
    touched = []
    for task in tasks:
        x, y = point(task)
        (slope,) = torch.autograd.grad(task.lower(x, y, task.everything()), x)
        touched.append(slope.nonzero().flatten().tolist())
    assert touched == [list(range(12)), list(range(12, 24)), list(range(24, 36))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_agents_start_alike_with_weights_of_one_half(dtype):
    tasks, _ = build(dtype)
    x, y = tasks[0].start()
    assert x.dtype == y.dtype == tasks[0].lower(x, y, tasks[0].sample(0)).dtype == dtype
    assert torch.equal(x, torch.zeros(36, dtype=dtype))
    for task in tasks[1:]:
        for mine, theirs in zip((x, y), task.start(), strict=True):
            assert torch.equal(mine, theirs)
    assert not torch.equal(y, build(dtype, seed=1)[0][0].start()[1])


def test_report_counts_the_agent_s_share_of_the_test_data():
    tasks, shards = build()
    x, y = (v.detach() for v in point(tasks[0]))
    for task, shard in zip(tasks, shards, strict=True):
        report = task.report(x, y)
        losses = losses_by_hand(y.numpy(), shard["test_inputs"], shard["test_labels"])
        assert report["test_loss"] == pytest.approx((losses.sum(), len(losses)))
        by_class = [
            losses_by_hand(y.numpy(), shard["test_inputs"], np.full(len(losses), c))
            for c in range(10)
        ]
        right = np.argmin(by_class, axis=0) == shard["test_labels"]
        assert report["test_accuracy"] == (100 * right.sum(), len(losses))
        assert report["corrupted"] is shard["corrupted"]


def test_summary_of_the_weights():
    arrays = {
        "weight": [np.array([0.9, 0.2]), np.array([0.7, 0.4, 0.3])],
        "corrupted": [np.array([False, True]), np.array([False, True, False])],
    }
    summary = HyperCleaning.summarise(arrays)
    assert summary["weight_clean"] == pytest.approx((0.9 + 0.7 + 0.3) / 3)
    assert summary["weight_corrupted"] == pytest.approx(0.3)
    assert summary["weight_gap"] == pytest.approx(1.9 / 3 - 0.3)
    # Of the six pairs of a right and a wrong label, five are in order.
    assert summary["weight_auc"] == pytest.approx(5 / 6)


@pytest.mark.parametrize("corrupted", [True, False])
def test_summary_is_nan_where_there_is_nothing_to_compare(corrupted):
    arrays = {"weight": [np.array([0.9, 0.2])], "corrupted": [np.array([corrupted] * 2)]}
    summary = HyperCleaning.summarise(arrays)
    assert set(summary) == {"weight_clean", "weight_corrupted", "weight_gap", "weight_auc"}
    assert np.isnan(summary["weight_gap"])
    assert np.isnan(summary["weight_auc"])


def test_options_for_the_agents_may_be_passed_along_to_the_shards():
    shards = HyperCleaning.shards(**OPTIONS, agents=10, seed=0, alpha=0.1, batch=7)
    assert [shard["train_inputs"].shape for shard in shards] == [(100, 64)] * 10
    assert all(shard["corrupted"].any() for shard in shards)
    task = HyperCleaning(agent=9, agents=10, seed=0, shard=shards[9])
    assert task.sizes == {"x": 1000, "y": 64 * 300 + 300 + 3010}
    assert (task.train_samples, task.validation_samples) == (100, 50)


def test_an_unknown_data_set_is_refused():
    with pytest.raises(UsageError, match="unknown data set 'digit'"):
        HyperCleaning.shards(**{**OPTIONS, "dataset": "digit"}, agents=2, seed=0)


@pytest.mark.parametrize(
    "options",
    [{"alpha": -1.0}, {"batch": 0}, {"batch": 10**20}, {"hidden": True}, {"hidden": 10_001}],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match=f"task.{next(iter(options))} is"):
        build(**options)


def test_the_area_under_the_curve_is_that_of_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    for levels in (2, 5, 1000):
        weight = rng.integers(0, levels, 60) / levels
        wrong = rng.random(60) < 0.4
        arrays = {"weight": [weight[:20], weight[20:]], "corrupted": [wrong[:20], wrong[20:]]}
        found = HyperCleaning.summarise(arrays)["weight_auc"]
        assert found == pytest.approx(roc_auc_score(~wrong, weight), abs=1e-14)

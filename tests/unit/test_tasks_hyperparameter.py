import numpy as np
import pytest
import torch
from labelled_samples import AGENTS, DATA, MEAN, STD, cross_entropies
from learning import learn

from sundsbo_mpi.config.settings import parameters
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.hyperparameter import Hyperparameter
from sundsbo_mpi.tasks.shards import labelled_shards
from sundsbo_mpi.tasks.synthetic import synthetic_shards

CPU = torch.device("cpu")


def point(task, scale=1.0):
    rng = torch.Generator().manual_seed(0)
    return [
        scale**power * torch.randn(task.sizes[v], generator=rng, dtype=torch.float64)
        for v, power in (("x", 0), ("y", 1))
    ]


def divide(agents, **options):
    return Hyperparameter.shards(
        agents=agents, seed=0, **parameters("task", Hyperparameter) | options
    )


def synthetic(agent=1, **options):
    options = {"features": 4, "train": 30, "validation": 15, "test": 60, **options}
    shards = divide(AGENTS, **options)
    task = Hyperparameter(agent=agent, agents=AGENTS, seed=0, shard=shards[agent], **options)
    task.to(CPU, torch.float64)
    return task, shards


def test_losses_on_synthetic_samples_are_logistic():
    task, shards = synthetic()
    pi, tau = point(task)

    def by_hand(part):
        signs = 2 * shards[1][f"{part}_labels"] - 1
        return np.log1p(np.exp(-signs * (shards[1][f"{part}_inputs"] @ tau.numpy()))).mean()

    batch = task.everything()
    assert task.sizes == {"x": 4, "y": 4}
    assert task.upper(pi, tau, batch).item() == pytest.approx(by_hand("validation"))
    ridge = tau.numpy() @ np.diag(np.exp(pi.numpy())) @ tau.numpy() / 2
    assert task.lower(pi, tau, batch).item() == pytest.approx(by_hand("train") + ridge)


def test_losses_on_images_are_those_of_the_docstring():
    shard = labelled_shards(DATA, AGENTS, 0, heterogeneity=1.0)[0]
    task = Hyperparameter(agent=0, agents=AGENTS, seed=0, shard=shard, dataset="digits")
    task.to(CPU, torch.float64)
    pi, tau = point(task)
    rows = tau.numpy().reshape(10, 6)

    def by_hand(part):
        outputs = (shard[f"{part}_inputs"] - MEAN) / STD @ rows.T
        return cross_entropies(outputs, shard[f"{part}_labels"]).mean()

    batch = task.everything()
    ridge = sum(
        np.exp(pi[j].item()) * sum(rows[k, j] ** 2 for k in range(10)) for j in range(6)
    ) / (10 * 6)
    assert task.upper(pi, tau, batch).item() == pytest.approx(by_hand("validation"))
    assert task.lower(pi, tau, batch).item() == pytest.approx(by_hand("train") + ridge)


def test_derivatives_are_finite_far_out():
    task, _ = synthetic()
    pi, tau = (v.requires_grad_() for v in point(task, scale=1e6))
    for loss in (task.upper, task.lower):
        value = loss(pi, tau, task.everything())
        (slope,) = torch.autograd.grad(value, tau, create_graph=True)
        (curvature,) = torch.autograd.grad(slope.sum(), tau)
        assert all(v.isfinite().all() for v in (value, slope, curvature))


def test_all_variables_start_at_zero():
    task, _ = synthetic()
    assert not any(v.any() for v in task.start())


def test_synthetic_samples_follow_one_model_at_scales_that_differ_between_agents():
    sizes = {"train": 4_000, "validation": 7, "test": 5}
    shards = synthetic_shards(3, 0, features=3, sizes=sizes)
    directions = []
    for i, shard in enumerate(shards, start=1):
        inputs, labels = shard["train_inputs"], shard["train_labels"]
        assert inputs.shape == (4_000, 3)
        assert [len(shard[f"{part}_labels"]) for part in ("validation", "test")] == [7, 5]
        np.testing.assert_allclose(inputs.std(axis=0), i, rtol=0.05)
        np.testing.assert_allclose(inputs.mean(axis=0), 0, atol=0.1 * i)
        mean = (2 * labels - 1) @ inputs  # of y u, along tau* for normal u
        directions.append(mean / np.linalg.norm(mean))
        wrong = (inputs @ directions[-1] > 0) != labels
        assert 0 < wrong.mean() < 0.2
    assert directions[0] @ directions[1] > 0.99
    assert directions[0] @ directions[2] > 0.99
    assert not np.allclose(shards[0]["train_inputs"] * 2, shards[1]["train_inputs"])


def test_the_noise_of_the_labels_is_a_tenth():
    """With one feature u and tau* = t a label is wrong where 0.1 beta < -t u: an arctangent."""
    shard = synthetic_shards(1, 3, features=1, sizes={"train": 200_000})[0]
    right = shard["train_inputs"][:, 0] > 0
    rate = np.mean(right != shard["train_labels"])
    t = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(20,))).standard_normal()
    rate = rate if t > 0 else 1 - rate
    assert rate == pytest.approx(np.arctan(0.1 / abs(t)) / np.pi, rel=0.05)


def test_synthetic_samples_can_be_repeated_and_follow_the_seed():
    one, same, other = (
        synthetic_shards(2, seed, features=3, sizes={"train": 4}) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one[1]["train_inputs"], same[1]["train_inputs"])
    assert not np.array_equal(one[1]["train_inputs"], other[1]["train_inputs"])


def test_sizes_count_the_samples_of_all_agents():
    _, shards = synthetic()
    assert [len(s["train_labels"]) for s in shards] == [10, 10, 10]
    assert [len(s["validation_labels"]) for s in shards] == [5, 5, 5]
    assert len(synthetic(test=0)[1][0]["test_labels"]) == 1_000
    options = {"dataset": "digits", "train": 600, "validation": 0, "test": 30}
    shards = divide(AGENTS, **options)
    assert [len(s["train_labels"]) for s in shards] == [200, 200, 200]
    assert [len(s["validation_labels"]) for s in shards] == [166, 166, 166]
    assert sum(len(s["test_labels"]) for s in shards) == 30


def test_a_smaller_set_is_drawn_at_random_from_the_whole():
    def tested(**options):
        options = {"dataset": "digits", "heterogeneity": 1e3, **options}
        shards = divide(1, **options)
        return list(map(tuple, shards[0]["test_inputs"]))

    everything, some = tested(), tested(test=40)
    assert set(some) < set(everything)
    assert len(set(some)) == 40
    assert some != everything[:40]


def test_agents_see_classes_in_proportions_of_their_own():
    shards = divide(5, dataset="digits", heterogeneity=0.1)
    assert min(len(set(s["train_labels"])) for s in shards) < 8


@pytest.mark.parametrize(("dataset", "accuracy"), [("synthetic", 85), ("digits", 85)])
def test_the_defaults_learn(dataset, accuracy):
    before, after = learn("hyperparameter", {"dataset": dataset}, iterations=60)
    assert before["test_accuracy"] < 60
    assert after["test_accuracy"] > accuracy
    assert after["validation_loss"] < before["validation_loss"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"features": 0}, r"task\.features is 0"),
        ({"train": -1}, r"task\.train is -1"),
        ({"train": 2.5}, r"task\.train is 2\.5"),
        ({"test": 2}, r"task\.test is 2, too few samples for 3 agents"),
        ({"features": 200_000, "train": 600}, "with 200,000 features are more than 134,217,728"),
        ({"features": 10**20}, r"task\.features is 10000"),
        ({"validation": 10**20}, r"task\.validation is 10000"),
        ({"dataset": "digits", "test": 298}, r"task\.test is 298, but there are 297 samples"),
        ({"dataset": "digits", "train": 2}, "3 agents cannot share the 2 training samples"),
        ({"dataset": "digits", "heterogeneity": -1.0}, r"task\.heterogeneity is -1"),
        ({"dataset": "sythetic"}, "unknown data set 'sythetic'"),
    ],
)
def test_what_cannot_be_had_is_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        divide(3, **options)

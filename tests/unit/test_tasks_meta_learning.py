from itertools import combinations

import numpy as np
import pytest
import torch

from sundsbo_mpi.config.settings import parameters
from sundsbo_mpi.datasets import CharacterSet
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.meta_learning.backbone import Backbone
from sundsbo_mpi.tasks.meta_learning.heads import Fit, fitted_heads
from sundsbo_mpi.tasks.meta_learning.shards import Tasks, meta_learning_shards
from sundsbo_mpi.tasks.meta_learning.task import MetaLearning

AGENTS, WAYS, SHOTS, QUERIES, POOL, CHANNELS = 3, 3, 2, 1, 7, 2
SHAPE = (2, 5, 6)
TRAINING, TESTED = Tasks(POOL, WAYS, SHOTS, QUERIES), Tasks(5, WAYS, 2, 3)
CPU = torch.device("cpu")


def classes(number, fewest, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, 256, (fewest + c % 4, 60), dtype=np.uint8) for c in range(number))


DATA = CharacterSet(classes(6, 12, 0), classes(4, 5, 1), classes(3, 6, 2), SHAPE)


def class_of(images):
    """Return the class of each stored image, by looking through all training classes."""
    known = {image.tobytes(): c for c, drawn in enumerate(DATA.train) for image in drawn}
    return [known[image.tobytes()] for image in images]


def build(dtype=torch.float64, seed=0, agents=AGENTS, **options):
    shards = meta_learning_shards(DATA, agents, seed, TRAINING, TESTED)
    options = {
        "ways": WAYS,
        "shots": SHOTS,
        "queries": QUERIES,
        "meta_batch": 4,
        "pool": POOL,
        "channels": CHANNELS,
        "regularisation": 0.01,
        "evaluation_tasks": TESTED.number,
        "test_shots": TESTED.shots,
        "test_queries": TESTED.queries,
        "test_steps": 7,
        **options,
    }
    tasks = [
        MetaLearning(agent=agent, agents=agents, seed=seed, shard=shard, **options)
        for agent, shard in enumerate(shards)
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


def stored(images, shard):
    """Undo the standardisation: (images, tasks, ...) of a batch as rows of bytes."""
    mean, std = (torch.from_numpy(shard[name]).view(-1, 1, 1) for name in ("mean", "std"))
    return (images * std + mean).round().to(torch.uint8).flatten(2).numpy()


def standardised(images, shard):
    images = torch.from_numpy(images).double().view(-1, *SHAPE)
    mean, std = (torch.from_numpy(shard[name]).view(-1, 1, 1) for name in ("mean", "std"))
    return (images - mean) / std


def modules(x):
    """The backbone made of torch's layers, with the parameters of the flat vector."""
    layers = []
    for inputs, pooled in zip((2, CHANNELS, CHANNELS, CHANNELS), (1, 1, 0, 0), strict=True):
        convolution = torch.nn.Conv2d(inputs, CHANNELS, 3, padding=1, bias=False)
        layers += [convolution, torch.nn.BatchNorm2d(CHANNELS, track_running_stats=False)]
        layers += [torch.nn.ReLU(), *[torch.nn.MaxPool2d(2)] * pooled]
    network = torch.nn.Sequential(*layers, torch.nn.Flatten()).double()
    torch.nn.utils.vector_to_parameters(x, network.parameters())
    return network.requires_grad_(False)


def mean_loss(x, y, batch, *kinds):
    """Mean cross-entropy of each task's images, task by task, and mean |y_s|^2."""
    network, heads = modules(x), y.view(POOL, WAYS, -1)
    losses, squares = [], []
    for place, task in enumerate(batch.tasks):
        features = torch.cat([network(images[:, place]) for images in kinds])
        labels = torch.cat([torch.arange(WAYS).repeat_interleave(len(i) // WAYS) for i in kinds])
        outputs = features @ heads[task, :, :-1].T + heads[task, :, -1]
        losses.append(torch.nn.functional.cross_entropy(outputs, labels))
        squares.append(heads[task].square().sum())
    return torch.stack(losses).mean(), torch.stack(squares).mean()


def test_losses_are_those_of_torch_s_layers_task_by_task():
    tasks, _ = build()
    for k, task in enumerate(tasks):
        (x, y), batch = (v.detach() for v in point(task, k)), task.sample(k)
        upper, _ = mean_loss(x, y, batch, batch.query)
        lower, square = mean_loss(x, y, batch, batch.support)
        merged, _ = mean_loss(x, y, batch, batch.support, batch.query)
        torch.testing.assert_close(task.upper(x, y, batch), upper)
        torch.testing.assert_close(task.lower(x, y, batch), lower + 0.01 * square)
        torch.testing.assert_close(task.single_level(x, y, batch), merged + 0.01 * square)


def test_gradients_and_second_derivatives():
    task = build(meta_batch=2)[0][1]
    batch, at = task.sample(2), point(task)
    for loss in (task.upper, task.lower, task.single_level):
        assert torch.autograd.gradcheck(lambda x, y, loss=loss: loss(x, y, batch), at)
        assert torch.autograd.gradgradcheck(
            lambda x, y, loss=loss: loss(x, y, batch), at, fast_mode=True
        )


def test_a_loss_has_no_memory_and_its_tasks_do_not_touch_each_other():
    task = build()[0][0]
    (x, y), batch = (v.detach() for v in point(task)), task.sample(3)
    first = task.lower(x, y, batch)
    task.report(x, y)
    task.lower(x + 1, y, task.sample(4))
    assert torch.equal(task.lower(x, y, batch), first)

    def at(*places):
        chosen = list(places)
        return type(batch)(batch.tasks[chosen], batch.support[:, chosen], batch.query[:, chosen])

    torch.testing.assert_close(task.lower(x, y, at(2, 0, 3, 1)), first)
    alone = torch.stack([task.lower(x, y, at(place)) for place in range(4)])
    torch.testing.assert_close(alone.mean(), first)


def test_only_the_heads_of_the_meta_batch_have_gradients():
    task = build()[0][0]
    (x, y), batch = point(task), task.sample(1)
    assert len(set(batch.tasks.tolist())) < POOL
    for loss in (task.upper, task.lower):
        (slope,) = torch.autograd.grad(loss(x, y, batch), y)
        touched = slope.view(POOL, -1).abs().sum(dim=1).nonzero().flatten()
        assert set(touched.tolist()) == set(batch.tasks.tolist())


def test_the_agents_work_on_the_same_tasks_with_images_of_their_own():
    tasks, shards = build()
    owned = [{image.tobytes() for image in shard["images"]} for shard in shards]
    assert not any(mine & theirs for mine, theirs in combinations(owned, 2))
    for k in range(6):
        batches = [task.sample(k) for task in tasks]
        for batch, shard, mine in zip(batches, shards, owned, strict=True):
            assert torch.equal(batch.tasks, batches[0].tasks)
            images = np.concatenate([stored(i, shard) for i in (batch.support, batch.query)])
            assert {image.tobytes() for image in images.reshape(-1, 60)} <= mine


def test_every_task_of_the_pool_comes_once_in_an_epoch():
    task = build(meta_batch=POOL)[0][0]
    for k in range(3):
        assert sorted(task.sample(k).tasks.tolist()) == list(range(POOL))


def test_a_task_is_a_fixed_choice_of_classes_with_images_in_the_order_of_its_labels():
    (task, *_), (shard, *_) = build()
    chosen = {}
    for k in range(12):
        batch = task.sample(k)
        for images, each in ((batch.support, SHOTS), (batch.query, QUERIES)):
            rows = stored(images, shard)
            for place, s in enumerate(batch.tasks.tolist()):
                labels = class_of(rows[:, place])
                ways = labels[::each]
                assert labels == list(np.repeat(ways, each))
                assert len(set(ways)) == WAYS
                assert chosen.setdefault(s, ways) == ways
    assert len({tuple(ways) for ways in chosen.values()}) > 1


def test_an_image_is_support_or_query_for_the_whole_run_and_all_come_in_turn():
    (task, *_), (shard, *_) = build()
    seen = {"support": set(), "query": set()}
    for k in range(60):
        batch = task.sample(k)
        for kind, images in seen.items():
            rows = stored(getattr(batch, kind), shard)
            assert len({r.tobytes() for r in rows[:, 0]}) == len(rows)  # none twice in a task
            images |= {row.tobytes() for row in rows.reshape(-1, 60)}
    assert not seen["support"] & seen["query"]
    assert len(seen["support"] | seen["query"]) == len(shard["images"])
    assert len(seen["support"]) == task.train_samples
    assert len(seen["query"]) == task.validation_samples


def test_a_batch_is_a_function_of_its_iteration_and_draw():
    (task, *_), (same, *_), (other, *_) = (build(seed=seed)[0] for seed in (0, 0, 1))
    wanted = [task.sample(k, draw) for k, draw in ((3, 0), (3, 1), (4, 0))]
    task.report(*(v.detach() for v in point(task)))
    for (k, draw), batch in zip(((3, 0), (3, 1), (4, 0)), wanted, strict=True):
        for again in (task, same):
            for mine, theirs in zip(batch, again.sample(k, draw), strict=True):
                assert torch.equal(mine, theirs)
    distinct = [*wanted, other.sample(3)]
    assert not any(
        one.support.equal(two.support) and one.tasks.equal(two.tasks)
        for one, two in combinations(distinct, 2)
    )


def test_another_draw_takes_other_images_of_the_same_task():
    task = build(pool=1, meta_batch=1)[0][0]
    draws = [[task.sample(k, draw).support for k in range(5)] for draw in (0, 1)]
    assert not all(one.equal(two) for one, two in zip(*draws, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_agents_start_alike_with_heads_of_zero(dtype):
    tasks, _ = build(dtype)
    x, y = tasks[0].start()
    batch = tasks[0].sample(0)
    assert x.dtype == y.dtype == batch.query.dtype == tasks[0].lower(x, y, batch).dtype == dtype
    assert torch.equal(y, torch.zeros(POOL * WAYS * (CHANNELS + 1), dtype=dtype))
    assert all(torch.equal(x, task.start()[0]) for task in tasks)
    assert not torch.equal(x, build(dtype, seed=1)[0][0].start()[0])
    assert float(tasks[0].upper(x, y, batch)) == pytest.approx(np.log(WAYS))


def test_heads_of_zero_pass_no_gradient_on():
    task = build()[0][0]
    x, y = (v.requires_grad_() for v in task.start())
    to_x, to_y = torch.autograd.grad(task.lower(x, y, task.sample(0)), (x, y))
    assert not to_x.any()
    assert to_y.any()


def test_the_start_has_the_spread_of_torch_s_convolutions():
    flat = Backbone((1, 28, 28), 64).initial(np.random.default_rng(0))
    layers = flat.split([9 * 64 + 128, *[9 * 64 * 64 + 128] * 3])
    for layer, inputs in zip(layers, (1, 64, 64, 64), strict=True):
        weights, scale, shift = layer.split([9 * 64 * inputs, 64, 64])
        assert weights.abs().max() <= (9 * inputs) ** -0.5
        assert float(weights.std()) == pytest.approx((27 * inputs) ** -0.5, rel=0.05)
        assert (scale == 1).all()
        assert (shift == 0).all()


@pytest.mark.parametrize(("side", "features"), [(8, 1), (28, 1), (84, 25)])
def test_pooling_stops_at_a_pixel(side, features):
    backbone = Backbone((1, side, side), 3)
    x = backbone.initial(np.random.default_rng(0))
    images = torch.randn(4, 2, 1, side, side, dtype=torch.float64)
    assert backbone(x, images).shape == (2, 4, 3 * features + 1) == (2, 4, backbone.features)


def head_by_hand(features, fit):
    """Fit one head with torch's own SGD."""
    labels = torch.arange(WAYS).repeat_interleave(len(features) // WAYS)
    head = torch.zeros(WAYS, features.shape[1], dtype=features.dtype, requires_grad=True)
    optimiser = torch.optim.SGD([head], lr=fit.step_size, momentum=fit.momentum)
    for _ in range(fit.steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(features @ head.T, labels)
        (loss + fit.regularisation * head.square().sum()).backward()
        optimiser.step()
    return head.detach()


def test_new_heads_are_fitted_as_torch_s_sgd_would():
    fit = Fit(steps=9, step_size=0.3, momentum=0.85, regularisation=0.05)
    features = torch.randn(4, 2 * WAYS, 5, dtype=torch.float64)
    by_hand = torch.stack([head_by_hand(task, fit) for task in features])
    torch.testing.assert_close(fitted_heads(features, WAYS, fit), by_hand)


@pytest.mark.parametrize("part", ["test", "validation"])
def test_report_judges_new_heads_on_the_agent_s_share_of_the_tasks(part):
    tasks, shards = build()
    x, y = (v.detach() for v in point(tasks[0]))
    network, fit = modules(x), Fit(7, 0.1, 0.85, 0.01)
    labels = torch.arange(WAYS).repeat_interleave(TESTED.queries)
    for task, shard in zip(tasks, shards, strict=True):
        right, total = 0, 0.0
        for images in shard[f"{part}_images"]:
            support, query = (
                torch.nn.functional.pad(network(standardised(i, shard)).detach(), (0, 1), value=1.0)
                for i in np.split(images, [TESTED.shots], axis=1)
            )
            outputs = query @ head_by_hand(support, fit).T
            right += int((outputs.argmax(dim=1) == labels).sum())
            total += float(torch.nn.functional.cross_entropy(outputs, labels, reduction="sum"))
        count = len(shard[f"{part}_images"]) * WAYS * TESTED.queries
        report = task.report(x, y)
        assert report[f"{part}_accuracy"] == (100 * right, count)
        assert report[f"{part}_loss"] == (pytest.approx(total), count)


def test_report_has_the_losses_of_the_first_meta_batch():
    task = build()[0][2]
    (x, y), batch = (v.detach() for v in point(task)), task.sample(0)
    report = task.report(x, y)
    assert report["query_loss"] == pytest.approx(float(task.upper(x, y, batch)))
    support, _ = mean_loss(x, y, batch, batch.support)
    assert report["support_loss"] == pytest.approx(float(support))


def test_evaluation_tasks_are_of_held_out_classes_and_the_same_for_any_number_of_agents():
    for part in ("validation", "test"):
        held_out = {
            image.tobytes(): c for c, drawn in enumerate(getattr(DATA, part)) for image in drawn
        }
        alone = build(agents=1)[1][0][f"{part}_images"]
        shares = [shard[f"{part}_images"] for shard in build()[1]]
        assert [len(share) for share in shares] == [2, 2, 1]
        for t, images in enumerate(alone):
            np.testing.assert_array_equal(images, shares[t % AGENTS][t // AGENTS])
            rows = [[held_out[image.tobytes()] for image in way] for way in images]
            assert all(len(set(way)) == 1 for way in rows)
            assert len({way[0] for way in rows}) == WAYS
            assert len({i.tobytes() for i in images.reshape(-1, 60)}) == WAYS * TESTED.images


def test_shards_divide_each_class_evenly_and_can_be_sent_as_they_are():
    _, shards = build()
    everything = np.concatenate(DATA.train).reshape(-1, 2, 30)
    for shard in shards:
        assert shard["counts"].tolist() == [len(images) // AGENTS for images in DATA.train]
        assert class_of(shard["images"]) == list(np.repeat(np.arange(6), shard["counts"]))
        np.testing.assert_allclose(shard["mean"], everything.mean(axis=(0, 2)))
        np.testing.assert_allclose(shard["std"], everything.std(axis=(0, 2)))
        for array in shard.values():
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert array.dtype != object


def test_digits_are_the_default():
    options = {**parameters("task", MetaLearning), "evaluation_tasks": 10, "channels": 4}
    shards = MetaLearning.shards(agents=10, seed=0, **options)
    task = MetaLearning(agent=9, agents=10, seed=0, shard=shards[9], **options)
    assert task.sizes == {"x": 4 * (9 + 2) + 3 * 4 * (36 + 2), "y": 64 * 5 * 5}
    batch = task.sample(0)
    assert batch.support.shape == batch.query.shape == (10, 16, 1, 8, 8)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ways": 1}, "task.ways is 1"),
        ({"ways": 4}, "4 classes cannot be drawn from the 3 test classes"),
        ({"pool": 0}, "task.pool is 0"),
        ({"pool": 100_001}, "task.pool is 100001: .* and at most 100000"),
        ({"shots": 0}, "task.shots is 0"),
        ({"queries": 3}, "3 agents holds 4 of the 12 images of a class, .* 2 support and 3 query"),
        ({"agents": 5}, "5 agents holds 2 of the 12"),
        ({"agents": 4, "evaluation_tasks": 3}, "4 agents cannot share 3 tasks"),
        ({"evaluation_tasks": 1001}, "task.evaluation_tasks is 1001: .* and at most 1000"),
        ({"test_shots": 3}, "has 5 images, and a task takes 3 support and 3 query images"),
        ({"test_queries": 1.5}, "task.test_queries is 1.5"),
    ],
)
def test_impossible_shards_are_refused(options, sentence, monkeypatch):
    monkeypatch.setattr("sundsbo_mpi.tasks.meta_learning.task.load_characters", lambda *_: DATA)
    sizes = {"ways": WAYS, "shots": SHOTS, "queries": QUERIES, "test_shots": 2, "test_queries": 3}
    good = {"agents": AGENTS, "seed": 0, **parameters("task", MetaLearning), **sizes}
    assert len(MetaLearning.shards(**good)) == AGENTS
    with pytest.raises(UsageError, match=sentence) as error:
        MetaLearning.shards(**good | options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [
        {"meta_batch": 1.5},
        {"meta_batch": 1001},
        {"channels": 0},
        {"channels": 1001},
        {"regularisation": -1},
        {"test_steps": 0},
        {"test_steps": 10_001},
        {"test_step_size": float("nan")},
        {"test_momentum": 1.5},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match=f"task.{next(iter(options))} is"):
        build(**options)

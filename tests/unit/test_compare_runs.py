"""Comparing runs: what an iteration costs, who belongs together, what a target takes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from measured_runs import START, configured, without, write

from sundsbo_mpi.compare.cost import cost
from sundsbo_mpi.compare.differences import of_configuration, of_environment
from sundsbo_mpi.compare.environment import environment
from sundsbo_mpi.compare.fairness import remarks
from sundsbo_mpi.compare.groups import group
from sundsbo_mpi.compare.quantities import BYTES, SECONDS, line
from sundsbo_mpi.compare.scaling import scaling
from sundsbo_mpi.compare.targets import Aim, Wish, choose_aim, last, reached
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import TRANSPORT, Event, read_run
from sundsbo_mpi.runfile.schema import LATER_COSTS
from sundsbo_mpi.statistics import Spread, spread


@pytest.fixture
def run(tmp_path):
    """Write a run under the next number and read it."""
    count = iter(range(100))
    return lambda *a, **changes: read_run(write(tmp_path / f"{next(count)}.h5", *a, **changes))


def test_an_iteration_costs_what_was_added_after_the_start(run):
    spent = cost(run(payload=(1000, 2000, 6000), gradient=(0.03, 0.01, 0.08)))
    assert spent.seconds == pytest.approx(0.1)
    assert spent.bytes["payload"] == 3000
    assert spent.bytes["network"] == 750
    assert spent.bytes["shared"] == 0
    assert spent.rounds == 2
    assert spent.phases["gradient"] == pytest.approx(0.04)
    assert spent.phases["evaluation"] == pytest.approx(0.05)
    assert spent.other == pytest.approx(0.1 - 0.04 - 0.01 - 0.04 - 0.01)
    assert spent.slowest == pytest.approx((0.08 + 0.02) / (0.03 + 0.02))
    assert spent.busiest == 3


def test_what_an_earlier_release_did_not_count_is_unknown(tmp_path):
    spent = cost(read_run(without(write(tmp_path / "a.h5"), *LATER_COSTS)))
    assert math.isnan(spent.bytes["control"])
    assert math.isnan(spent.phases["post"])
    assert spent.other == pytest.approx(0.01)
    assert spent.slowest == pytest.approx(1)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_run_that_was_hardly_begun_costs_nothing_known(run, rows):
    spent = cost(run((10.0,) * rows, status="running"))
    assert math.isnan(spent.seconds)
    assert math.isnan(spent.bytes["payload"])
    assert math.isnan(spent.slowest)


def test_seeds_of_one_configuration_stand_together(run):
    runs = [run(seed=seed, seconds=0.1 * (1 + seed)) for seed in (0, 1, 2)]
    other = run(config=configured(algorithm__step_x=0.2))
    first, second = group([runs[0], other, *runs[1:]])
    assert (first.label, first.seeds) == ("1 sun-dsbo-gt, step_x 0.1", (0, 1, 2))
    assert (second.label, second.seeds) == ("2 sun-dsbo-gt, step_x 0.2", (0,))
    seconds = first.spread(lambda one: cost(one).seconds)
    assert seconds == pytest.approx((0.2, 0.1, 3))


CHANGES = [
    {"hosts": ("other1", "other1", "other2")},
    {"hosts": ("node1", "node1", "node1")},
    {"mpi_library": "MPICH Version: 5.0.2"},
    {"transport": "shared"},
    {"version_torch": "2.0"},
    {"topology_sha256": "another"},
    {"config": configured(task__heterogeneity=0.9)},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_another_environment_or_configuration_is_another_group(run, change):
    assert len(group([run(seed=0), run(seed=1, **change)])) == 2


SAME = [
    {"hosts": ("node7", "node7", "node8")},
    {"config": configured(output__file="b.h5", task__data_dir="/elsewhere")},
]


@pytest.mark.parametrize("change", SAME, ids=lambda change: next(iter(change)))
def test_other_nodes_of_the_cluster_and_other_files_are_the_same_group(run, change):
    assert len(group([run(seed=0), run(seed=1, **change)])) == 1


def test_a_seed_that_comes_again_opens_the_next_group(run):
    ours, theirs = ([run(seed=seed) for seed in (0, 1)] for _ in range(2))
    first, second = group([*ours, *theirs])
    assert first.runs == ours
    assert second.runs == theirs


def test_groups_that_only_their_hosts_tell_apart_are_named_by_them(run):
    far = run(hosts=("far1", "far1", "far2"))
    assert [g.label for g in group([run(), far])] == [
        "1 sun-dsbo-gt on node1",
        "2 sun-dsbo-gt on far1",
    ]


def test_the_default_target_is_the_worst_last_value(run):
    runs = [run((10.0, 50.0, 80.0)), run((10.0, 60.0, 70.0)), run((10.0, 60.0, 90.0))]
    aim = choose_aim(runs, Wish())
    assert aim == Aim("test_accuracy", 1, 70.0)
    assert [reached(one, aim).iterations for one in runs] == [20, 20, 20]


def test_runs_that_have_not_ended_do_not_set_the_target(run):
    begun = run((10.0,), status="running")
    assert choose_aim([run(), begun], Wish()).target == 80
    assert choose_aim([begun], Wish()).target == 10


def test_what_it_takes_to_a_target_is_counted_at_the_first_evaluation_that_has_it(run):
    one = run((10.0, 50.0, 40.0), payload=(1000, 2000, 6000))
    found = reached(one, Aim("test_accuracy", 1, 50.0))  # a tie is enough
    assert found == pytest.approx((10, START + 1, 30000 + START))
    assert reached(one, Aim("test_accuracy", 1, 50.1)) is None
    assert last(one, "test_accuracy") == 40


def test_less_of_a_loss_is_better(run):
    runs = [run((9.0, 3.0, 1.0), name="loss"), run((9.0, 2.0, 2.0), name="loss")]
    aim = choose_aim(runs, Wish())
    assert aim == Aim("loss", -1, 2.0)
    assert [reached(one, aim).iterations for one in runs] == [20, 10]


def test_a_metric_of_unknown_direction(run):
    runs = [run((1.0, 2.0, 3.0), name="speed")]
    assert choose_aim(runs, Wish()) is None
    assert choose_aim(runs, Wish(better="lower")) == Aim("speed", -1, 3.0)
    with pytest.raises(UsageError, match=r"'speed' is better: add --better higher or"):
        choose_aim(runs, Wish(target=2.0))


@pytest.mark.parametrize("target", [math.nan, math.inf])
def test_a_target_that_is_no_number(run, target):
    with pytest.raises(UsageError, match="expected a finite number"):
        choose_aim([run()], Wish(target=target))


def test_runs_without_a_common_metric(run):
    runs = [run(), run(name="loss")]
    assert choose_aim(runs, Wish()) is None
    with pytest.raises(UsageError, match="unknown metric of all these runs 'test_accuracy'"):
        choose_aim(runs, Wish(metric="test_accuracy"))


def test_a_value_that_is_not_finite_is_neither_last_nor_reached(run):
    one = run((10.0, 50.0, math.nan))
    assert choose_aim([one], Wish()).target == 50
    assert reached(one, Aim("test_accuracy", 1, 60.0)) is None


def grown(run, agents, seconds, **changes):
    hosts = [f"node{i}" for i in range(agents)]
    same = {"payload": (1000,) * agents, "gradient": (0.03,) * agents, "hosts": hosts}
    return run(seconds=seconds, **same, **changes)


def test_efficiency_is_the_time_with_the_fewest_agents_over_the_time(run):
    runs = [grown(run, 8, 0.4), grown(run, 2, 0.1), grown(run, 4, 0.08)]
    (family,) = scaling(group(runs))
    assert [(step.group.number, step.agents) for step in family] == [(2, 2), (3, 4), (1, 8)]
    assert [step.efficiency for step in family] == pytest.approx([1, 1.25, 0.25])


def test_with_several_smallest_groups_the_fastest_is_the_measure(run):
    ring, star = grown(run, 2, 0.2), grown(run, 2, 0.1, topology_sha256="star")
    (family,) = scaling(group([ring, star, grown(run, 4, 0.2)]))
    assert [step.efficiency for step in family] == pytest.approx([0.5, 1, 0.5])


def test_there_is_no_scaling_between_configurations_or_clusters(run):
    other = configured(algorithm__step_x=0.2)
    assert not scaling(group([grown(run, 2, 0.1), grown(run, 4, 0.1, config=other)]))
    assert not scaling(group([grown(run, 2, 0.1), grown(run, 4, 0.1, mpi_library="MPICH")]))
    assert not scaling(group([grown(run, 2, 0.1), grown(run, 2, 0.1)]))


def test_scaling_where_the_smallest_was_not_timed(run):
    (family,) = scaling(group([grown(run, 2, 0.1, metric=(1.0,)), grown(run, 4, 0.1)]))
    assert all(math.isnan(step.efficiency) for step in family)


def test_only_what_differs_is_listed(run):
    unset = configured(algorithm__x=None)
    groups = group([run(config=unset), run(config=configured(algorithm__step_x=0.2))])
    assert of_configuration(groups) == {"algorithm.step_x": ["0.1", "0.2"]}
    assert of_environment(groups) == {}


def test_the_environments_of_two_clusters(run):
    theirs = {"hosts": ("far1", "far2", "far3"), "mpi_library": "MPICH Version:   5.0.2\nmore"}
    groups = group([run(version_torch="2.1", transport="shared"), run(**theirs)])
    assert of_environment(groups) == {
        "MPI library": ["Open MPI v5.0.11", "MPICH Version: 5.0.2"],
        "torch": ["2.1", "–"],
        "transport": ["shared", "–"],
        "hosts": ["node1, node2", "far1, far2, far3"],
        "ranks per node": ["2 + 1", "1 + 1 + 1"],
    }


def test_a_run_whose_messages_had_to_leave_shared_memory_is_not_one_that_kept_it(run):
    kept = run(transport="shared memory")
    left, left_too = (
        dataclasses.replace(kept, events=(Event(1, TRANSPORT, f"room for {free} bytes"),))
        for free in (0, 1)
    )
    assert environment(kept)["transport"] == "shared memory"
    assert environment(left)["transport"] != "shared memory"
    assert environment(left) == environment(left_too)


UNFAIR = [
    ({"task": "toy"}, "the tasks differ (hyper-cleaning, toy)"),
    ({"dataset": ""}, "the data sets differ (digits, none)"),
    ({"seed": 1, "config": configured(run__x=1)}, "the seeds differ (1: 0; 2: 1)"),
    (
        {"oversubscribed": "10 ranks of a node share 2 cores"},
        "has times that say little: 10 ranks of a node share 2 cores.",
    ),
    ({"status": "running", "metric": (1.0, 2.0)}, "is still running or was killed; 10 of 20"),
    ({"status": "failed"}, "failed; 20 of 20 iterations count"),
    ({}, "groups 1, 2 are of one configuration and environment"),
    ({"status": "interrupted", "metric": ()}, "was interrupted; 0 of 20 iterations count"),
    ({"every": 5, "config": configured(run__eval_every=5)}, "evaluated every 10, 5 iterations"),
    ({"metric": (1.0, 2.0)}, "at different iterations, 10, 20: compare"),
]


@pytest.mark.parametrize(("change", "said"), UNFAIR, ids=[said for _, said in UNFAIR])
def test_what_is_not_fair_is_said(run, change, said):
    fair = [run(), run(config=configured(algorithm__step_x=0.2))]
    aim = Aim("test_accuracy", 1, 50.0)
    assert remarks(group(fair), aim) == []
    found = remarks(group([run(), run(**change)]), aim)
    assert any(said in remark for remark in found), found
    assert all(remark.endswith(".") for remark in found)


def test_a_damaged_configuration_is_compared_all_the_same(run):
    odd = dataclasses.replace(run(), config={"run": 3, "topology": [1], "algorithm": None})
    first, second = group([odd, run()])
    assert of_configuration([first, second])["algorithm.name"] == ["–", "sun-dsbo-gt"]
    assert remarks([first, second], None)


def test_a_line_has_one_unit():
    values = [spread([0.002, 0.004]), spread([0.5]), Spread(math.nan, math.nan, 0), spread([0.02])]
    assert line("time", values, SECONDS) == (
        "time (ms)",
        "3 ± 1.4",
        "500",
        "–",
        "20",
    )
    assert line("time", [spread([v]) for v in (1.0, 1.5, 18034.6)], SECONDS)[3] == "18035"
    assert line("sent", [spread([0.0])], BYTES) == ("sent (B)", "0")
    assert line("rounds", [spread(np.array([2.0, 2.0]))]) == ("rounds", "2")

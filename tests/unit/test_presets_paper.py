"""The settings that the paper prints, as a run is configured with them."""

import pytest

from sundsbo_mpi.config.resolving import Request, resolve

PRINTED = {
    "paper/hyper-cleaning": {
        "sun-dsbo-gt": ([0.03, 0.02, 0.01], {"mu0": 2.0, "p": 0.001, "gamma": 66.6667}),
        "sun-dsbo-se": ([0.03, 0.02, 0.01], {"mu0": 2.0, "p": 0.001, "gamma": 66.6667}),
        "sun-dsbo-ed-gt": ([0.03, 0.02, 0.01], {"mu0": 2.0, "p": 0.001, "gamma": 66.6667}),
        "sparkle-gt": ([0.03, 0.03, 0.03], {"moving_average": 0.2}),
        "sparkle-extra": ([0.03, 0.03, 0.03], {"moving_average": 0.2}),
        "d-soba": ([0.03, 0.03, 0.03], {"moving_average": 0.2}),
        "sldbo": ([0.03, 0.03, 0.03], {}),
        "dsgda-gt": ([0.02, 0.02, 0.01], {"nu": 0.1}),
        "d-psgd": ([], {"step_y": 0.1}),
        "gnsd": ([], {"step_y": 0.1}),
    },
    "paper/hyper-representation": {
        "sun-dsbo-gt": ([0.03, 0.02, 0.01], {"mu0": 2.0, "p": 0.001, "gamma": 50.0}),
        "sun-dsbo-se": ([0.03, 0.02, 0.01], {"mu0": 2.0, "p": 0.001, "gamma": 50.0}),
        "sparkle-gt": ([0.03, 0.03, 0.03], {"moving_average": 0.2}),
        "sparkle-extra": ([0.03, 0.03, 0.03], {"moving_average": 0.2}),
        "d-soba": ([0.03, 0.03, 0.03], {"moving_average": 0.2}),
        "sldbo": ([0.03, 0.03, 0.03], {}),
        "dsgda-gt": ([0.02, 0.02, 0.01], {"nu": 0.1}),
    },
    "paper/hyper-representation-as-run": {
        "sun-dsbo-gt": ([0.1, 0.1, 0.05], {"mu0": 2.0, "p": 0.001, "gamma": 50.0}),
        "sparkle-gt": ([0.03, 0.03, 0.03], {"moving_average": 0.2}),
        "dsgda-gt": ([0.02, 0.02, 0.01], {"nu": 0.1}),
    },
    "paper/hyper-representation-cifar": {
        "sun-dsbo-gt": ([0.05, 0.05, 0.05], {"mu0": 1.0, "p": 0.001, "gamma": 50.0}),
        "sparkle-extra": ([0.1, 0.1, 0.05], {"moving_average": 0.2}),
        "d-soba": ([0.1, 0.1, 0.05], {"moving_average": 0.2}),
        "sldbo": ([0.1, 0.1, 0.05], {}),
    },
    "paper/hyperparameter-synthetic": {
        "sun-dsbo-se": ([0.01, 0.02, 0.03], {"mu0": 1.5, "p": 0.001, "gamma": 0.9}),
        "sun-dsbo-gt": ([0.01, 0.02, 0.03], {"mu0": 1.5, "p": 0.001, "gamma": 0.9}),
    },
    "paper/hyperparameter-mnist": {
        "sun-dsbo-se": ([0.05, 0.1, 0.1], {"mu0": 1.0, "p": 0.001, "gamma": 50.0}),
        "sun-dsbo-gt": ([0.05, 0.1, 0.1], {"mu0": 1.0, "p": 0.001, "gamma": 50.0}),
    },
}
TASKS = {
    "paper/hyper-cleaning": {"alpha": 0.001, "batch": 50, "hidden": 300, "corruption": 0.3},
    "paper/hyper-representation": {"alpha": 0.001, "batch": 30, "hidden": 200, "corruption": 0.0},
    "paper/hyper-representation-as-run": {"alpha": 0.001, "batch": 30, "heterogeneity": 0.5},
    "paper/hyper-representation-cifar": {"dataset": "cifar-10", "batch": 30},
    "paper/hyperparameter-synthetic": {"dataset": "synthetic"},
    "paper/hyperparameter-mnist": {"train": 20_000, "test": 5_000},
}


@pytest.mark.parametrize(("preset", "method"), [(p, m) for p in PRINTED for m in PRINTED[p]])
def test_one_preset_has_the_steps_of_every_method_of_a_table(preset, method):
    config = resolve(Request(flags={"algorithm": {"name": method}}, preset=preset))
    steps, others = PRINTED[preset][method]
    third = "step_theta" if method.startswith("sun") else "step_z"
    expected = dict(zip(("step_x", "step_y", third), steps, strict=False)) | others
    assert {key: config.algorithm[key] for key in expected} == expected
    assert {key: config.task[key] for key in TASKS[preset]} == TASKS[preset]


@pytest.mark.parametrize("preset", PRINTED)
def test_a_preset_alone_runs_sun_dsbo_with_gradient_tracking(preset):
    config = resolve(Request(preset=preset))
    assert config.algorithm["name"] == "sun-dsbo-gt"
    assert preset.startswith(f"paper/{config.task['name']}")

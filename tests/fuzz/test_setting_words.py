"""Whatever a configuration and --set say, they are taken, or refused in a sentence."""

import pytest
from cases import many
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated

from sundsbo_mpi.algorithms import METHODS
from sundsbo_mpi.config import settings as module
from sundsbo_mpi.config.settings import presets

CHEAP = """
[run]
iterations = 20
seed = 3
eval_every = 5
dtype = "float64"

[topology]
file = "ring 10.npz"
undirected = false

[task]
name = "quadratic"
d_x = 3
d_y = 4
heterogeneity = 0.5
noise = 0.1

[algorithm]
name = "sun-dsbo-gt"
step_x = {scale = 0.1, power = 0.5}
step_y = 0.05
gamma = 10.0
estimator = "momentum"

[algorithm."sparkle-*"]
step_x = 0.01

[output]
file = "résumé.h5"
overwrite = true
"""
ROOT = module.resources.files("sundsbo_mpi") / "presets"


@pytest.fixture(scope="module")
def told(settings_jail, tmp_path_factory):
    file = tmp_path_factory.mktemp("settings") / "run.toml"

    def ask(content, sets=()):
        file.write_bytes(content)
        return settings_jail.ask("settings", file=str(file), sets=list(sets))

    return ask


def sound(outcome):
    assert outcome.fault is None, outcome.fault


def test_spoilt_configurations(told, attack):
    files = [CHEAP.encode() for _ in range(8)]
    files += [(ROOT / f"{name}.toml").read_bytes() for name in presets()[:4]]

    def one(rng):
        first, other = (files[i] for i in rng.integers(len(files), size=2))
        return told(mutated(rng, first, other))

    counts = attack(one)
    assert counts["read"] > 0
    assert counts["refused"] > 0


KEYS = st.sampled_from(
    [
        *("run.iterations", "run.seed", "run.eval_every", "run.dtype", "run.max_walltime"),
        *("topology.file", "topology.undirected", "task.name", "task.d_x", "task.noise"),
        *("algorithm.name", "algorithm.step_x", "algorithm.step_y", "algorithm.gamma"),
        *("algorithm.estimator", "algorithm.gossip_steps", "algorithm.compressor"),
        *("algorithm.keep", "algorithm.wire", "output.file", "output.trace"),
    ]
)
VALUES = st.one_of(
    st.sampled_from(
        [
            *("nan", "inf", "-inf", "true", "1e999", "-1", "0", "1e-320", "2024-01-01", "12:00:00"),
            *("9" * 30, "9" * 5000, "0x10", '""', "''", "{}", "[]", "{scale=nan, power=1}"),
            *("{theorem=inf}", "{scale=1e308, power=-1e308}", "[[[[]]]]", '"\\u0000"', "\x00"),
            *("[" * 5000, ".".join("a" * 5000), "{a" + ".a" * 3000 + "=1}", "é", "\n", "../x"),
            *("top-k", "quantiser", "bf16", "momentum", "storm", "float64", "a b.h5"),
        ]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=8),
    st.sampled_from(sorted(METHODS)),
)


@many
@given(st.lists(st.tuples(KEYS, VALUES).map("=".join), min_size=1, max_size=3))
def test_any_setting(told, sets):
    sound(told(CHEAP.encode(), sets))


@many
@given(st.lists(st.text(max_size=12), max_size=2))
def test_any_words(told, sets):
    sound(told(CHEAP.encode(), sets))

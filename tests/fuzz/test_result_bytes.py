"""Whatever a file of results holds, it is shown, or refused in a sentence."""

import pytest
from jail import Outcome
from measured_benches import bench
from measured_runs import write
from mutations import damaged

from sundsbo_mpi.bench.file import write_bench

LOST = 0.02
"""Share of the spoilt files over which the HDF5 library itself may crash or never end."""


@pytest.fixture
def spoil(jail, attack, tmp_path):
    """Spoil a file, and hand it to a subcommand."""

    def spoil(path, command, *arguments, share=1.0):
        whole = path.read_bytes()
        words = [command, str(path), *map(str, arguments)]
        sound = jail.ask("command", arguments=words)
        assert sound.outcome == "read", sound

        def one(rng):
            path.write_bytes(damaged(rng, whole))
            outcome = jail.ask("command", arguments=words)
            inside = (
                outcome.outcome == "died" and "h5py" in outcome.lines[1].partition("sundsbo")[0]
            )
            return Outcome("lost", []) if inside else outcome

        counts = attack(one, share)
        assert counts["refused"] > 0
        assert counts["lost"] <= LOST * sum(counts.values())

    return spoil


def test_spoilt_runs_are_shown(spoil, tmp_path):
    spoil(write(tmp_path / "run.h5"), "show")


def test_spoilt_runs_are_compared(spoil, tmp_path):
    whole = write(tmp_path / "whole.h5", seed=1)
    spoil(write(tmp_path / "run.h5"), "compare", whole, share=0.5)


def test_spoilt_benches_are_compared(spoil, tmp_path):
    for name in ("bench.h5", "whole.h5"):
        write_bench(tmp_path / name, bench())
    spoil(tmp_path / "bench.h5", "compare", tmp_path / "whole.h5", share=0.5)

"""The options that say how messages travel, and the methods and networks that they are for."""

import bench
import pytest
from click.testing import CliRunner

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.algorithms.base import MethodOptions
from sundsbo_mpi.algorithms.sending import require_steady, sending
from sundsbo_mpi.cli.list import command as list_command
from sundsbo_mpi.composition.compression import Compressed
from sundsbo_mpi.composition.compressors import COMPRESSORS
from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.composition.rounding import Rounded
from sundsbo_mpi.errors import UsageError

SPARSE = [name for name, offer in COMPRESSORS.items() if not offer.dense]
DIFFERENCING = ("sun-dsbo-extra", "sun-dsbo-ed", "sun-dsbo-ed-gt", "sparkle-ed", "sparkle-gt-extra")


def sent(method, **options):
    return sending(method, MethodOptions(**options), agents=5, seed=7)


@pytest.mark.parametrize("name", METHODS)
def test_by_default_nothing_is_wrapped(name):
    method = by_default(METHODS[name])
    assert sent(method) is method


def test_compression_is_outside_of_several_rounds():
    found = sent(bench.build("sun-dsbo-gt"), compressor="quantiser", gossip_steps=2)
    assert isinstance(found, Compressed)
    assert isinstance(found.method, MultiStep)
    assert (found.gamma_c, found.seed) == (COMPRESSORS["quantiser"].gamma_c, 7)
    assert sent(bench.build("sun-dsbo-gt"), compressor="top-k", gamma_c=0.2).gamma_c == 0.2
    assert isinstance(sent(bench.build("sun-dsbo-ed"), wire="bf16"), Rounded)


@pytest.mark.parametrize("method", DIFFERENCING)
@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_extra_and_ed_take_only_what_tells_of_every_number(method, compressor):
    built = bench.build(method)
    if compressor in SPARSE:
        with pytest.raises(UsageError, match=f"{compressor} sends a part .*compressor=quantiser"):
            sent(built, compressor=compressor)
        with pytest.raises(UsageError, match="sends a part"):
            sent(built, compressor=compressor, gossip_steps=3)
    else:
        assert isinstance(sent(built, compressor=compressor), Compressed)


def test_a_mix_with_extra_is_judged_by_its_techniques():
    with pytest.raises(UsageError, match="such as EXTRA and ED, diverge"):
        sent(bench.build("sun-dsbo-gt", y="extra"), compressor="top-k")
    sent(bench.build("sun-dsbo-ed", x="gt", y="gt", theta="gt"), compressor="top-k")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"compressor": "zip"}, "zip"),
        ({"wire": "fp8"}, "fp8"),
        ({"wire": "fp16", "compressor": "top-k"}, "a message travels in one form"),
        ({"compressor": "top-k", "gamma_c": 1.5}, "algorithm.gamma_c is 1.5"),
        (
            {"compressor": "top-k", "gamma_c": 0.0},
            "algorithm.gamma_c is 0.0: expected a number above",
        ),
        ({"gamma_c": -0.1}, "algorithm.gamma_c is -0.1"),
        ({"gamma_c": 0.5}, "algorithm.gamma_c is 0.5, but no message is compressed"),
        ({"gamma_c": 0.5, "wire": "bf16"}, "but no message is compressed"),
        ({"bits": 1}, "algorithm.bits is 1"),
        ({"fraction": 0.0}, "algorithm.fraction is 0"),
    ],
)
def test_what_is_no_option_is_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        sent(bench.build("sun-dsbo-gt"), **options)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_checks_the_options_of_compressors(name):
    """Also those whose options have checks of their own."""
    with pytest.raises(UsageError, match=r"algorithm\.bits is 1"):
        METHODS[name].options(bits=1)


def test_the_list_tells_what_each_compressor_heeds():
    listed = CliRunner().invoke(list_command, catch_exceptions=False).output
    assert "quantiser: bits=3, block=512, gamma_c=0.6\n" in listed
    assert "top-k: fraction=0.1, gamma_c=0.3; not where W must be symmetric\n" in listed
    assert all(f"  {name}: " in listed for name in COMPRESSORS)


def test_compression_needs_neighbours_that_stay():
    gt = bench.build("sun-dsbo-gt")
    compressed, rounded = sent(gt, compressor="quantiser"), sent(gt, wire="fp16")
    require_steady(compressed, steady=True)
    for other in (gt, rounded):
        require_steady(other, steady=False)
    with pytest.raises(UsageError, match="the weights change"):
        require_steady(compressed, steady=False)

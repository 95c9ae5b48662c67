"""Compressors one by one: their laws, their bytes, and an oracle that knows nothing of them."""

import math

import numpy as np
import oracle_compressed
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sundsbo_mpi.composition.compressors import COMPRESSORS, Coarseness
from sundsbo_mpi.composition.packing import pack, packed_size, unpack
from sundsbo_mpi.errors import UsageError

LENGTHS = (1, 7, 8, 9, 511, 513, 1500)
COARSE = [
    pytest.param(name, Coarseness(**options), id=f"{name}-{'-'.join(map(str, options.values()))}")
    for name, options in (
        ("quantiser", {"bits": 2, "block": 8}),
        ("quantiser", {"bits": 3, "block": 512}),
        ("quantiser", {"bits": 8, "block": 5}),
        ("top-k", {"fraction": 0.01}),
        ("top-k", {"fraction": 0.1}),
        ("top-k", {"fraction": 1.0}),
        ("random-k", {"fraction": 0.25}),
    )
]
every_compressor = pytest.mark.parametrize(("name", "coarseness"), COARSE)
KEY = (3, 5, 1, 0)


def numbers(d, dtype=torch.float32, salt=0):
    return torch.tensor(np.random.default_rng([d, salt]).standard_normal(d) ** 3, dtype=dtype)


def there_and_back(compressor, v, key=KEY):
    return compressor.decode(compressor.encode(v, key), len(v), key)


def test_every_compressor_is_tried():
    assert {case.values[0] for case in COARSE} == set(COMPRESSORS)


@every_compressor
@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_message_is_the_declared_bytes_and_comes_nearer(name, coarseness, d, dtype):
    compressor = COMPRESSORS[name].build(coarseness)
    v = numbers(d, dtype)
    message = compressor.encode(v, KEY)
    assert (message.dtype, message.shape) == (torch.uint8, (compressor.size(d),))
    Q = compressor.decode(message, d, KEY)
    assert (Q.dtype, Q.shape) == (torch.float32, (d,))
    assert float((v - Q).norm()) < float(v.norm())
    assert torch.equal(message, compressor.encode(v.clone(), KEY)), "not repeatable"


def test_the_bytes_are_those_of_the_formulas():
    d = 1500
    size = {case.id: COMPRESSORS[case.values[0]].build(case.values[1]).size(d) for case in COARSE}
    assert size == {
        "quantiser-2-8": 2 * 188 + 2 * 188,
        "quantiser-3-512": 2 * 3 + 3 * 188,
        "quantiser-8-5": 2 * 300 + 8 * 188,
        "top-k-0.01": 4 * 15 + 2 * 15,
        "top-k-0.1": 188 + 2 * 150,
        "top-k-1.0": 188 + 2 * 1500,
        "random-k-0.25": 2 * 375,
    }
    quantiser = COMPRESSORS["quantiser"].build(Coarseness())
    assert 4 * 512_000 / quantiser.size(512_000) == pytest.approx(10.56, abs=0.01)


@every_compressor
@pytest.mark.parametrize("d", LENGTHS)
def test_a_message_reads_alike_wherever_it_lies(name, coarseness, d):
    """In a buffer of many messages a part may begin at any byte."""
    compressor = COMPRESSORS[name].build(coarseness)
    message = compressor.encode(numbers(d), KEY)
    buffer = torch.zeros(len(message) + 9, dtype=torch.uint8)
    for offset in (1, 2, 3, 9):
        there = buffer[offset : offset + len(message)]
        there.copy_(message)
        once, again = (compressor.decode(m, d, KEY) for m in (message, there))
        assert once.numpy().tobytes() == again.numpy().tobytes()
        assert torch.equal(there, message), "reading changed it"


@every_compressor
def test_what_is_left_of_a_vector_is_sent_by_and_by(name, coarseness):
    compressor = COMPRESSORS[name].build(coarseness)
    v = numbers(300, torch.float64)
    left = v.clone()
    for k in range(400):
        left = left - there_and_back(compressor, left, (3, k, 0, 0))
        if float(left.norm()) < 1e-12 * float(v.norm()):
            return
    pytest.fail(f"{float(left.norm() / v.norm())} is left")


@every_compressor
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_stays_so(name, coarseness, odd):
    compressor = COMPRESSORS[name].build(coarseness)
    for d in (1, 9, 600):
        v = torch.full((d,), odd)
        assert not there_and_back(compressor, v).isfinite().all()
    if name != "random-k":
        v = numbers(600)
        v[17] = odd
        assert not there_and_back(compressor, v)[:512].isfinite().all()


@every_compressor
def test_nothing_is_sent_as_nothing(name, coarseness):
    compressor = COMPRESSORS[name].build(coarseness)
    for d in LENGTHS:
        assert torch.equal(there_and_back(compressor, torch.zeros(d)), torch.zeros(d))


@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize("bits", [2, 3, 5])
@pytest.mark.parametrize("block", [4, 512])
def test_the_quantiser_is_that_of_the_oracle(d, bits, block):
    compressor = COMPRESSORS["quantiser"].build(Coarseness(bits=bits, block=block))
    v = numbers(d, torch.float64)
    want = oracle_compressed.quantiser(bits, block)(v.numpy()[None])[0]
    np.testing.assert_array_equal(there_and_back(compressor, v).numpy(), want)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 1.0])
def test_the_largest_are_those_of_the_oracle(fraction):
    compressor = COMPRESSORS["top-k"].build(Coarseness(fraction=fraction))
    v = numbers(1000, torch.float64)
    want = oracle_compressed.top_k(fraction)(v.numpy()[None])[0]
    np.testing.assert_array_equal(there_and_back(compressor, v).numpy(), want)


def test_what_is_drawn_follows_the_whole_key():
    compressor = COMPRESSORS["random-k"].build(Coarseness(fraction=0.1))
    v = numbers(200)
    keys = (KEY, (4, 5, 1, 0), (3, 6, 1, 0), (3, 5, 2, 0), (3, 5, 1, 1))
    drawn = {tuple(there_and_back(compressor, v, key).nonzero()[:, 0].tolist()) for key in keys}
    assert len(drawn) == len(keys)


@given(st.lists(st.integers(0, 255), min_size=1, max_size=70), st.integers(1, 8))
def test_codes_survive_packing(codes, bits):
    codes = torch.tensor(codes, dtype=torch.uint8) & (2**bits - 1)
    packed = pack(codes, bits)
    assert len(packed) == packed_size(len(codes), bits) == bits * math.ceil(len(codes) / 8)
    assert torch.equal(unpack(packed, len(codes), bits), codes)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bits": 1}, "algorithm.bits is 1: expected an integer of at least 2 and at most 8"),
        ({"bits": 9}, "algorithm.bits is 9"),
        ({"block": 0}, "algorithm.block is 0"),
        ({"fraction": 0.0}, "algorithm.fraction is 0.0: expected a number above 0"),
        ({"fraction": 1.5}, "algorithm.fraction is 1.5"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        Coarseness(**options)

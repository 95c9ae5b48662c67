"""The cores of a rank as text, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundsbo_mpi.bench.core_ranges import PATTERN, read, written


@pytest.mark.parametrize(
    ("cores", "text"), [({0, 1, 2, 3, 8}, "0-3,8"), ({5}, "5"), (set(), ""), ({1, 0, 3}, "0-1,3")]
)
def test_cores_are_written_as_ranges(cores, text):
    assert written(cores) == text


@given(st.sets(st.integers(0, 300)))
def test_what_is_written_is_read(cores):
    text = written(cores)
    assert PATTERN.fullmatch(text)
    assert read(text) == cores


@pytest.mark.parametrize("text", ["-1", "0-", "a", "0,,1", "0-1-2", " 0"])
def test_other_text_is_told_apart(text):
    assert not PATTERN.fullmatch(text)

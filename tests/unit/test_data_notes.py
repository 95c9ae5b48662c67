"""Notes of data are collected, and other warnings are not lost."""

import warnings

import pytest

from sundsbo_mpi.data_notes import noted
from sundsbo_mpi.errors import DataNote


def say(notes, trouble=None):
    with notes as kept:
        for sentence in ("b", "a", "b"):
            warnings.warn(sentence, DataNote, stacklevel=2)
        warnings.warn("something else", RuntimeWarning, stacklevel=2)
        assert kept == []
        if trouble is not None:
            raise trouble
    return kept


def test_each_note_is_kept_once_in_order_and_others_go_their_way():
    with pytest.warns(RuntimeWarning, match="something else") as others:
        assert say(noted()) == ["b", "a"]
    assert [w.category for w in others] == [RuntimeWarning]


def test_others_are_not_lost_where_the_block_fails():
    with pytest.warns(RuntimeWarning, match="something else"):  # noqa: SIM117
        with pytest.raises(KeyError):
            say(noted(), KeyError())

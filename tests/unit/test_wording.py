"""Words that are told in several places."""

import errno
import os

import pytest

from sundsbo_mpi.errors import reason
from sundsbo_mpi.wording import number_of, resuming


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "h5py's own words, path and number"), os.strerror(errno.ENOSPC)),
        (OSError("no number.\n  On two lines."), "no number. On two lines"),
        (KeyError("source"), "lacks 'source'"),
        (KeyError("Unable to open object (object 'rows' doesn't exist)"), "Unable to open object "),
        (KeyError(), "KeyError"),
        (ValueError(""), "ValueError"),
        (ValueError("odd."), "odd"),
    ],
)
def test_what_an_exception_says_ends_no_sentence(error, said):
    assert reason(error).startswith(said)
    assert not reason(error).endswith(".")
    assert len(reason(error).splitlines()) == 1


def test_numbers_of_things():
    assert [number_of(n, "rank") for n in (0, 1, 2)] == ["0 ranks", "1 rank", "2 ranks"]


def test_the_command_that_goes_on():
    assert resuming("my run", 3, enduring=False) == "mpirun -n 3 sundsbo-mpi resume 'my run'"
    assert resuming("c", 3, enduring=True) == "mpirun -n 3 --with-ft ulfm sundsbo-mpi resume c"
    assert resuming("c", 1, enduring=True) == "sundsbo-mpi resume c"

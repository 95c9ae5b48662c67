"""MatrixMarket files mean what SciPy's reader takes them to mean."""

import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sundsbo_mpi.topology.matrixmarket import read_mtx

BANNER = "%%MatrixMarket matrix coordinate real general\n"


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(0, 10**6),
    st.sampled_from(["general", "symmetric"]),
    st.sampled_from(["real", "integer", "pattern"]),
    st.booleans(),
    st.sampled_from([b"\n", b"\r\n", b" \n\n"]),
)
def test_every_kind_is_read_as_scipy_does(rows, columns, seed, symmetry, field, sparse, end):
    if symmetry == "symmetric":
        columns = rows
    matrix = sp.random_array((rows, columns), density=0.5, rng=np.random.default_rng(seed))
    matrix = matrix + matrix.T if symmetry == "symmetric" else matrix
    matrix = matrix if field == "real" else (10 * matrix).astype(int)
    buffer = io.BytesIO()
    scipy.io.mmwrite(
        buffer,
        matrix.tocoo() if sparse or field == "pattern" else matrix.toarray(),
        comment="a comment\n\n3 3 3",
        field=field,
        symmetry=symmetry,
        precision=17,
    )
    content = buffer.getvalue().replace(b"\n", end)
    expected = scipy.io.mmread(io.BytesIO(buffer.getvalue()))
    found = read_mtx(content)
    assert sp.issparse(found) == sp.issparse(expected)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(dense(found), dense(expected))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("%%MatrixMarket matrix\n1 1 0\n", "no banner"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", "complex general"),
        ("%%MatrixMarket matrix array real hermitian\n1 1\n1\n", "real hermitian"),
        ("%%MatrixMarket matrix array real symmetric\n2 3\n1\n", "symmetric with 2 rows and 3"),
        ("%%MatrixMarket matrix array real general\n1 1 1\n1\n", "sizes are missing"),
        (BANNER + "% only\n", "sizes are missing"),
        (BANNER + "2 2\n1 1 1\n", "sizes are missing"),
        (BANNER + "2 2 1\n1 1\n", "holds 2 numbers where its sizes need 3"),
        (BANNER + "2 2 1\n1 1 1 1\n", "holds 4 numbers where its sizes need 3"),
        (BANNER + "2 2 1\n1 1 a\n", "no numbers"),
        (BANNER + "2 2 1\n1 1 1 % last\n", "no numbers"),
        (BANNER + "2 2 1\n0 1 1\n", "outside its 2 rows and 2 columns"),
        (BANNER + "2 2 1\n1 3 1\n", "outside its 2 rows and 2 columns"),
        (BANNER + "2 2 1\n1.5 1 1\n", "outside its 2 rows and 2 columns"),
        (BANNER + "2 2 1\nnan 1 1\n", "outside its 2 rows and 2 columns"),
        (BANNER + "9 9 999999999999999999\n1 1 1\n", "numbers in 6 bytes"),
    ],
)
def test_what_is_none_is_refused(content, words):
    with pytest.raises(ValueError, match=words):
        read_mtx(content.encode())


def test_nothing_is_read_into_an_empty_matrix():
    found = read_mtx((BANNER + "3 3 0").encode())
    assert (found.shape, found.nnz) == ((3, 3), 0)

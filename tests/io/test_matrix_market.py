"""Matrix Market: SciPy reads it, and what SciPy would pass over is refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from matchwood.errors import FileFormatError
from matchwood.io.formats import matrix_market
from matchwood.io.text import Text
from support import THREADS

REAL = "%%MatrixMarket matrix coordinate real general\n"


def parse(content: str | bytes, strict: bool = True, threads: int | None = None) -> sp.csr_array:
    data = content.encode() if isinstance(content, str) else content
    A = matrix_market.read(Text.of("a.mtx", data), strict=strict, threads=threads)
    return matrix_market.as_sparse(A)


def test_kinds() -> None:
    for threads in THREADS:

        def read(banner: str, rest: str, threads: int = threads) -> sp.csr_array:
            return parse(f"%%MatrixMarket matrix {banner}\n% comment\n\n{rest}", threads=threads)

        A = read("coordinate real general", "2 3 2\n1 3 0.5\n\n2 1 -1e-3\n")
        assert A.toarray().tolist() == [[0, 0, 0.5], [-1e-3, 0, 0]]
        assert isinstance(A, sp.csr_array)
        A = read("coordinate pattern symmetric", "2 2 2\n1 1\n2 1\n")
        assert A.toarray().tolist() == [[1, 1], [1, 0]]
        A = read("coordinate integer skew-symmetric", "2 2 1\n2 1 9007199254740993\n")
        assert A.dtype == np.int64
        assert A[1, 0] == 9007199254740993
        assert A[0, 1] == -9007199254740993
        A = read("coordinate complex hermitian", "2 2 1\n2 1 1 -2\n")
        assert A[0, 1] == 1 + 2j
        A = read("array real general", "2 2\n1\n0\n3\n4\n")
        assert A.toarray().tolist() == [[1, 3], [0, 4]]
        assert A.nnz == 4, "a dense matrix stores every entry"
        assert A.indices.dtype == np.int32
        A = read("array integer symmetric", "2 2\n1\n2\n3\n")
        assert A.toarray().tolist() == [[1, 2], [2, 3]]
        A = read("coordinate real general", "2 2 3\n1 1 1\n1 1 2\n2 2 0\n")
        assert A.nnz == 2, "duplicates are added up, stored zeros stay"
        A = read("coordinate real general", "1 1 1\n1 1 NaN\n")
        assert np.isnan(A[0, 0])
        A = read("coordinate real general", "2 1 2\n1 1 -inf\n2 1 INF\n")
        assert A.toarray().tolist() == [[-np.inf], [np.inf]]
        assert read("coordinate real general", "0 0 0\n").shape == (0, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'"),
        ("1 2 3\n", "line 1: expected '%%MatrixMarket"),
        ("%%MatrixMarket matrix coordinate real\n", "line 1: expected '%%MatrixMarket"),
        ("%%MatrixMarket matrix coordinate real odd\n", "line 1: expected '%%MatrixMarket"),
        (REAL, "line 1: the file ends before the line with its sizes"),
        (REAL + "3 3\n", "line 2: expected rows, columns and entries, got '3 3'"),
        (REAL + "3 3 x\n", "line 2: expected rows, columns and entries"),
        (REAL + "-3 3 1\n1 1 1\n", "line 2: expected rows, columns and entries"),
        (REAL + "3 3 2\n1 1 2.5\n", "line 3: the file is cut off: 2 entries declared, 1 found"),
        (REAL + "3 3 99999999999999\n1 1 2.5\n", "line 3: the file is cut off"),
        (REAL + "3 3 1\n1 1 2\n1 2 3\n", "line 4: there are more than that: 1 entries declared, 2"),
        (REAL + "3 3 1\n1 1 2,5\n", "line 3: expected a number, got '2,5'"),
        (REAL + "3 3 1\n1 1 2.5x\n", "line 3: expected a number, got '2.5x'"),
        (REAL + "3 3 1\n1 1 2.5 7\n", "line 3: expected 3 fields, got 4"),
        (REAL + "3 3 1\n1 1\n", "line 3: expected 3 fields, got 2"),
        (REAL + "3 3 1\n1 1 1e999\n", "line 3: the number '1e999' is too large"),
        (REAL + "3 3 1\n1 1 infinite\n", "line 3: expected a number"),
        (REAL + "3 3 1\n1.0 1 1\n", "line 3: expected a whole number, got '1.0'"),
        (REAL + "3 3 1\n0 1 1\n", "line 3: Row index out of bounds"),
        (REAL + "3 3 1\n1 4 1\n", "line 3: Column index out of bounds"),
        (REAL + "3 3 1\n1 -1 1\n", "line 3: Column index out of bounds"),
        (REAL + "3 3 1\n% late\n1 1 1\n", "line 3: expected a whole number, got '%'"),
        (REAL + "3 3 1\n1 1 2.5", "line 3: the file ends without a newline"),
        (REAL.replace("real", "integer") + "3 3 1\n1 1 3.7\n", "line 3: expected a whole number"),
        (
            REAL.replace("real", "integer") + "3 3 1\n1 1 99999999999999999999\n",
            "line 3: Integer out",
        ),
        (REAL.replace("real", "pattern") + "3 3 1\n1 1 3.7\n", "line 3: expected 2 fields, got 3"),
        (
            REAL.replace("general", "symmetric") + "3 4 1\n1 1 1\n",
            "line 2: a symmetric matrix must",
        ),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "line 5: the file is cut off"),
        ("%%MatrixMarket matrix array real general\n2 2\n1 2\n3 4\n", "line 3: expected 1 fields"),
    ],
)
def test_malformed(content: str, message: str) -> None:
    for threads in THREADS:
        with pytest.raises(FileFormatError, match=message):
            parse(content, threads=threads)


def test_complex_to_real(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    matchwood.io.write(path, np.array([[1 + 0j, 2], [0, 3]]))
    assert matchwood.io.read(path).dtype == np.complex128
    assert matchwood.io.read(path, dtype=np.float64).toarray().tolist() == [[1, 2], [0, 3]]
    matchwood.io.write(path, np.array([[1 + 1j]]))
    with pytest.raises(ValueError, match="dtype float64 cannot hold the weight"):
        matchwood.io.read(path, dtype=np.float64)


def test_not_strict() -> None:
    assert parse(REAL + "3 3 1\n1 1 2.5", strict=False).nnz == 1


@given(st.binary(max_size=40), st.integers(1, 3))
def test_any_bytes_give_a_matrix_or_an_error(body: bytes, threads: int) -> None:
    for head in (b"", REAL.encode(), REAL.encode() + b"2 2 1\n"):
        with contextlib.suppress(FileFormatError):
            parse(head + body, threads=threads)

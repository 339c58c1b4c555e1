"""METIS, hMETIS and graph-txt: a line for each vertex or net."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood.errors import FileFormatError
from matchwood.io.formats.adjacency import (
    HmetisFile,
    MetisFile,
    read_graph_txt,
    read_hmetis_text,
    read_metis_text,
)
from matchwood.io.text import Text
from support import THREADS


def parse_metis(content: str, strict: bool = True, threads: int | None = None) -> MetisFile:
    return read_metis_text(Text.of("a.graph", content.encode()), strict=strict, threads=threads)


def parse_hmetis(content: str, strict: bool = True, threads: int | None = None) -> HmetisFile:
    return read_hmetis_text(Text.of("a.hgr", content.encode()), strict=strict, threads=threads)


def parse_txt(content: str, strict: bool = True, threads: int | None = None) -> sp.csr_array:
    return read_graph_txt(Text.of("a.graph-txt", content.encode()), strict=strict, threads=threads)


# The graph of figure 2 in the METIS manual, with and without its weights
MANUAL = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n"
MANUAL_EDGE_WEIGHTS = (
    "7 11 001\n5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n"
    "1 1 3 3 6 2\n5 2 4 2 7 6\n6 6 4 5\n"
)


def test_metis_manual() -> None:
    for threads in THREADS:
        A, weights, sizes = parse_metis(MANUAL, threads=threads)
        assert A.shape == (7, 7)
        assert A.nnz == 22
        assert A.indices[: A.indptr[1]].tolist() == [1, 2, 4]
        assert A.has_canonical_format
        assert A.indices.dtype == np.int32
        assert weights is None
        assert sizes is None
        B = parse_metis(MANUAL_EDGE_WEIGHTS, threads=threads).matrix
        assert (B != B.T).nnz == 0
        assert B[3, 6] == 5
        assert np.array_equal(A.indices, B.indices)


def test_metis_vertex_weights_and_sizes() -> None:
    for threads in THREADS:
        A, weights, sizes = parse_metis("2 1 010\n7 2\n8 1\n", threads=threads)
        assert A.toarray().tolist() == [[0, 1], [1, 0]]
        assert weights is not None
        assert weights.tolist() == [[7], [8]]
        A, weights, sizes = parse_metis("2 1 111 2\n5 1 2 2 9.5\n6 3 4 1 9.5\n", threads=threads)
        assert A.toarray().tolist() == [[0, 9.5], [9.5, 0]]
        assert weights is not None
        assert sizes is not None
        assert weights.tolist() == [[1, 2], [3, 4]]
        assert sizes.tolist() == [5, 6]
        _, weights, sizes = parse_metis("1 0 100\n3\n")
        assert weights is None
        assert sizes is not None
        assert sizes.tolist() == [3]


def test_metis_comments_and_isolated_vertices() -> None:
    for threads in THREADS:
        content = "% head\n4 1\n% first\n\n3\n%%\n2\n\n% tail\n\n"
        A = parse_metis(content, threads=threads).matrix
        assert A.shape == (4, 4)
        assert A.tocoo().row.tolist() == [1, 2]
        assert parse_metis("0 0\n").matrix.shape == (0, 0)
        assert parse_metis("2 0\n\n\n").matrix.shape == (2, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected the numbers of vertices and edges"),
        ("% nothing\n", "line 1: expected the numbers"),
        ("7\n", "line 1: expected the numbers"),
        ("x y\n", "line 1: expected the numbers"),
        ("1 1 1 1 1\n", "line 1: expected the numbers"),
        ("2 1 002\n2\n1\n", "line 1: expected fmt of three digits 0 or 1, got 2"),
        ("2 1 010 0\n2\n1\n", "line 1: fmt announces vertex weights, but ncon is 0"),
        ("2 1 010 99999999\n2\n1\n", "line 1: no line can hold 99999999 weights"),
        ("2 1\n2\n", "line 2: the file is cut off: 2 lines declared, 1 found"),
        ("9999999999 1\n2\n", "line 2: the file is cut off"),
        ("2 2\n2\n1\n", "line 3: the file is cut off: 4 neighbours .* declared, 2 found"),
        ("2 1\n2 2\n1\n", "line 3: there are more than that: 2 neighbours .* declared, 3 found"),
        ("2 1\n2\n1\n1\n", "line 4: the 2 lines declared end before this one"),
        ("2 1\n2\nx\n", "line 3: expected a whole number, got 'x'"),
        ("2 1\n2\n0\n", "line 3: expected a vertex from 1 to 2, got '0'"),
        ("2 1\n3\n1\n", "line 2: expected a vertex from 1 to 2, got '3'"),
        ("2 1 1\n2 5\n1\n", "line 3: expected pairs of vertex and weight, got 1 fields"),
        ("2 1 1\n2 5\n1 x\n", "line 3: expected a number, got 'x'"),
        ("2 1 1\n2 5\n1 1e400\n", "line 3: the number '1e400' is too large"),
        ("2 1 10\n7 2\n\n", "line 3: expected 1 numbers and then vertices, got 0 fields"),
        ("2 1 10\n7 2\ny 1\n", "line 3: expected a number, got 'y'"),
        ("3 1\n2\n3\n\n", "line 2: vertex 1 has neighbour 2, which does not have it"),
        ("2 1 1\n2 5\n1 6\n", "line 2: vertex 1 and its neighbour 2 give their edge different"),
        ("2 1\n1\n2\n", "line 2: vertex 1 is its own neighbour"),
        ("2 2\n2 2\n1 1\n", "line 2: vertex 1 has a neighbour twice"),
        ("2 1\n2\n1", "line 3: the file ends without a newline"),
    ],
)
def test_metis_malformed(content: str, message: str) -> None:
    for threads in THREADS:
        with pytest.raises(FileFormatError, match=message):
            parse_metis(content, threads=threads)


def test_metis_not_strict() -> None:
    A = parse_metis("3 9\n2 3 1\n1", strict=False).matrix
    assert A.toarray().tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]


def test_hmetis() -> None:
    for threads in THREADS:
        A, weights = parse_hmetis("% c\n4 7\n1 2\n1 7 5 6\n5 6 4\n2 3 4\n", threads=threads)
        assert A.shape == (4, 7)
        assert A.nnz == 12
        assert weights is None
        A, weights = parse_hmetis("2 3 11\n5 1 2\n% c\n6 3\n7\n8\n% c\n9\n", threads=threads)
        assert A.toarray().tolist() == [[5, 5, 0], [0, 0, 6]]
        assert weights is not None
        assert weights.tolist() == [7, 8, 9]
        A, weights = parse_hmetis("1 2 10\n2\n7\n8\n", threads=threads)
        assert A.toarray().tolist() == [[0, 1]]
        assert weights is not None
        assert weights.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("4\n", "line 1: expected the numbers of nets and vertices"),
        ("1 2 7\n1\n", "line 1: expected fmt 0, 1, 10 or 11, got 7"),
        ("2 2\n1 2\n", "line 2: the file is cut off: 2 lines declared, 1 found"),
        ("1 2\n1 3\n", "line 2: expected a vertex from 1 to 2, got '3'"),
        ("2 2\n1 2\n\n", "line 3: net 2 has no vertices"),
        ("1 2\n1 1\n", "line 2: net 1 has a vertex twice"),
        ("1 2\n1 2\n2\n", "line 3: the 1 lines declared end before this one"),
        ("1 2 10\n1 2\n7\n", "line 3: the file is cut off"),
        ("1 2 10\n1 2\n7\nx\n", "line 4: expected a number, got 'x'"),
        ("1 2 10\n1 2\n7\n8 9\n", "line 4: expected a vertex"),
        ("1 2\n1 2", "line 2: the file ends without a newline"),
    ],
)
def test_hmetis_malformed(content: str, message: str) -> None:
    for threads in THREADS:
        with pytest.raises(FileFormatError, match=message):
            parse_hmetis(content, threads=threads)


def test_graph_txt() -> None:
    for threads in THREADS:
        A = parse_txt("4\n1 2\n\n0\n0 1 2 3 \n", threads=threads)
        assert A.toarray().tolist() == [[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]]
        assert parse_txt("2\n1 0 1\n\n").toarray().tolist() == [[1, 1], [0, 0]], "sorted, each once"
        assert parse_txt("0\n").shape == (0, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected the number of vertices"),
        ("2 3\n", "line 1: expected the number of vertices, got '2 3'"),
        ("2\n1\n", "line 2: the file is cut off: 2 lines declared, 1 found"),
        ("2\n1\n2\n", "line 3: expected a vertex from 0 to 1, got '2'"),
        ("2\n1\n# no comments here\n", "line 3: expected a whole number, got '#'"),
        ("2\n1\n0\n1\n", "line 4: the 2 lines declared end before this one"),
        ("2\n1\n0", "line 3: the file ends without a newline"),
    ],
)
def test_graph_txt_malformed(content: str, message: str) -> None:
    for threads in THREADS:
        with pytest.raises(FileFormatError, match=message):
            parse_txt(content, threads=threads)


def test_large_rows_at_any_number_of_threads() -> None:
    """Rows much longer than a member's share, and many empty ones."""
    rng = np.random.default_rng(3)
    A = sp.random_array((300, 300), density=0.05, rng=rng, format="csr")
    A = sp.csr_array(A + A.T)
    star = np.zeros((300, 300))
    star[7, :7] = star[:7, 7] = star[7, 8:] = star[8:, 7] = 1
    A = sp.csr_array((A.toarray() + star) != 0, dtype=float)
    A.setdiag(0)
    A.eliminate_zeros()
    rows = np.split(A.indices + 1, A.indptr[1:-1])
    lines = [" ".join(map(str, row.tolist())) for row in rows]
    content = f"300 {A.nnz // 2}\n" + "\n".join(lines) + "\n"
    for threads in THREADS:
        assert (parse_metis(content, threads=threads).matrix != A).nnz == 0


def test_public_readers(tmp_path: Path) -> None:
    path = tmp_path / "a.graph"
    path.write_text("2 1 010\n7 2\n9 1\n")
    weights = matchwood.io.read_metis(path).vertex_weights
    assert weights is not None
    assert weights.tolist() == [[7], [9]]
    assert matchwood.io.read(path).nnz == 2
    path = tmp_path / "a.hgr"
    path.write_text("1 2 10\n2\n7\n8\n")
    assert matchwood.io.read_hmetis(path).matrix.shape == matchwood.io.read(path).shape == (1, 2)

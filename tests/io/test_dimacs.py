"""The DIMACS formats: .gr, .max, .col, .clq, .co."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchwood
from matchwood.errors import FileFormatError
from matchwood.io.formats import dimacs
from matchwood.io.text import Text
from support import THREADS


def parse(
    content: str, kind: str, *, strict: bool = True, threads: int | None = None
) -> dimacs.DimacsFile:
    text = Text.of(f"a.{kind}", content.encode())
    return dimacs.read(text, dimacs.KINDS[kind], None, strict=strict, threads=threads)


def test_gr() -> None:
    for threads in THREADS:
        content = "c roads\np sp 3 4\nc more\na 1 2 5\na 2 1 7\n\na 1 2 3\nc\na 3 3 0\nc end\n"
        A = parse(content, "gr", threads=threads).matrix
        assert A.toarray().tolist() == [[0, 3, 0], [7, 0, 0], [0, 0, 0]], "the shorter of two arcs"
        assert A.nnz == 3, "a stored zero stays"
        assert parse("p sp 5 0\n", "gr").matrix.shape == (5, 5)


def test_col() -> None:
    for threads in THREADS:
        content = "c\np edge 4 3\nn 2 9\ne 1 2\ne 2 1\ne 3 2\nn 4 8\n"
        A, weights, source, sink = parse(content, "col", threads=threads)
        assert A.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
        assert weights is not None
        assert weights.tolist() == [0, 9, 0, 8]
        assert source is None
        assert sink is None
        assert parse("p col 2 1\nd DIM 2\nv 1 0.5\nx SIDE 1\ne 1 2\n", "col").vertex_weights is None


def test_max() -> None:
    for threads in THREADS:
        content = "p max 4 3\nn 1 s\nn 4 t\na 1 2 5\na 2 4 3\na 2 4 4\n"
        A, _, source, sink = parse(content, "max", threads=threads)
        assert A[1, 3] == 7, "capacities of parallel arcs add up"
        assert (source, sink) == (0, 3)


def test_by_name_and_duplicates(tmp_path: Path) -> None:
    for suffix in (".col", ".clq", ".COL"):
        path = tmp_path / f"a{suffix}"
        path.write_text("p edge 2 1\ne 1 2\n")
        assert matchwood.io.read(path).toarray().tolist() == [[0, 1], [1, 0]]
        assert matchwood.io.read_dimacs(path).vertex_weights is None
    path = tmp_path / "a.gr"
    path.write_text("p sp 2 2\na 1 2 5\na 1 2 7\n")
    for duplicates, value in {None: 5, "sum": 12, "max": 7, "first": 5}.items():
        assert matchwood.io.read(path, duplicates=duplicates)[0, 1] == value
    assert matchwood.io.read_dimacs(path).matrix[0, 1] == 5
    assert matchwood.io.read_dimacs(path, format="gr").matrix[0, 1] == 5
    with pytest.raises(ValueError, match="read_dimacs: format must be one of"):
        matchwood.io.read_dimacs(tmp_path / "a.mtx")


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("gr", "", "line 1: there is no problem line"),
        ("gr", "c only\nc this\n", "line 2: there is no problem line"),
        ("gr", "a 1 2 3\n", "line 1: expected the problem line, p ..., got 'a 1 2 3'"),
        ("gr", "p edge 2 1\ne 1 2\n", "line 1: expected 'p sp VERTICES EDGES', got 'p edge 2 1'"),
        ("gr", "p sp 2\n", "line 1: expected 'p sp"),
        ("gr", "p sp two 1\n", "line 1: expected 'p sp"),
        ("gr", "p sp 2 2\na 1 2 3\n", "line 2: the file is cut off: 2 edges declared, 1 found"),
        ("gr", "p sp 2 1\na 1 2 3\na 2 1 3\n", "line 3: there are more than that"),
        ("gr", "p sp 2 1\na 1 3 3\n", "line 2: expected a vertex from 1 to 2, got '3'"),
        ("gr", "p sp 2 1\na 0 1 3\n", "line 2: expected a vertex from 1 to 2, got '0'"),
        ("gr", "p sp 2 1\na 1 2\n", "line 2: expected 3 fields, got 2"),
        ("gr", "p sp 2 1\na 1 2 3 4\n", "line 2: expected 3 fields, got 4"),
        ("gr", "p sp 2 1\na\n", "line 2: expected 3 fields, got 0"),
        ("gr", "p sp 2 1\na 1 2 x\n", "line 2: expected a number, got 'x'"),
        ("gr", "p sp 2 1\ne 1 2 3\n", "line 2: expected a line that starts with 'a', got 'e'"),
        ("gr", "p sp 2 1\na1 2 3\n", "line 2: expected a line that starts with 'a', got 'a1'"),
        ("gr", "p sp 2 1\n1 2 3\n", "line 2: expected a line that starts with 'a', got '1'"),
        ("gr", "p sp 2 1\nn 1 2\na 1 2 3\n", "line 2: expected a line that starts with 'a'"),
        ("gr", "p sp 2 1\np sp 2 1\na 1 2 3\n", "line 2: expected a line that starts with 'a'"),
        ("gr", "p sp 2 1\na 1 2 3", "line 2: the file ends without a newline"),
        ("col", "p edge 2 1\ne 1 2 3\n", "line 2: expected 2 fields, got 3"),
        ("col", "p edge 2 1\nn 1 x\ne 1 2\n", "line 2: expected a number, got 'x'"),
        ("col", "p edge 2 1\nn 3 1\ne 1 2\n", "line 2: expected a vertex from 1 to 2"),
        ("max", "p max 2 1\nn 1 x\na 1 2 3\n", "line 2: expected one source"),
        ("max", "p max 2 1\nn 1 s\nn 2 s\na 1 2 3\n", "line 3: expected one source"),
        ("max", "p max 2 1\nn 3 s\na 1 2 3\n", "line 2: expected one source"),
        ("max", "p max 2 1\na 1 2 3\n nothing\n", "line 3: expected one source"),
        ("col", "p edge 2 1\ne 1 2\n nothing\n", "line 3: expected a line that starts with 'n'"),
    ],
)
def test_malformed(kind: str, content: str, message: str) -> None:
    for threads in THREADS:
        with pytest.raises(FileFormatError, match=message):
            parse(content, kind, threads=threads)


def test_not_strict() -> None:
    assert parse("p sp 2 9\na 1 2 3", "gr", strict=False).matrix.nnz == 1


def test_coordinates(tmp_path: Path) -> None:
    for threads in THREADS:
        path = tmp_path / "a.co"
        path.write_text("c\np aux sp co 3\nc\nv 2 -7 8\nv 1 5 -6\nv 3 0.5 1e2\n")
        points = matchwood.io.read_coordinates(path, threads=threads)
        assert points.tolist() == [[5, -6], [-7, 8], [0.5, 100]]
        A = matchwood.io.read(path, threads=threads)
        assert A.shape == (3, 2)
        assert A.nnz == 6
        assert A.toarray().tolist() == points.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("p sp 2 1\nv 1 2 3\n", "line 1: expected 'p aux sp co VERTICES'"),
        ("p aux sp co 2\nv 1 2 3\n", "line 2: the file is cut off: 2 vertices declared, 1 found"),
        ("p aux sp co 2\nv 1 2 3\nv 1 2 3\n", "line 3: vertex 1 has more than one line"),
        ("p aux sp co 1\nv 2 2 3\n", "line 2: expected a vertex from 1 to 1, got '2'"),
        ("p aux sp co 1\nv 1 2\n", "line 2: expected 3 fields, got 2"),
        ("p aux sp co 1\nv 1 2 x\n", "line 2: expected a number, got 'x'"),
        ("p aux sp co 1\nv 1 2 3", "line 2: the file ends without a newline"),
    ],
)
def test_coordinates_malformed(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.co"
    path.write_text(content)
    with pytest.raises(FileFormatError, match=message):
        matchwood.io.read_coordinates(path)


def test_coordinates_of_other_files(tmp_path: Path) -> None:
    path = tmp_path / "points.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
    assert matchwood.io.read_coordinates(path).tolist() == [[1, 3], [2, 4]]
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 5\n")
    assert matchwood.io.read_coordinates(path).tolist() == [[0, 5], [0, 0]]
    with pytest.raises(ValueError, match="read_coordinates: format must be co or mtx, got edges"):
        matchwood.io.read_coordinates("points.txt")

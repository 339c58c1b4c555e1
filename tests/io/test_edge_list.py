"""Edge lists: what is understood, what is refused, and that a plain Python reader agrees."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from matchwood.errors import FileFormatError
from matchwood.io.formats import edge_list
from matchwood.io.options import Options
from matchwood.io.text import Text
from support import THREADS


def parse(content: str | bytes, **options: Any) -> Any:
    """Read an edge list that stands in a string."""
    data = content.encode() if isinstance(content, str) else content
    reader = edge_list.read_named if options.get("names") else edge_list.read
    return reader(Text.of("list.txt", data), Options(**options).checked())


def dense(content: str, **options: Any) -> list[list[float]]:
    return parse(content, **options).toarray().tolist()


@pytest.mark.parametrize(
    "content",
    [
        "0 1\n1 2\n",
        "0\t1\n1\t2\n",
        "0,1\n1,2\n",
        "0;1\n1;2\n",
        "0 , 1\n1 ,2\n",
        "0 1\r\n1 2\r\n",
        "  0   1  \n\n1\t 2\n\n",
        "# a comment\n% another\n0 1\n# in between\n1 2\n# at the end\n",
        "source,target\n0,1\n1,2\n",
        "FromNode ToNode\n0 1\n1 2\n",
        "\ufeff0 1\n1 2\n",
        "# Directed\n   -1 (a broken comment)\n# Nodes: 3 Edges: 2\n0 1\n1 2\n",
        "3\n2\n0 1\n1 2\n",
        "00 01\n1 002\n",
    ],
)
def test_the_same_graph_in_many_spellings(content: str) -> None:
    for threads in THREADS:
        A = parse(content, threads=threads)
        assert A.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
        assert isinstance(A, sp.csr_array)
        assert A.indices.dtype == A.indptr.dtype == np.int32
        assert A.has_canonical_format


def test_weights() -> None:
    assert dense("0 1 0.5\n1 0 -2e1\n") == [[0, 0.5], [-20, 0]]
    assert dense("a,b,w\n0,1,.5\n1,0,+3.\n") == [[0, 0.5], [3, 0]]
    A = parse("0 1 0\n1 0 5\n")
    assert A.nnz == 2, "a stored zero stays"


def test_columns() -> None:
    content = "u,v,w,time\n0,1,2.5,1999\n1,0,3.5,2000\n"
    assert dense(content, columns=(0, 1)) == [[0, 1], [1, 0]]
    assert dense(content, columns=(0, 1, 2)) == [[0, 2.5], [3.5, 0]]
    assert dense(content, columns=(1, 0, 2)) == [[0, 3.5], [2.5, 0]]
    assert dense("x 0 1\n? 1 0\n", columns=(1, 2)) == [[0, 1], [1, 0]]
    with pytest.raises(FileFormatError, match=r"list.txt, line 2: 4 columns"):
        parse(content)


def test_base_shape_and_declared_vertices() -> None:
    assert parse("1 2\n2 3\n", base=1).shape == (3, 3)
    assert parse("0 1\n", shape=5).shape == (5, 5)
    assert parse("0 4\n", shape=(2, 7)).shape == (2, 7)
    assert parse("# Nodes: 9 Edges: 1\n0 1\n").shape == (9, 9)
    assert parse("# Nodes: 2 Edges: 1\n0 7\n").shape == (8, 8), "ids with gaps"
    assert parse("# Rows: 3 Columns: 5 Entries: 1\n0 1\n").shape == (3, 5)
    with pytest.raises(FileFormatError, match="line 1: expected a vertex from 1, got '0'"):
        parse("0 2\n", base=1)
    with pytest.raises(FileFormatError, match="line 2: expected a vertex from 0 to 4, got '5'"):
        parse("0 1\n5 1\n", shape=5)
    with pytest.raises(FileFormatError, match="line 4: expected a vertex from 0 to 2"):
        parse("3\n2\n0 1\n1 3\n")


def test_duplicates_and_symmetric() -> None:
    content = "0 1 3\n0 1 1\n1 0 5\n2 2 7\n"
    assert dense(content)[0] == [0, 4, 0]
    assert dense(content, duplicates="first")[0] == [0, 3, 0]
    assert dense(content, duplicates="min")[0] == [0, 1, 0]
    assert dense(content, duplicates="max")[0] == [0, 3, 0]
    for reduce, value in {"sum": 9, "first": 3, "min": 1, "max": 5}.items():
        expected = [[0, value, 0], [value, 0, 0], [0, 0, 7]]
        assert dense(content, duplicates=reduce, symmetric=True) == expected
    assert dense("0 1\n0 1\n1 1\n") == [[0, 2], [0, 1]], "edges without weights are counted"
    assert dense("0 1\n1 1\n", symmetric=True) == [[0, 1], [1, 1]]
    assert dense("0 1\n1 0\n1 1\n", symmetric=True) == [[0, 2], [2, 1]]


@pytest.mark.parametrize("big", [40, 10**7, 2**31 - 1, 2**31, 10**17])
def test_compact(big: int) -> None:
    for threads in THREADS:
        A, ids = parse(f"7 {big}\n{big} 12 3\n".replace(f"{big}\n", f"{big} 1\n", 1), compact=True)
        assert ids.tolist() == [7, 12, big]
        assert A.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [0, 3, 0]]
        assert A.indices.dtype == np.int32
        result = parse(f"8 {big}\n", compact=True, base=1, threads=threads)
        assert isinstance(result, matchwood.io.Compacted)
        assert result.ids.tolist() == [8, big], "ids are those in the file"


def test_ids_beyond_int32() -> None:
    with pytest.raises(ValueError, match="compact=True"):
        parse("0 5000000000\n")
    with pytest.raises(FileFormatError, match="line 1: expected a vertex"):
        parse("0 9999999999999999999\n")


def test_names() -> None:
    content = "AER,KZN,2\nKZN,AER,1\nKZN,ASF,4\n"
    A, ids = parse(content, names=True)
    assert ids.tolist() == ["AER", "ASF", "KZN"]
    assert A.toarray().tolist() == [[0, 0, 2], [0, 0, 0], [1, 4, 0]]
    A, ids = parse(content, names=True, columns=(1, 0))
    assert A.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]
    _, ids = parse('x,"a, b","c"\n', names=True, columns=(1, 2))
    assert ids.tolist() == ["a, b", "c"]
    A, ids = parse("héllo 世界\n", names=True, symmetric=True)
    assert ids.tolist() == ["héllo", "世界"]
    assert A.nnz == 2
    assert parse("new york\tla\n", names=True, delimiter="\t").ids.tolist() == ["la", "new york"]
    assert parse("from,to\na,b\n", names=True, skip=1).ids.tolist() == ["a", "b"]
    assert parse("# Nodes: 0 Edges: 0\n", names=True).matrix.shape == (0, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\na\n", "line 2: expected 2 fields, got 1"),
        (b"a\n", "line 1: 1 columns"),
        (b"a b c\n", "line 1: expected a number, got 'c'"),
        (b"a b nan\n", "line 1: expected a number"),
        (b"a,b\n,b\n", "line 2: the name of a vertex is empty"),
        (b"a b\n\xff\xfe c\n", "line 2: not a line of text"),
        (b'a,b\n"c,d\n', "line 2: not a line of text"),
        (b"a b\na c", "line 2: the file ends without a newline"),
        (b"# Nodes: 2 Edges: 2\na b\n", "line 2: the file is cut off: 2 edges declared, 1 found"),
        (b"# nothing\n", "line 1: no edges"),
    ],
)
def test_names_malformed(content: bytes, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        parse(content, names=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n1 x\n", "line 2: expected a whole number, got 'x'"),
        ("0 1\nx 1\n", "line 2: expected a whole number, got 'x'"),
        ("0 1\n1\n", "line 2: expected 2 fields, got 1"),
        ("0 1\n1 2 3\n", "line 2: expected 2 fields, got 3"),
        ("0 1 5\n1 2\n", "line 2: expected 3 fields, got 2"),
        ("0 1 5\n1 2 5x\n", "line 2: expected a number, got '5x'"),
        ("0 1 5\n1 2 1e999\n", "line 2: the number '1e999' is too large"),
        ("0 1 5\n1 2 nan\n", "line 2: expected a number, got 'nan'"),
        ("0 1 5\n1 2 1e\n", "line 2: expected a number"),
        ("0 1 5\n1 2 .\n", "line 2: expected a number"),
        ("0 1 5\n1 2 --1\n", "line 2: expected a number"),
        ("0 1\n-1 2\n", "line 2: expected a whole number, got '-1'"),
        ("0 1\n1.0 2\n", "line 2: expected a whole number, got '1.0'"),
        ("0,1\n1 2\n", "line 2: expected a whole number"),
        ("0,1\n1,\n", "line 2: expected a whole number, got nothing"),
        ("0,1\n1\n", "line 2: expected 2 fields, got 1"),
        ("0,1\n1,2,3\n", "line 2: expected 2 fields, got 3"),
        ("0 1\n1 2 # why\n", "line 2: expected 2 fields"),
        ("0 1\n0\0 1\n", "line 2: expected a whole number"),
        ("1 x\n2 3\n", "line 1: expected an edge, got '1 x'"),
        ("5\n0 1\n", "line 1: expected an edge, got '5'"),
        ("a b\nc d\n0 1\n", "line 1: expected an edge, got 'a b'"),
        ("hello\nworld\n", "line 1: expected an edge"),
        ("hello world\n", "line 1: no edges"),
        ("", "line 1: no edges"),
        ("# only a comment\n", "line 1: no edges"),
        ("0 1\n1 2", "line 2: the file ends without a newline"),
        ("# Nodes: 3 Edges: 2\n0 1\n", "line 2: the file is cut off: 2 edges declared, 1 found"),
        ("# Nodes: 3 Edges: 2\n", "line 1: the file is cut off"),
        ("3\n2\n0 1\n", "line 3: the file is cut off"),
        ("3\n1\n0 1\n1 2\n", "line 4: there are more than that: 1 edges declared, 2 found"),
    ],
)
def test_malformed(content: str, message: str) -> None:
    for threads in THREADS:
        with pytest.raises(FileFormatError, match=message):
            parse(content, threads=threads)


def test_not_strict() -> None:
    assert dense("0 1\n1 0", strict=False) == [[0, 1], [1, 0]]
    assert dense("# Nodes: 2 Edges: 9\n0 1\n", strict=False) == [[0, 1], [0, 0]]
    assert dense("2\n9\n0 1\n", strict=False) == [[0, 1], [0, 0]]
    assert parse("", strict=False).shape == (0, 0)
    with pytest.raises(FileFormatError):
        parse("0 1\n1 x\n", strict=False)


def test_no_edges() -> None:
    assert parse("# Nodes: 4 Edges: 0\n").shape == (4, 4)
    assert parse("4\n0\n").shape == (4, 4)
    assert parse("source,target\n").shape == (0, 0)
    assert parse("source,target\n", shape=3).shape == (3, 3)
    assert parse("# Nodes: 4 Edges: 0\n", compact=True).ids.size == 0


@pytest.mark.parametrize(
    "options",
    [
        {"columns": (0,)},
        {"columns": (0, 0)},
        {"columns": (0, -1)},
        {"columns": "01"},
        {"delimiter": "ab"},
        {"delimiter": "1"},
        {"delimiter": "."},
        {"delimiter": "§"},
        {"base": -1},
        {"base": 0.5},
        {"skip": True},
        {"shape": (1, 2, 3)},
        {"shape": -1},
        {"shape": 3, "compact": True},
        {"shape": (2, 3), "symmetric": True},
        {"duplicates": "mean"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="read: "):
        parse("0 1\n", **options)


def test_dtype(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("0 1 2\n1 0 3.5\n")
    assert matchwood.io.read(path).dtype == np.float64
    assert matchwood.io.read(path, dtype=np.float32).dtype == np.float32
    A, _ = matchwood.io.read(path, dtype=np.float32, compact=True)
    assert A.dtype == np.float32
    with pytest.raises(ValueError, match=r"cannot hold the weight 3\.5"):
        matchwood.io.read(path, dtype=np.int64)
    path.write_text("0 1 1e300\n")
    with pytest.raises(ValueError, match="cannot hold the weight 1e"):
        matchwood.io.read(path, dtype=np.float32)
    path.write_text("0 1 2\n")
    assert matchwood.io.read(path, dtype=np.int64).dtype == np.int64


def test_many_lines_at_any_number_of_threads() -> None:
    rng = np.random.default_rng(5)
    u, v, w = rng.integers(0, 10**6, 3000), rng.integers(0, 50, 3000), rng.random(3000)
    lines = [f"{a}\t{b}\t{c!r}" for a, b, c in zip(u.tolist(), v.tolist(), w.tolist(), strict=True)]
    lines[::97] = [f"# comment {line}" for line in lines[::97]]  # gaps between the members' parts
    keep = np.arange(3000) % 97 != 0
    n = 1 + max(u[keep].max(), v[keep].max())
    expected = sp.csr_array((w[keep], (u[keep], v[keep])), shape=(n, n))
    for threads in THREADS:
        A = parse("\n".join(lines) + "\n", threads=threads)
        assert abs(A - expected).max() == 0
        assert A.nnz == expected.nnz


def test_the_first_malformed_line_is_named_at_any_number_of_threads() -> None:
    lines = [f"{i} {i + 1}" for i in range(2000)]
    for bad in (1990, 1234, 1233):
        lines[bad] = "oops"
        for threads in THREADS:
            with pytest.raises(FileFormatError, match=f"line {bad + 1}: .*'oops'"):
                parse("\n".join(lines) + "\n", threads=threads)


def plain(content: str) -> tuple[dict[tuple[int, int], float], int] | None:
    """What the list means, read without any cleverness; None where it is malformed."""
    edges: dict[tuple[int, int], float] = {}
    n, width = 0, 0
    if not content.endswith("\n"):
        return None
    for line in content.split("\n"):
        fields = line.split()
        if not fields or fields[0][0] in "#%":
            continue
        width = width or len(fields)
        if len(fields) != width or width not in (2, 3):
            return None
        if not all(field.isdigit() and field.isascii() for field in fields[:2]):
            return None
        try:
            weight = float(fields[2]) if width == 3 else 1.0
        except ValueError:
            return None
        if not np.isfinite(weight):
            return None
        u, v = int(fields[0]), int(fields[1])
        n = max(n, u + 1, v + 1)
        edges[u, v] = edges.get((u, v), 0.0) + weight
    return (edges, n) if n else None


TOKENS = st.sampled_from(
    [
        "0",
        "1",
        "12",
        "3 4",
        "1 2 3",
        "-1",
        "0.5",
        "1e3",
        "+7",
        "x",
        "#",
        " ",
        "\t",
        "\n",
        "\n",
        "\r\n",
    ]
)
LINES = st.lists(TOKENS, max_size=25).map(" ".join)
EDGES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda e: f"{e[0]} {e[1]}\n"), max_size=20
).map("".join)


@given(st.one_of(LINES, EDGES, st.tuples(EDGES, LINES).map("".join)), st.integers(1, 4))
def test_agrees_with_a_plain_reader(content: str, threads: int) -> None:
    expected = plain(content)
    try:
        A = parse(content, threads=threads)
    except FileFormatError:
        # a header, and n and m on top, are not known to the plain reader: it may say more
        assert expected is None
        return
    if expected is None:
        return  # the list starts with a header or with n and m
    edges, n = expected
    assert A.shape == (n, n)
    found = A.tocoo()
    entries = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    assert {(u, v): w for u, v, w in entries} == edges


@given(st.binary(max_size=60), st.integers(1, 3))
def test_any_bytes_give_a_graph_or_an_error(content: bytes, threads: int) -> None:
    for options in ({}, {"names": True}, {"compact": True}):
        with contextlib.suppress(FileFormatError):
            parse(content, threads=threads, **options)

"""What is written reads back the same, from every format and compression that can hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import UNDIRECTED, ZOO
from strategies import graphs

ANY = [".mtx", ".txt", ".tsv", ".npz"]


def canonical(A: Any) -> sp.csr_array:
    B = sp.csr_array(A, copy=True)
    B.sum_duplicates()
    return B


def simple(A: Any) -> sp.csr_array:
    """A symmetric matrix of whole weights without diagonal, with the pattern of A."""
    B = canonical(A)
    B.data = 1.0 + np.arange(B.nnz) % 9
    B = sp.csr_array(sp.triu(B, 1))
    return canonical(B + B.T)


def assert_same(A: Any, B: Any, *, dtype: bool = False) -> None:
    A = canonical(A)
    assert A.shape == B.shape
    assert np.array_equal(A.indptr, B.indptr)
    assert np.array_equal(A.indices, B.indices)
    assert np.array_equal(A.data, B.data)
    assert not dtype or A.dtype == B.dtype


@pytest.mark.parametrize("suffix", ANY)
def test_zoo(tmp_path: Path, zoo_graph: sp.csr_array, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    before = zoo_graph.copy()
    matchwood.io.write(path, zoo_graph)
    assert np.array_equal(before.indices, zoo_graph.indices), "the matrix is not changed"
    assert np.array_equal(before.data, zoo_graph.data)
    assert_same(zoo_graph, matchwood.io.read(path), dtype=suffix == ".npz")


@pytest.mark.parametrize("name", UNDIRECTED)
def test_undirected(tmp_path: Path, name: str) -> None:
    A = simple(ZOO[name]())
    for suffix in (".graph", ".metis.gz", ".gr"):
        path = tmp_path / f"a{suffix}"
        matchwood.io.write(path, A)
        assert_same(A, matchwood.io.read(path))
    A.data[:] = 1
    for suffix in (".graph", ".col", ".clq.xz", ".graph-txt"):
        path = tmp_path / f"a{suffix}"
        matchwood.io.write(path, A)
        assert_same(A, matchwood.io.read(path))


@pytest.mark.parametrize("compression", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("suffix", [".mtx", ".txt", ".csv", ".npz", ".graph", ".col", ".graph-txt"])
def test_compressed(tmp_path: Path, suffix: str, compression: str) -> None:
    A = simple(ZOO["path"]() if "path" in ZOO else next(iter(ZOO.values()))())
    A.data[:] = 1
    path = tmp_path / f"a{suffix}{compression}"
    matchwood.io.write(path, A)
    assert_same(A, matchwood.io.read(path))
    if compression:
        plain = tmp_path / f"a{suffix}"
        matchwood.io.write(plain, A)
        assert plain.read_bytes() != path.read_bytes()


@pytest.mark.slow
@given(graphs(), st.sampled_from([".mtx", ".txt", ".npz"]), st.integers(1, 3))
def test_random_graphs(
    tmp_path_factory: pytest.TempPathFactory, A: sp.csr_array, suffix: str, threads: int
) -> None:
    path = tmp_path_factory.mktemp("graphs") / f"a{suffix}"
    matchwood.io.write(path, A)
    assert_same(A, matchwood.io.read(path, threads=threads))


@given(graphs(symmetric=True), st.sampled_from([".graph", ".gr", ".col", ".graph-txt"]))
def test_random_undirected_graphs(
    tmp_path_factory: pytest.TempPathFactory, A: sp.csr_array, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("graphs") / f"a{suffix}"
    B = simple(A)
    if suffix in (".col", ".graph-txt"):
        B.data[:] = 1
    matchwood.io.write(path, B)
    assert_same(B, matchwood.io.read(path))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.uint16, np.bool_])
def test_types_of_values(tmp_path: Path, dtype: Any) -> None:
    A = sp.csr_array(np.array([[0, 1, 0], [1, 1, 1]]).astype(dtype))
    if dtype != np.bool_:
        A.data[:2] = [3, 2]
    if np.issubdtype(dtype, np.floating):
        A.data[2] = dtype(0.1)
    for suffix in ANY:
        path = tmp_path / f"a{suffix}"
        matchwood.io.write(path, A)
        assert_same(A, matchwood.io.read(path))


def test_rectangular(tmp_path: Path) -> None:
    A = sp.csr_array(([1.5, 2.5], ([0, 2], [4, 1])), shape=(5, 9))
    for suffix in ANY:
        path = tmp_path / f"a{suffix}"
        matchwood.io.write(path, A)
        assert_same(A, matchwood.io.read(path))
    for suffix in (".graph", ".gr", ".col", ".graph-txt"):
        with pytest.raises(ValueError, match=r"holds a square matrix|has no weights"):
            matchwood.io.write(tmp_path / f"a{suffix}", A)


def test_csv_has_a_header_and_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    matchwood.io.write(path, np.array([[0, 2.5], [1, 0]]))
    assert path.read_text() == "source,target,weight\n0,1,2.5\n1,0,1.0\n"
    assert matchwood.io.read(path).toarray().tolist() == [[0, 2.5], [1, 0]]
    matchwood.io.write(path, np.zeros((3, 3)))
    assert matchwood.io.read(path, shape=3).shape == (3, 3)


def test_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("7 20 2\n20 7 1\n20 30 4\n")
    A, ids = matchwood.io.read(path, compact=True)
    matchwood.io.write(path, A, ids=ids)
    B, again = matchwood.io.read(path, compact=True)
    assert_same(A, B)
    assert again.tolist() == ids.tolist()
    matchwood.io.write(path, A, ids=["a", "b", "c"])
    B, names = matchwood.io.read(path, names=True)
    assert_same(A, B)
    assert names.tolist() == ["a", "b", "c"]
    for wrong in (["a", "b"], ["a", "b", ""], ["a", "b", "c d"], ["a", "b", "#c"], [0.5, 1, 2]):
        with pytest.raises(ValueError, match="write: "):
            matchwood.io.write(path, A, ids=wrong)


def test_base_delimiter_comments_and_weights(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    A = np.array([[0, 2], [3, 0]])
    matchwood.io.write(path, A, base=1, delimiter=";", comments="made\nby hand")
    assert path.read_text() == "# made\n# by hand\n# Nodes: 2 Edges: 2\n1;2;2\n2;1;3\n"
    assert_same(A, matchwood.io.read(path, base=1))
    matchwood.io.write(path, A, weights=False)
    assert matchwood.io.read(path).toarray().tolist() == [[0, 1], [1, 0]]
    for suffix, mark in {".mtx": "%", ".graph": "%", ".gr": "c "}.items():
        path = tmp_path / f"a{suffix}"
        matchwood.io.write(path, A + A.T, comments=["made", "by hand"])
        assert any(
            line.startswith(mark) and "by hand" in line for line in path.read_text().split("\n")
        )
        assert_same(A + A.T, matchwood.io.read(path))
    with pytest.raises(ValueError, match="has no comments"):
        matchwood.io.write(tmp_path / "a.npz", A, comments="x")


@pytest.mark.parametrize(
    ("name", "A", "message"),
    [
        ("a.graph", [[0, 1], [0, 0]], "A is not symmetric"),
        ("a.graph", [[0, 2], [3, 0]], "A is not symmetric"),
        ("a.graph", [[1, 1], [1, 0]], "A has a diagonal"),
        ("a.graph", [[0, 0.5], [0.5, 0]], "whole numbers"),
        ("a.gr", [[0, 0.5], [0, 0]], "whole numbers"),
        ("a.col", [[0, 1], [0, 0]], "A is not symmetric"),
        ("a.col", [[0, 2], [2, 0]], "has no weights; weights=False leaves them out"),
        ("a.graph-txt", [[0, 2], [2, 0]], "has no weights"),
        ("a.txt", [[0, np.nan], [2, 0]], "infinite values or NaN"),
        ("a.txt", [[0, 1j], [2, 0]], "complex"),
    ],
)
def test_what_a_format_cannot_hold(tmp_path: Path, name: str, A: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"write: .*{message}"):
        matchwood.io.write(tmp_path / name, np.array(A))
    assert not list(tmp_path.iterdir())


def test_graphs_of_other_kinds(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    expected = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    matchwood.io.write(path, (3, [[0, 1], [1, 2]]))
    assert matchwood.io.read(path).toarray().tolist() == expected
    matchwood.io.write(path, matchwood.graph(sp.csr_array(np.array(expected, float))))
    assert matchwood.io.read(path).toarray().tolist() == expected
    with pytest.raises(TypeError):
        matchwood.io.write(path, "a graph")

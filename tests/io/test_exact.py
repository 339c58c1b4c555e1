"""What is written comes back: stored zeros, every bit of a number, every entry."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from matchwood.errors import FileFormatError
from matchwood.io import files

WEIGHTED = [".mtx", ".txt", ".npz", ".mtx.gz", ".txt.xz"]
EXTREMES = [
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-310, 1.7976931348623157e308, -1e308,
    0.1, 1 / 3, 2.0**53, 2.0**53 + 2, 1.0, -1.0, 1e22, 1e23, 123456789012345.67, 9007199254740993.0,
]  # fmt: skip


def same(A: sp.csr_array, B: sp.csr_array) -> bool:
    """Entry by entry and bit by bit."""
    return (
        A.shape == B.shape
        and np.array_equal(A.indptr, B.indptr)
        and np.array_equal(A.indices, B.indices)
        and A.data.astype(np.float64).tobytes() == B.data.astype(np.float64).tobytes()
    )


@pytest.mark.parametrize("suffix", [*WEIGHTED, ".csv", ".graph", ".gr"])
@pytest.mark.parametrize("n", [3, 150])  # SciPy's writer looks for symmetry below 100 only
def test_stored_zeros(tmp_path: Path, suffix: str, n: int) -> None:
    """One-sided zeros are neither dropped nor mirrored; they are edges for patterns."""
    path = tmp_path / f"a{suffix}"
    for u, v in (([0, 1], [1, 2]), ([1, 2], [0, 1]), ([0, 1, 1, 2], [1, 0, 2, 1])):
        A = sp.csr_array((np.zeros(len(u)), (u, v)), shape=(n, n))
        assert A.nnz == len(u)
        if suffix == ".graph" and len(u) == 2:
            with pytest.raises(ValueError, match="undirected, A is not symmetric"):
                matchwood.io.write(path, A)
            continue
        matchwood.io.write(path, A)
        B = matchwood.io.read(path, **({"shape": n} if suffix == ".csv" else {}))
        assert same(A, B)
        before, after = (matchwood.connected_components(M).count for M in (A, B))
        assert before == after == n - 2


@pytest.mark.parametrize("suffix", [".col", ".graph-txt"])
def test_formats_without_weights_say_so(tmp_path: Path, suffix: str) -> None:
    A = sp.csr_array((np.zeros(2), ([0, 1], [1, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match="has no weights; weights=False"):
        matchwood.io.write(tmp_path / f"a{suffix}", A)
    matchwood.io.write(tmp_path / f"a{suffix}", A, weights=False)
    assert matchwood.io.read(tmp_path / f"a{suffix}").nnz == 2


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_matrix(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    suffix = data.draw(st.sampled_from(WEIGHTED))
    n, m = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 12))
    ends = st.lists(st.integers(0, max(n - 1, 0)), min_size=m, max_size=m)
    values = st.one_of(st.sampled_from(EXTREMES), st.floats(allow_nan=False, allow_infinity=False))
    u, v = (data.draw(ends) for _ in range(2))
    w = np.array(data.draw(st.lists(values, min_size=m, max_size=m)))
    if n == 0:
        u, v, w = [], [], w[:0]
    if data.draw(st.booleans()):  # a symmetric one, loops among it
        u, v, w = [*u, *v], [*v, *u], np.concatenate((w, w))
    index = data.draw(st.sampled_from([np.int32, np.int64]))
    # each place once: sums of extremes are not what is tried here
    places = {place: k for k, place in enumerate(zip(u, v, strict=True))}
    chosen = list(places.values())
    A = sp.coo_array((w[chosen], (np.array(u, index)[chosen], np.array(v, index)[chosen])), (n, n))
    path = tmp_path_factory.mktemp("any") / f"a{suffix}"
    matchwood.io.write(path, A)
    assert same(sp.csr_array(A), matchwood.io.read(path))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.bool_])
@pytest.mark.parametrize("suffix", [".mtx", ".npz"])
def test_whole_numbers(tmp_path: Path, dtype: type, suffix: str) -> None:
    top = 1 if dtype is np.bool_ else np.iinfo(dtype).max
    A = sp.csr_array((np.array([top, 0, 1], dtype), [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    path = tmp_path / f"a{suffix}"
    matchwood.io.write(path, A)
    B = matchwood.io.read(path, dtype=dtype)
    assert B.nnz == 3
    assert B.data.tolist() == A.data.tolist()


def test_whole_numbers_that_float64_rounds(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"0 1 {2**53 + 1}\n")
    assert matchwood.io.read(path).data.tolist() == [2.0**53]
    with pytest.raises(ValueError, match="cannot hold the weight"):
        matchwood.io.read(path, dtype=np.int64)
    path.write_text("0 1 9223372036854775808\n")
    with pytest.raises(ValueError, match="cannot hold the weight"):
        matchwood.io.read(path, dtype=np.int64)


@pytest.mark.parametrize("weight", [1e300, 2.0**63, -(2.0**64), np.uint64(2**64 - 1)])
@pytest.mark.parametrize("suffix", [".graph", ".gr"])
def test_whole_weights_beyond_64_bits(tmp_path: Path, weight: float, suffix: str) -> None:
    A = sp.csr_array((np.array([weight, weight]), ([0, 1], [1, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match=r"below 2\*\*63"):
        matchwood.io.write(tmp_path / f"a{suffix}", A)


@pytest.mark.parametrize("kind", ["hermitian", "symmetric", "general"])
def test_complex(tmp_path: Path, kind: str) -> None:
    values = {"hermitian": [1 + 2j, 1 - 2j], "symmetric": [1 + 2j, 1 + 2j], "general": [1j, 2j]}
    A = sp.csr_array((np.array(values[kind], np.complex64), ([0, 1], [1, 0])), shape=(2, 2))
    matchwood.io.write(tmp_path / "a.mtx", A)
    assert kind in (tmp_path / "a.mtx").read_text().splitlines()[0]
    assert matchwood.io.read(tmp_path / "a.mtx").toarray().tolist() == A.toarray().tolist()


@pytest.mark.parametrize("sizes", ["0 0", "0 5", "5 0"])
@pytest.mark.parametrize("field", ["real", "integer", "complex", "double", "unsigned-integer"])
def test_dense_matrices_without_entries(tmp_path: Path, sizes: str, field: str) -> None:
    """SciPy's reader divides by the number of rows, which ended the process."""
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix array {field} general\n{sizes}\n")
    assert matchwood.io.read(path).shape == tuple(map(int, sizes.split()))
    path.write_text("%%MatrixMarket matrix array pattern general\n0 0\n")
    with pytest.raises(FileFormatError, match="line 1: a dense matrix"):
        matchwood.io.read(path)


@pytest.mark.parametrize("columns", [(0, 1, 7), (0, 9, 1), (9, 0), (3, 1, 0)])
@pytest.mark.parametrize("content", ["0 1 2\n3 4 5\n", "0,1,2\n3,4,5\n"])
@pytest.mark.parametrize("names", [False, True])
def test_columns_that_no_line_has(
    tmp_path: Path, columns: tuple[int, ...], content: str, names: bool
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content)
    with pytest.raises(FileFormatError, match=r"line 1: (there is no column|expected an edge)"):
        matchwood.io.read(path, columns=columns, names=names)
    path.write_text("0 1 2 3 4 5 6 7\n1 2 3\n")
    with pytest.raises(FileFormatError, match="line 2: expected 8 fields, got 3"):
        matchwood.io.read(path, columns=(0, 1, 7), names=names)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("source,target,weight\nada,bob,1\n", "ada bob"),
        ("source,target\nada,bob\n", "ada bob"),
        ("Source ID;Target ID\nada;bob\n", "ada bob"),
        ("node1,node2\nada,bob\n", "ada bob"),
        ("from\tto\nada\tbob\n", "ada bob"),
        ("who,whom,times\nada,bob,3\n", "ada bob"),
        ("ada,bob\nbob,cy\n", "ada bob cy"),
        ("from,to\nto,home\n", "from home to"),
        ("ada bob\ncy dan\n", "ada bob cy dan"),
        ("# Nodes: 2 Edges: 1\nfrom\tto\n", "from to"),
        ("ada,bob\n", "ada bob"),
    ],
)
def test_header_of_names(tmp_path: Path, content: str, names: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert matchwood.io.read(path, names=True).ids.tolist() == names.split()


def test_header_that_cannot_be_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("person,friend\nada,bob\n")
    with pytest.raises(FileFormatError, match=r"line 1: .*pass header=True or header=False"):
        matchwood.io.read(path, names=True)
    assert matchwood.io.read(path, names=True, header=True).ids.tolist() == ["ada", "bob"]
    assert matchwood.io.read(path, names=True, header=False).ids.size == 4
    path.write_text("0,1\n2,3\n")
    assert matchwood.io.read(path).nnz == 2
    assert matchwood.io.read(path, header=True).nnz == 1
    path.write_text("from,to\n2,3\n")
    with pytest.raises(FileFormatError, match="line 1: expected an edge"):
        matchwood.io.read(path, header=False)
    with pytest.raises(TypeError, match="read: header must be"):
        matchwood.io.read(path, header="yes")  # type: ignore[call-overload]


def test_star_with_a_wrong_weight_is_told_soon(tmp_path: Path) -> None:
    """To find the edge took the square of the degree."""
    n = 60_000
    lines = [f"{n} {n - 1} 1", " ".join(f"{v} 1" for v in range(2, n + 1)), *["1 1"] * (n - 2)]
    path = tmp_path / "a.graph"
    path.write_text("\n".join([*lines, "1 2", ""]))
    with pytest.raises(FileFormatError, match=f"vertex 1 and its neighbour {n} give"):
        matchwood.io.read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("suffix", [".mtx", ".npz", ".txt.gz", ".mtx.xz"])
def test_full_disk_leaves_the_old_file(tmp_path: Path, suffix: str, monkeypatch) -> None:
    path = tmp_path / f"a{suffix}"
    matchwood.io.write(path, sp.csr_array(np.eye(2)))
    path.chmod(0o640)
    old = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            matchwood.io.write(path, sp.csr_array(np.eye(5)))
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    matchwood.io.write(path, sp.csr_array(np.eye(5)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o440)
    if os.geteuid():  # root may write what is protected
        with pytest.raises(PermissionError):
            matchwood.io.write(path, sp.csr_array(np.eye(2)))


def test_files_are_written_where_no_thread_can_be_had(tmp_path: Path, monkeypatch) -> None:
    start = threading.Thread.start

    def none(thread: threading.Thread) -> None:
        if thread.name == "matchwood-sync":
            raise RuntimeError("can't start new thread")
        start(thread)

    A = np.eye(3)
    matchwood.io.write(tmp_path / "a.mtx", sp.csr_array(A))  # opens what stays open
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none)
        matchwood.io.write(tmp_path / "a.mtx", sp.csr_array(A))
    assert np.array_equal(matchwood.io.read(tmp_path / "a.mtx").toarray(), A)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before  # nothing is left open

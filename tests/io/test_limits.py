"""Files that ask for too much: a named error before anything is allocated."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood import memory
from matchwood.errors import FileFormatError, OutOfMemory

HUGE = {
    "a.mtx": "%%MatrixMarket matrix coordinate real general\n{n} {n} 1\n1 1 1\n",
    "b.mtx": "%%MatrixMarket matrix coordinate pattern general\n{n} 2 0\n",
    "c.mtx": "%%MatrixMarket matrix array real general\n{n} 0\n",
    "d.mtx": "%%MatrixMarket matrix array real general\n0 {n}\n",
    "a.txt": "# Nodes: {n} Edges: 1\n0 1\n",
    "b.txt": "# Nodes: {n} Edges: 0\n",
    "c.txt": "# Rows: {n} Columns: 3 Entries: 1\n0 1\n",
    "d.txt": "{n}\n1\n0 1\n",
    "e.txt": "0 {n}\n",
    "a.gr": "p sp {n} 1\na 1 2 3\n",
    "a.max": "p max {n} 1\na 1 2 3\n",
    "a.col": "p edge {n} 1\ne 1 2\n",
    "a.hgr": "1 {n}\n1 2\n",
    "a.graph": "{n} 1\n2\n1\n",
    "a.graph-txt": "{n}\n1\n0\n",
    "a.co": "p aux sp co {n}\nv 1 1 1\n",
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("n", [2 * 10**9, 10**12, 10**17])
@pytest.mark.parametrize("name", HUGE)
def test_declared_vertices(tmp_path: Path, name: str, n: int, strict: bool) -> None:
    path = tmp_path / name
    path.write_text(HUGE[name].format(n=n))
    with pytest.raises(ValueError, match=r"most_vertices=|cut off|declared"):
        matchwood.io.read(path, strict=strict)


@pytest.mark.slow
def test_most_vertices(tmp_path: Path) -> None:
    path = tmp_path / "a.gr"
    path.write_text(HUGE["a.gr"].format(n=20_000_000))
    assert matchwood.io.read(path, most_vertices=20_000_000).shape[0] == 20_000_000
    with pytest.raises(FileFormatError, match="line 1: 20000000 vertices are too many"):
        matchwood.io.read_dimacs(path)
    path.write_text(HUGE["a.gr"].format(n=10))
    with pytest.raises(FileFormatError, match="too many"):
        matchwood.io.read(path, most_vertices=9)
    for wrong in (-1, 2.5, True, "9"):
        with pytest.raises((TypeError, ValueError), match=r"read: most_vertices must"):
            matchwood.io.read(path, most_vertices=wrong)


@pytest.mark.parametrize("n", [10**12, 10**17])
def test_allowed_and_yet_no_memory(tmp_path: Path, n: int) -> None:
    path = tmp_path / "a.gr"
    path.write_text(HUGE["a.gr"].format(n=n))
    with pytest.raises(OutOfMemory, match=r"the matrix of .* needs"):
        matchwood.io.read(path, most_vertices=n)
    path = tmp_path / "a.txt"
    path.write_text("0 1\n")
    with pytest.raises(OutOfMemory, match="a matrix of shape"):
        matchwood.io.read(path, shape=n)


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def packed(content: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(content))
    return COMPRESS[suffix](content)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_small_files_that_unpack_without_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(packed(b"\n" * 2**20, suffix) * 400)  # many streams, one after the other
    start = time.perf_counter()
    with pytest.raises(FileFormatError, match="unpack to more than 100000000; pass most_bytes="):
        matchwood.io.read(path)
    assert time.perf_counter() - start < 60
    with pytest.raises(FileFormatError, match="unpack to more than 5000"):
        matchwood.io.read(path, most_bytes=5000)
    path.write_bytes(packed(b"0 1\n" * 5000, suffix))
    assert matchwood.io.read(path, most_bytes=20_000).nnz == 1


def test_blank_lines_take_no_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n" * 20_000_000 + b"0 1\n")
    start = time.perf_counter()
    assert matchwood.io.read(path).nnz == 1
    assert time.perf_counter() - start < 20  # line by line in Python it took minutes


def archive(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as members:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=True)
            members.writestr(f"{name}.npy", content.getvalue())
    return stream.getvalue()


SOUND = {
    "format": np.array(b"csr"), "shape": np.array([2, 2]), "data": np.ones(2),
    "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.zeros(200_000_000, np.int8)}, "pass most_bytes="),
        ({"data": np.array([{}, {}], dtype=object)}, "Python objects"),
        ({"shape": np.array([2, 10**12])}, "too many for 2 entries"),
        ({"evil": np.ones(2)}, "it holds 'evil'"),
        ({"indices": np.array([0.0, 1.0])}, "whole numbers"),
        ({"data": np.array(["a", "b"])}, "values of type"),
        ({"data": np.ones(1)}, "npz"),
        ({"data": np.ones((2, 2))}, "npz"),
        ({"shape": np.array([2.5, 2])}, "npz"),
        ({"shape": np.array([-2, 2])}, "npz"),
        ({"format": np.array(b"lil")}, "npz"),
        ({"indptr": np.array([0, 5, 2])}, "npz"),
    ],
)
def test_npz(tmp_path: Path, change: dict, message: str) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(archive(**{**SOUND, **change}))
    with pytest.raises(FileFormatError, match=message):
        matchwood.io.read(path)


def test_npz_whose_header_lies(tmp_path: Path) -> None:
    """NumPy allocates what the header says; SyntaxError and TokenError of its parser are ours."""
    path = tmp_path / "a.npz"
    content = io.BytesIO()
    np.save(content, np.ones(2))
    for wrong in (b"(2000000000000,), ", b"(2,((((((((((((((((", b"'''''''''''''''''''''"):
        stream = io.BytesIO(archive(**SOUND))
        with zipfile.ZipFile(stream, "a") as members:
            text = content.getvalue()
            at = text.index(b"(2,), ")
            spoiled = text[:at] + wrong + text[at + len(wrong) :]
            members.writestr("offsets.npy", spoiled)
        path.write_bytes(stream.getvalue())
        with pytest.raises(FileFormatError):
            matchwood.io.read(path)


def test_memory_that_is_free() -> None:
    free = memory.available_memory()
    assert free is None or free > 0
    memory.require_memory("test", 1000, "this")
    with pytest.raises(OutOfMemory, match=r"test: that needs .* TiB of memory, .* free"):
        memory.require_memory("test", 10**18, "that")


def test_memory_that_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bytes free is another thing than not knowing how many."""
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.require_memory("test", 1 << 30, "this")
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    with pytest.raises(OutOfMemory, match=r"test: that needs 1 GiB of memory, 0 bytes free"):
        memory.require_memory("test", 1 << 30, "that")


def test_memory_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 50, -1))
    left = memory._of_process()
    assert 0 < (1 << 50) - left[0] < 1 << 47
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1000, -1))
    assert memory._of_process() == [0]
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, -1))
    assert memory._of_process() == []


def test_memory_of_a_group(tmp_path: Path) -> None:
    group = tmp_path / "root" / "box"
    group.mkdir(parents=True)
    (tmp_path / "cgroup").write_text("0::/box\n")
    (group / "memory.max").write_text("1000\n")
    (group / "memory.current").write_text("700\n")
    (group / "memory.stat").write_text("anon 500\nfile 200\n")
    assert memory._of_groups(tmp_path / "cgroup", tmp_path / "root") == [500]
    (group / "memory.max").write_text("max\n")
    assert memory._of_groups(tmp_path / "cgroup", tmp_path / "root") == []


def _with(name: str, array: Any) -> sp.csr_array:
    A = sp.csr_array(np.eye(3))
    setattr(A, name, array)
    return A


@pytest.mark.parametrize("file", ["a.mtx", "a.npz", "a.csv", "a.graph"])
@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("data", np.ones(1), "data must have one value for each index"),
        ("indptr", np.array([0, 2, 1, 3], np.int32), "indptr must not decrease"),
        ("indptr", np.array([0, 1, 2, 10**9], np.int32), "indptr must end at"),
        ("indptr", np.array([0, 1, 2, -1], np.int32), "indptr must not decrease"),
        ("indptr", np.broadcast_to(np.int32(2**31 - 1), 4), "indptr must start at 0"),
        ("indptr", np.ma.masked_array([0, 1, 2, 3], [0, 0, 0, 1]), "without a mask"),
        ("indptr", np.zeros(900, np.int32), "indptr must have 4 elements"),
        ("indices", np.array([0, 1, 10**9], np.int32), "indices must be within 0..2"),
        ("indices", np.array([0.0, 1.0, 2.0]), "indices of A must hold integers"),
    ],
)
def test_arrays_that_do_not_fit_are_not_written(
    tmp_path: Path, file: str, name: str, array: Any, told: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"write: .*{told}"):
        matchwood.io.write(tmp_path / file, _with(name, array))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, float, complex, np.longdouble])
def test_every_kind_of_matrix_is_written_as_it_is(tmp_path: Path, kind: str, dtype: Any) -> None:
    A = sp.csr_array(np.array([[0, 2, 0, 0, 1], [3, 0, 0, 0, 0], [0, 0, 0, 5, 7]])).astype(dtype)
    for file in ("a.mtx", "a.npz"):
        matchwood.io.write(tmp_path / file, A.asformat(kind))
        assert (matchwood.io.read(tmp_path / file).toarray() == A.toarray()).all()

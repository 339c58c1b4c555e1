"""SciPy's npz: checked arrays, and no code from the file is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood.errors import FileFormatError


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
@pytest.mark.parametrize("suffix", [".npz", ".npz.gz", ".npz.zst"])
def test_read_what_scipy_wrote(tmp_path: Path, kind: str, suffix: str) -> None:
    A = sp.random_array((6, 4), density=0.4, rng=np.random.default_rng(1), format=kind)
    path = tmp_path / "a.npz"
    sp.save_npz(path, A)
    if suffix != ".npz":
        from matchwood.io.files import write_pieces

        content, path = path.read_bytes(), tmp_path / f"a{suffix}"
        write_pieces(path, [content])
    B = matchwood.io.read(path)
    assert isinstance(B, sp.csr_array)
    assert B.has_canonical_format
    assert (B != sp.csr_array(A)).nnz == 0


def test_duplicates_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    A = sp.csr_array((np.ones(3), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    sp.save_npz(path, A)
    assert matchwood.io.read(path).toarray().tolist() == [[1, 2]]
    assert matchwood.io.read(path).nnz == 2


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 9], [0, 1, 2]),
        ([0, -1], [0, 1, 2]),
        ([0, 1], [0, 2, 1]),
        ([0, 1], [0, 1, 5]),
        ([0, 1], [1, 1, 2]),
    ],
)
def test_broken_arrays(tmp_path: Path, kind: str, indices: list[int], indptr: list[int]) -> None:
    path = tmp_path / "a.npz"
    np.savez(
        path, data=np.ones(2), indices=np.array(indices), indptr=np.array(indptr),
        format=np.array(kind.encode()), shape=np.array([2, 2]),
    )  # fmt: skip
    with pytest.raises(FileFormatError, match=r"a\.npz: not a sparse matrix"):
        matchwood.io.read(path)


def test_not_a_matrix(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.ones(3))
    with pytest.raises(FileFormatError):
        matchwood.io.read(path)
    np.savez(path, data=np.array([None]), indices=[0], indptr=[0, 1], format=b"csr", shape=[1, 1])
    with pytest.raises(FileFormatError):
        matchwood.io.read(path)
    path.write_bytes(b"hello")
    with pytest.raises(FileFormatError):
        matchwood.io.read(path)


@pytest.mark.slow
def test_cut_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.csr_array(np.eye(2)))
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError):
            matchwood.io.read(path)


@pytest.mark.slow
def test_a_flipped_byte_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    A = sp.csr_array(np.eye(2))
    sp.save_npz(path, A)
    content = bytearray(path.read_bytes())
    for at in range(0, len(content), 3):
        content[at] ^= 0x55
        path.write_bytes(bytes(content))
        content[at] ^= 0x55
        try:
            B = matchwood.io.read(path)
        except FileFormatError:
            continue
        assert (A != B).nnz == 0

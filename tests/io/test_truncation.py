"""A file cut off at any byte is an error or, where that cannot be known, an honest shorter list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood.errors import FileFormatError
from matchwood.io.files import write_pieces

SAMPLES = {
    "real.mtx": "%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 1e10\n3 1 -125\n",
    "pattern.mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n12 12 2\n2 1\n12 10\n",
    "dense.mtx": "%%MatrixMarket matrix array real general\n2 2\n1.5\n0\n3\n44\n",
    "plain.graph": "% c\n12 3\n12\n\n\n10\n\n\n\n12\n\n4\n\n1 8\n",
    "weighted.graph": "3 2 11\n10 2 55\n20 1 55 3 66\n30 2 66\n",
    "isolated.graph": "3 1 10\n5 2\n6 1\n77\n",
    "roads.gr": "c roads\np sp 12 3\na 1 12 803\nc\na 12 1 803\na 10 11 125\n",
    "flow.max": "p max 12 2\nn 1 s\nn 12 t\na 1 11 10\na 11 12 25\n",
    "colours.col": "c\np edge 12 3\nn 10 25\ne 1 12\ne 10 11\ne 12 11\n",
    "points.co": "p aux sp co 2\nv 1 -735 410\nv 2 -736 411\n",
    "web.graph-txt": "12\n10 11\n\n0\n\n\n\n\n\n\n1 2 11\n\n10 11\n",
    "nets.hgr": "3 12\n1 12\n10 11 12\n2 10\n",
    "nets_weighted.hgr": "2 3 11\n15 1 2\n16 3\n17\n18\n19\n",
    "snap.txt": "# Directed\n# Nodes: 12 Edges: 3\n0\t10\n10\t11\n11\t10\n",
    "wayne.txt": "12\n3\n0 10 0.25\n10 11 0.125\n11 10 12\n",
}
UNCOUNTED = {
    "list.txt": "0 10\n10 11\n# c\n11 100\n",
    "list.csv": "from,to,weight\n0,10,0.25\n10,11,125\n",
}


def same(A: Any, B: Any) -> bool:
    return A.shape == B.shape and A.nnz == B.nnz and (A != B).nnz == 0


@pytest.mark.parametrize("name", SAMPLES)
def test_formats_with_counts(tmp_path: Path, name: str) -> None:
    path, content = tmp_path / name, SAMPLES[name].encode()
    path.write_bytes(content)
    matchwood.io.read(path)
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError, match=rf"{name}, line \d+: ") as caught:
            matchwood.io.read(path)
        line = int(re.findall(r", line (\d+): ", str(caught.value))[0])
        assert 1 <= line <= content[:size].count(b"\n") + 1


@pytest.mark.parametrize("name", UNCOUNTED)
def test_lists_without_counts(tmp_path: Path, name: str) -> None:
    path, content = tmp_path / name, UNCOUNTED[name].encode()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        if size and content[:size].endswith(b"\n"):
            lines = content[:size].decode().splitlines()
            edges = [line.replace(",", " ").split() for line in lines if line[0].isdigit()]
            assert matchwood.io.read(path).nnz == len(edges)
        else:
            with pytest.raises(FileFormatError, match=rf"{name}, line \d+: "):
                matchwood.io.read(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("name", ["list.txt", "real.mtx"])
def test_compressed(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / (name + suffix)
    text = {**SAMPLES, **UNCOUNTED}[name].encode()
    write_pieces(path, [text])
    whole, content = matchwood.io.read(path), path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError, match=r", line \d+: the compressed data"):
            matchwood.io.read(path)
    changed = bytearray(content)
    for at in range(len(content)):
        changed[at] ^= 0xFF
        path.write_bytes(bytes(changed))
        changed[at] ^= 0xFF
        try:
            assert same(matchwood.io.read(path), whole)  # a byte of the header that says nothing
        except FileFormatError:
            continue


def test_cut_inside_a_large_compressed_file_names_the_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    text = "".join(f"{u} {v}\n" for u, v in rng.integers(0, 10**6, (200_000, 2)).tolist())
    path = tmp_path / "list.txt.gz"
    write_pieces(path, [text.encode()])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileFormatError, match="the compressed data ends early") as caught:
        matchwood.io.read(path)
    line = int(re.findall(r", line (\d+): ", str(caught.value))[0])
    assert 90_000 < line < 110_000


def test_scipy_alone_would_read_a_wrong_number() -> None:
    """Why the lines are checked first: this is what is known of the reader underneath."""
    import io

    from scipy.io import mmread

    content = b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2,5\n"
    assert sp.coo_array(mmread(io.BytesIO(content))).data.tolist() == [2.0]

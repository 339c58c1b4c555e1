"""Names, compression, and files that appear whole or not at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood.errors import FileFormatError
from matchwood.io import files, options

TEXT = b"0 1\n1 0\n"


def zst(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zst),
    ],
)
def test_files_of_other_tools(tmp_path: Path, suffix: str, compress: object) -> None:
    assert callable(compress)
    path = tmp_path / f"list.txt{suffix}"
    path.write_bytes(compress(TEXT))
    assert matchwood.io.read(path).nnz == 2
    assert matchwood.io.read(str(path)).nnz == 2
    path.write_bytes(compress(TEXT) + compress(b"1 1\n"))  # as pigz, bgzip and cat write
    assert matchwood.io.read(path).nnz == 3


def test_gzip_padding_and_garbage(tmp_path: Path) -> None:
    path = tmp_path / "list.txt.gz"
    path.write_bytes(gzip.compress(TEXT) + b"\0" * 100)
    assert matchwood.io.read(path).nnz == 2
    path.write_bytes(gzip.compress(TEXT) + b"garbage")
    with pytest.raises(FileFormatError, match="line 3: the compressed data is damaged"):
        matchwood.io.read(path)
    path.write_bytes(TEXT)
    with pytest.raises(FileFormatError, match="line 1: the compressed data is damaged"):
        matchwood.io.read(path)


def test_many_small_members(tmp_path: Path) -> None:
    path = tmp_path / "list.txt.gz"
    path.write_bytes(b"".join(gzip.compress(f"{i} {i + 1}\n".encode()) for i in range(3000)))
    assert matchwood.io.read(path).nnz == 3000


def test_zst_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list.txt.zst"
    path.write_bytes(b"")  # not looked at
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install matchwood\[zstd\]"):
        matchwood.io.read(path)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.mtx", "mtx"),
        ("a.b.MTX.GZ", "mtx"),
        ("a.txt", "edges"),
        ("a.csv.zst", "edges"),
        ("out.wiki", "edges"),
        ("out.mtx", "mtx"),
        ("out.wiki.bz2", "edges"),
        ("a.graph", "metis"),
        ("a.graph-txt.gz", "graph-txt"),
        ("a.gr", "gr"),
        ("a.clq", "col"),
        ("a.mtx.hgr.gz", "hgr"),
        ("USA-road-d.NY.co.gz", "co"),
        ("a.npz", "npz"),
    ],
)
def test_format_by_name(name: str, format: str) -> None:
    assert options.format_of(name, None, "read") == format


@pytest.mark.parametrize("name", ["a", "a.gz", "a.xyz", "a.mtx.zip", ""])
def test_unknown_names(name: str) -> None:
    with pytest.raises(ValueError, match=r"cannot tell the format|name of a file"):
        matchwood.io.read(name)
    with pytest.raises(ValueError, match=r"cannot tell the format|name of a file"):
        matchwood.io.write(name, np.eye(2))


def test_a_folder_is_for_ranks(tmp_path: Path) -> None:
    folder = tmp_path / "saved.txt"
    folder.mkdir()
    for path in (tmp_path, folder):
        with pytest.raises(IsADirectoryError, match="read with comm="):
            matchwood.io.read(path)


def test_format_overrides_the_name(tmp_path: Path) -> None:
    path = tmp_path / "graph.data"
    path.write_bytes(TEXT)
    assert matchwood.io.read(path, format="edges").nnz == 2
    with pytest.raises(ValueError, match="format must be one of 'mtx', 'edges'"):
        matchwood.io.read(path, format="gml")
    with pytest.raises(ValueError, match="format must be one of"):
        matchwood.io.write(path, np.eye(2), format="hgr")


def test_options_of_other_formats(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    matchwood.io.write(path, np.eye(2))
    with pytest.raises(ValueError, match=r"read: base, compact cannot be set .* format mtx"):
        matchwood.io.read(path, base=1, compact=True)
    with pytest.raises(ValueError, match="duplicates cannot be set"):
        matchwood.io.read(path, duplicates="sum")
    with pytest.raises(ValueError, match="for edge lists, not for mtx"):
        matchwood.io.write(path, np.eye(2), base=1)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        matchwood.io.read(tmp_path / "nothing.txt")
    with pytest.raises(OSError):
        matchwood.io.write(tmp_path / "no" / "folder.txt", np.eye(2))


def test_names(tmp_path: Path) -> None:
    path = tmp_path / "names.txt.gz"
    path.write_bytes(gzip.compress("ada\r\ngrace hopper\n世界\n".encode()))
    assert matchwood.io.read_names(path) == ["ada", "grace hopper", "世界"]
    path = tmp_path / "names.txt"
    for content, message in [
        (b"a\n\nb\n", "line 2: the line is empty"),
        (b"a\n\xff\n", "line 2: not a line of text"),
        (b"a\nb", "line 2: the file ends without a newline"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=message):
            matchwood.io.read_names(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)

    def pieces():  # type: ignore[no-untyped-def]
        yield b"0 5\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_pieces(path, pieces())
    assert path.read_bytes() == TEXT
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions and links")
def test_permissions_and_links(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    before = os.umask(0o022)
    try:
        matchwood.io.write(path, np.eye(2))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o600)
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    matchwood.io.write(link, np.ones((2, 2)))
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert matchwood.io.read(path).nnz == 4


@pytest.mark.skipif(os.name == "nt", reason="Windows has no /dev/null")
def test_write_to_a_device() -> None:
    matchwood.io.write("/dev/null", np.eye(2), format="edges")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_the_same_matrix_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"a.txt{suffix}", tmp_path / f"b.txt{suffix}"
    matchwood.io.write(first, np.eye(3))
    matchwood.io.write(second, np.eye(3))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_reading_keeps_numba_out_until_text_is_parsed(tmp_path: Path) -> None:
    from support import run_script

    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.csr_array(np.eye(2)))
    script = """
        import sys, matchwood
        print(matchwood.io.read(sys.argv[1]).nnz, "numba" in sys.modules)
    """
    assert run_script(tmp_path, script, str(path)) == "2 False"

"""Bytes of files, plain or compressed: whole files in, whole files out.

Reading gives the text even of a damaged file up to the damage, so that an error can name the line.
Writing goes to a new file beside the old one, which takes its name when it is complete: whoever
reads meanwhile sees the old file or the new one, never a part.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from matchwood.errors import FileFormatError

PathLike = str | os.PathLike[str]

PIECE = 1 << 20  # bytes handed to a decompressor at once

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

FORMATS = {
    "mtx": (".mtx", ".mm"),
    "edges": (".txt", ".tsv", ".csv", ".ssv", ".edges", ".edgelist", ".el", ".wel", ".dat"),
    "metis": (".graph", ".metis"),
    "hgr": (".hgr",),
    "gr": (".gr",),
    "col": (".col", ".clq"),
    "max": (".max",),
    "co": (".co",),
    "graph-txt": (".graph-txt",),
    "npz": (".npz",),
}
_FORMAT_OF = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}


def split_name(path: PathLike) -> tuple[str, str]:
    """(suffix of the format, suffix of the compression), in lower case, "" for none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return (suffixes[-1] if suffixes else ""), compression


def format_of(path: PathLike, chosen: str | None, caller: str) -> str:
    """The name of the format: as asked, else by the file's name."""
    if chosen is not None:
        if chosen not in FORMATS:
            known = ", ".join(FORMATS)
            raise ValueError(f"{caller}: format must be one of {known}, got {chosen!r}")
        return chosen
    suffix, _ = split_name(path)
    if suffix not in _FORMAT_OF:
        if Path(path).name.startswith("out."):  # as KONECT names its edge lists
            return "edges"
        known = " ".join(_FORMAT_OF)
        raise ValueError(
            f"{caller}: cannot tell the format of {os.fspath(path)} by its name "
            f"(known: {known}, and these with {' '.join(COMPRESSIONS)}); pass format="
        )
    return _FORMAT_OF[suffix]


def read_bytes(path: PathLike) -> bytes:
    """The content of a file, decompressed if its name says so."""
    content = Path(path).read_bytes()
    _, compression = split_name(path)
    if not compression:
        return content
    text, damage = _expand(content, _decompressor(compression))
    if damage is not None:
        line = text.count(b"\n") + 1
        raise FileFormatError(f"{os.fspath(path)}, line {line}: {damage}")
    return text


def _expand(content: bytes, new_decoder: Callable[[], Any]) -> tuple[bytes, str | None]:
    """The decompressed text, as far as it goes, and what is wrong after it, if anything.

    A file may be several compressed streams one after the other, as pigz and bgzip write.
    """
    view = memoryview(content)
    text: list[bytes] = []
    decoder: Any = None
    for start in range(0, len(view), PIECE):
        piece: Any = view[start : start + PIECE]
        while len(piece):
            if decoder is None:
                decoder = new_decoder()
            elif decoder.eof:
                piece = bytes(piece).lstrip(b"\0")  # gzip pads with zeros
                if not piece:
                    break
                decoder = new_decoder()
            try:
                text.append(decoder.decompress(piece))
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
                return b"".join(text), f"the compressed data is damaged ({error})"
            except Exception as error:
                if type(error).__name__ != "ZstdError":  # its class belongs to an optional package
                    raise
                return b"".join(text), f"the compressed data is damaged ({error})"
            piece = decoder.unused_data if decoder.eof else b""
    if decoder is None or not decoder.eof:
        return b"".join(text), "the compressed data ends early: the file is cut off"
    return b"".join(text), None


def _decompressor(compression: str) -> Callable[[], Any]:
    if compression == ".gz":
        return lambda: zlib.decompressobj(wbits=31)
    if compression == ".bz2":
        return bz2.BZ2Decompressor
    if compression == ".xz":
        return lzma.LZMADecompressor
    zstd = _zstd()
    if hasattr(zstd, "ZstdFile"):
        return zstd.ZstdDecompressor  # type: ignore[no-any-return]
    return lambda: zstd.ZstdDecompressor().decompressobj()


def _zstd() -> Any:
    """Python's own module (3.14), else the package zstandard."""
    with contextlib.suppress(ImportError):
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return zstd
    try:
        import zstandard
    except ImportError:
        raise ModuleNotFoundError(
            "files that end in .zst need the package zstandard: pip install matchwood[zstd]"
        ) from None
    return zstandard


def write_pieces(path: PathLike, pieces: Iterable[bytes]) -> None:
    """Write a file, compressed if its name says so, all of it or nothing."""
    _, compression = split_name(path)
    with _replacing(path) as raw, _compressor(raw, compression) as stream:
        for piece in pieces:
            stream.write(piece)


@contextlib.contextmanager
def _replacing(path: PathLike) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe, /dev/stdout: nothing to replace
        with target.open("wb") as stream:
            yield stream
        return
    # not tempfile: its files are private to the user, whatever the umask
    fresh = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        with fresh.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            os.chmod(fresh, target.stat().st_mode & 0o7777)
        os.replace(fresh, target)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


@contextlib.contextmanager
def _compressor(raw: BinaryIO, compression: str) -> Iterator[Any]:
    if not compression:
        yield raw
    elif compression == ".gz":
        # no name and no time inside: the same matrix gives the same bytes
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream:
            yield stream
    elif compression == ".bz2":
        with bz2.open(raw, "wb") as stream:
            yield stream
    elif compression == ".xz":
        with lzma.open(raw, "wb") as stream:
            yield stream
    else:
        zstd = _zstd()
        if hasattr(zstd, "ZstdFile"):
            checksum = {zstd.CompressionParameter.checksum_flag: 1}
            with zstd.ZstdFile(raw, "wb", options=checksum) as stream:
                yield stream
        else:
            compressor = zstd.ZstdCompressor(write_checksum=True)
            with compressor.stream_writer(raw, closefd=False) as stream:
                yield stream

"""Compressed bytes in and out, a small step at a time: Ctrl-C is heard between two steps.

A few hundred bytes can unpack to terabytes, so `expanded` stops at a limit.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from matchwood.gate.resources import available_memory

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

PIECE = 1 << 18  # compressed bytes handed to a decoder at once
BYTES_PER_STEP = 1 << 20  # that it may give back at once: 3 ms of gzip, 40 ms of bzip2
ZSTD_PIECE = 1 << 10  # the package zstandard has no such bound; a byte gives 32 KiB at most
_ZLIB = type(zlib.decompressobj())
LEAST_MEMORY = 1 << 28  # bytes that an xz decoder may take in any case


class Expansion:
    """The text of a compressed file, as far as it goes, and what is wrong after it, if anything."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.damage: str | None = None
        self.too_much = False  # the limit was reached, there may be more


class Damaged(ValueError):
    """Compressed data that no compressor wrote, or that is cut off; the message says which."""


def expanded(content: bytes | bytearray, compression: str, limit: int) -> Expansion:
    """Decompress at most `limit` bytes."""
    found = Expansion()
    try:
        for text in unpacked([content], compression):
            found.text += text
            if len(found.text) > limit:
                found.too_much = True
                break
    except Damaged as damage:
        found.damage = str(damage)
    return found


def unpacked(stored: Iterable[bytes | bytearray], compression: str) -> Iterator[bytes]:
    """The bytes behind compressed ones, a step at a time; `Damaged` where they end or break.

    A file may be several compressed streams one after the other, as pigz and bgzip write.
    """
    new_decoder, piece_size = _decoder(compression)
    decoder: Any = None
    for content in stored:
        view = memoryview(content)
        position = 0
        while position < len(view):
            if decoder is None or decoder.eof:
                if decoder is not None:
                    position = _past_zeros(view, position)
                    if position == len(view):
                        break
                decoder = new_decoder()
            piece = view[position : position + piece_size]
            position += len(piece)
            try:
                yield from _steps(decoder, piece)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
                raise Damaged(f"the compressed data is damaged ({error})") from None
            except Exception as error:
                if type(error).__name__ != "ZstdError":  # its class belongs to an optional package
                    raise
                raise Damaged(f"the compressed data is damaged ({error})") from None
            if decoder.eof:
                position -= len(decoder.unused_data)
    if decoder is None or not decoder.eof:
        raise Damaged("the compressed data ends early: the file is cut off")


def _past_zeros(view: memoryview, position: int) -> int:
    """Where the next stream starts: gzip pads with zeros."""
    while position < len(view) and view[position] == 0:
        rest = bytes(view[position : position + PIECE])
        position += len(rest) - len(rest.lstrip(b"\0"))
    return position


def _steps(decoder: Any, piece: memoryview) -> Iterator[bytes]:
    """All that the decoder makes of a piece, at most BYTES_PER_STEP bytes at a time."""
    if isinstance(decoder, _ZLIB):  # keeps nothing back, it returns the rest
        rest: Any = piece
        while len(rest) and not decoder.eof:
            yield decoder.decompress(rest, BYTES_PER_STEP)
            rest = decoder.unconsumed_tail
        # what the last step left inside: a single compressed byte may become more than that
        while not decoder.eof and (text := decoder.decompress(b"", BYTES_PER_STEP)):
            yield text
    elif hasattr(decoder, "needs_input"):  # bz2, lzma, and zstd of Python 3.14
        yield decoder.decompress(piece, BYTES_PER_STEP)
        while not (decoder.needs_input or decoder.eof):
            yield decoder.decompress(b"", BYTES_PER_STEP)
    else:
        yield decoder.decompress(piece)


def _decoder(compression: str) -> tuple[Callable[[], Any], int]:
    """(what makes a decoder, compressed bytes that it takes at once)."""
    if compression == ".gz":
        return lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), PIECE
    if compression == ".bz2":
        return bz2.BZ2Decompressor, PIECE
    if compression == ".xz":
        # the header of a file says how much memory its decoder takes: up to 4 GiB
        memory = max(LEAST_MEMORY, available_memory() or 0)
        return lambda: lzma.LZMADecompressor(memlimit=memory), PIECE
    zstd = zstd_package()
    if hasattr(zstd, "ZstdFile"):
        return zstd.ZstdDecompressor, PIECE
    return lambda: zstd.ZstdDecompressor().decompressobj(), ZSTD_PIECE


def zstd_package() -> Any:
    """Python's own module (3.14) or its backport, else the package zstandard."""
    with contextlib.suppress(ImportError):
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return zstd
    with contextlib.suppress(ImportError):
        from backports import zstd  # type: ignore[import-not-found, no-redef, unused-ignore]

        return zstd
    try:
        import zstandard
    except ImportError:
        raise ModuleNotFoundError(
            "files that end in .zst need the package zstandard: pip install matchwood[zstd]"
        ) from None
    return zstandard


@contextlib.contextmanager
def compressor(raw: BinaryIO, compression: str) -> Iterator[Any]:
    """A stream that compresses what is written to it into `raw`."""
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
        zstd = zstd_package()
        if hasattr(zstd, "ZstdFile"):
            checksum = {zstd.CompressionParameter.checksum_flag: 1}
            with zstd.ZstdFile(raw, "wb", options=checksum) as stream:
                yield stream
        else:
            compressing = zstd.ZstdCompressor(write_checksum=True)
            with compressing.stream_writer(raw, closefd=False) as stream:
                yield stream

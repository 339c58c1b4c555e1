"""Bytes of files, plain or compressed: whole files in, whole files out.

Reading gives the text even of a damaged file up to the damage, so that an error can name the line.
Writing goes to a new file beside the old one, which takes its name when it is complete: readers
see the old file or the new one, never a part, and a full disk leaves the old one.

Compressed bytes go a small step at a time: Ctrl-C takes effect between two steps.  A few hundred
bytes can unpack to terabytes, so `expanded` stops at a limit.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import threading
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from matchwood import arguments, engines
from matchwood.errors import FileFormatError, OutOfMemory
from matchwood.gate.plain_files import PlainFile, open_file
from matchwood.gate.resources import available_memory, require_memory
from matchwood.io.options import NO_LIMITS, Limits, PathLike, split_name
from matchwood.io.text import Text

T = TypeVar("T")

LOOKS = 0.05  # seconds between looks at what another thread does
PIECE = 1 << 20  # bytes read from a pipe at once
WRITTEN = 1 << 16  # bytes compressed and written at once: 20 ms of xz
WRITTEN_PLAIN = 1 << 23  # the same without compression: a file of large pieces is mapped quickly

COMPRESSED_PIECE = 1 << 18  # compressed bytes handed to a decoder at once
BYTES_PER_STEP = 1 << 20  # that it may return at once: 3 ms of gzip, 40 ms of bzip2
ZSTD_PIECE = 1 << 10  # the package zstandard has no such limit; a byte gives 32 KiB at most
_ZLIB = type(zlib.decompressobj())
LEAST_MEMORY = 1 << 28  # bytes that an xz decoder may take in any case


def read_bytes(path: PathLike, limits: Limits = NO_LIMITS, caller: str = "read") -> bytearray:
    """The content of a file, decompressed if its name says so."""
    content = _stored(path, caller)
    _, compression = split_name(path)
    if not compression:
        return content
    limit = limits.most_bytes(len(content))
    free = available_memory()
    most = limit if free is None else min(limit, free)
    found = expanded(content, compression, most)
    name, line = os.fspath(path), found.text.count(b"\n") + 1
    if found.too_much and most < limit:
        raise OutOfMemory(f"{caller}: {name} unpacks to more than the {most} bytes that are free")
    if found.too_much:
        raise FileFormatError(
            f"{name}, line {line}: {len(content)} compressed bytes unpack to more than {limit}; "
            f"pass most_bytes= to read more"
        )
    if found.damage is not None:
        raise FileFormatError(f"{name}, line {line}: {found.damage}")
    return found.text


def read_text(
    path: PathLike,
    limits: Limits = NO_LIMITS,
    caller: str = "read",
    strict: bool = True,
    threads: int | None = None,
) -> Text:
    """A file, decompressed if its name says so, without a byte order mark.

    `strict` and `threads` are only checked, before the file is read.  A plain file is finished if
    it ends in a newline.  A compressed one always is: its data has a mark at the end.
    """
    limits = limits.checked(caller)
    path = arguments.path(caller, "path", path)
    arguments.flag(caller, "strict", strict)
    engines.check_threads(threads)
    content = read_bytes(path, limits, caller)
    return Text.of(path, content, bool(split_name(path)[1]), limits, caller)


def _stored(path: PathLike, caller: str) -> bytearray:
    """The bytes as they lie in the file, which may be a pipe."""
    file, name = open_file(path), os.fspath(path)
    with file:
        if isinstance(file, PlainFile) and file.size:
            require_memory(caller, file.size, name)
            content = file[: file.size]
            file.require_unchanged()
            return content
        stream = file.stream if isinstance(file, PlainFile) else file  # of /proc, say: no size
        content, piece, room = bytearray(), memoryview(bytearray(PIECE)), 0
        while count := stream.readinto(piece):
            if len(content) + count > room:
                room = 2 * (len(content) + count)
                require_memory(caller, room - len(content), name)
            content += piece[:count]
    return content


def write_pieces(path: PathLike, pieces: Iterable[bytes]) -> None:
    """Write a file, compressed if its name says so, all of it or nothing."""
    _, compression = split_name(path)
    step = WRITTEN if compression else WRITTEN_PLAIN
    with replacing(path) as raw, compressor(raw, compression) as stream:
        for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(view), step):
                stream.write(view[start : start + step])


@contextlib.contextmanager
def replacing(
    path: PathLike, final: Callable[[], PathLike] | None = None
) -> Iterator[BinaryIO]:  # fmt: skip
    """A stream whose bytes become the file when the block ends without an error.

    They go to a new file in the same folder, are forced to the disk, and take the name and the
    permissions of the old file; on an error that one stays as it was.  `final` returns the name,
    in the same folder, where it is known only at the end.  What is no plain file (a pipe,
    /dev/stdout) is written directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "the file is write-protected", os.fspath(path))
    # not tempfile: its files are private to the user, whatever the umask
    fresh = target.with_name(f".{target.name[:200]}.{uuid.uuid4().hex[:12]}.part")
    try:
        with fresh.open("xb") as stream:
            yield stream
            stream.flush()
            _sync(stream.fileno())
        if final is not None:
            target = target.with_name(Path(final()).name)
        if target.exists():
            os.chmod(fresh, target.stat().st_mode & 0o7777)
        os.replace(fresh, target)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def _sync(number: int) -> None:
    """Force a file to the disk; Ctrl-C does not wait for the disk, which may take seconds."""
    kept, ended = os.dup(number), Future[None]()

    def sync() -> None:
        try:
            try:
                os.fsync(kept)
            finally:
                os.close(kept)  # before the file gets its name: some systems refuse open ones
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    try:
        threading.Thread(target=sync, name="matchwood-sync", daemon=True).start()
    except RuntimeError:  # no thread can be had
        sync()
    outcome(ended)


def outcome(future: Future[T]) -> T:
    """The result of a future, for which Ctrl-C need not wait.

    A lock without a time limit does not always hear it: Polars, once imported, has system calls go
    on after the signal.
    """
    while True:
        try:
            return future.result(LOOKS)
        except TimeoutError:
            if future.done():  # it is its own error, or it ended just now
                return future.result()


# Compression


class Expansion:
    """The text of a compressed file, as far as it goes, and what is wrong after it, if anything."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.damage: str | None = None
        self.too_much = False  # the limit was reached, there may be more


class Damaged(ValueError):
    """Compressed data that no compressor wrote, or that is cut off; the message says which."""


class CutOff(Damaged):
    """Compressed data that ends early; what came before is sound."""


def expanded(content: bytes | bytearray, compression: str, limit: int) -> Expansion:
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
    """The decompressed bytes, a step at a time; `Damaged` where they are cut off or wrong.

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
        raise CutOff("the compressed data ends early: the file is cut off")


def _past_zeros(view: memoryview, position: int) -> int:
    """Where the next stream starts: gzip pads with zeros."""
    while position < len(view) and view[position] == 0:
        rest = bytes(view[position : position + COMPRESSED_PIECE])
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
    """(function that makes a decoder, compressed bytes that it takes at once)."""
    if compression == ".gz":
        return lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), COMPRESSED_PIECE
    if compression == ".bz2":
        return bz2.BZ2Decompressor, COMPRESSED_PIECE
    if compression == ".xz":
        # the header of a file says how much memory its decoder takes: up to 4 GiB
        memory = max(LEAST_MEMORY, available_memory() or 0)
        return lambda: lzma.LZMADecompressor(memlimit=memory), COMPRESSED_PIECE
    zstd = zstd_package()
    if hasattr(zstd, "ZstdFile"):
        return zstd.ZstdDecompressor, COMPRESSED_PIECE
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

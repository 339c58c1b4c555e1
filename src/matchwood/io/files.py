"""Bytes of files, plain or compressed: whole files in, whole files out.

Reading gives the text even of a damaged file up to the damage, so that an error can name the line.
Writing goes to a new file beside the old one, which takes its name when it is complete: whoever
reads meanwhile sees the old file or the new one, never a part, and a full disk costs nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO, TypeVar

from matchwood import arguments
from matchwood.arguments import one_of
from matchwood.errors import FileFormatError, OutOfMemory
from matchwood.gate.plain_files import PlainFile, open_file
from matchwood.gate.resources import available_memory, require_memory
from matchwood.io.compression import COMPRESSIONS, compressor, expanded
from matchwood.io.limits import NO_LIMITS, Limits

PathLike = str | os.PathLike[str]
T = TypeVar("T")

LOOKS = 0.05  # seconds between looks at what another thread does
PIECE = 1 << 20  # bytes read from a pipe at once
WRITTEN = 1 << 16  # bytes compressed and written at once: 20 ms of xz
WRITTEN_PLAIN = 1 << 23  # the same without compression: large pieces are mapped quickly afterwards

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
    path = arguments.path(caller, "path", path)
    if chosen is not None:
        return str(one_of(caller, "format", chosen, tuple(FORMATS)))
    suffix, _ = split_name(path)
    if suffix not in _FORMAT_OF:
        if Path(path).name.startswith("out."):  # as KONECT names its edge lists
            return "edges"
        known = " ".join(_FORMAT_OF)
        raise ValueError(
            f"{caller}: cannot tell the format of {arguments.shown(path)} by its name "
            f"(known: {known}, and these with {' '.join(COMPRESSIONS)}); pass format="
        )
    return _FORMAT_OF[suffix]


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
            f"pass most_bytes= to read so many"
        )
    if found.damage is not None:
        raise FileFormatError(f"{name}, line {line}: {found.damage}")
    return found.text


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

    `final` gives the name instead, where that is known only then; in the same folder.

    They go to a new file in the same folder, are forced to the disk, and take the name and the
    permissions of the old file; on an error that one stays as it was.  What is no plain file (a
    pipe, /dev/stdout) is written directly.
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

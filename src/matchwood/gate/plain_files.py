"""Plain files that other programs may change while they are read.

Nothing is mapped: where a mapped file gets shorter, the system kills the process that reads it.
Bytes are read into own memory and checked there.  A file that has fewer bytes than when it was
opened, or was written to since, is refused.
"""

from __future__ import annotations

import io
import os
import stat
import threading
import weakref
from typing import Any, NamedTuple

from matchwood.errors import FileFormatError

PIECE = 1 << 24  # bytes read at once: 5 ms, so that Ctrl-C takes effect
STEP = 1 << 20  # bytes read and then copied at a time: they are still in a cache
KINDS = (
    (stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)  # fmt: skip


class Identity(NamedTuple):
    """Which file it is, and which contents it has, as far as size and time of writing show.

    The clock has ticks of some milliseconds: two writes within a tick look like one.
    """

    device: int
    number: int
    size: int
    written: int  # nanoseconds


def identity(stream: Any) -> Identity:
    facts = os.fstat(stream.fileno())
    return Identity(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)


def kind_of(stream: Any) -> str:
    """ "" for a plain file, else what it is, in words."""
    mode = os.fstat(stream.fileno()).st_mode
    if stat.S_ISREG(mode):
        return ""
    return next((words for is_kind, words in KINDS if is_kind(mode)), "something else")


def changed(name: str) -> FileFormatError:
    """The error for a file that was written to, or replaced, while it was read."""
    return FileFormatError(
        f"{name}, byte 0: the file was changed while it was read; read it again, and let writers "
        "replace it by another file of its name"
    )


def open_file(path: Any) -> PlainFile | io.FileIO:
    """A plain file, or the stream of a pipe or a terminal; devices are refused: some never end."""
    stream = open(path, "rb", buffering=0)  # noqa: SIM115
    try:
        kind = kind_of(stream)
        if kind == "a device" and not stream.isatty():
            raise FileFormatError(f"{os.fspath(path)}: expected a file or a pipe, got {kind}")
    except BaseException:
        stream.close()
        raise
    return stream if kind else PlainFile(path, stream)


def _without_waiting(path: Any, flags: int) -> int:
    """Open a file; a pipe at once, whether it has a writer or not."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class PlainFile:
    """A plain file, opened once; several threads may read it.

    `stream` is the file where it is open already; it is closed with this object.  `known` is its
    Identity when it was opened before, which must be the same still.
    """

    def __init__(self, path: Any, stream: Any = None, known: Identity | None = None) -> None:
        self.name = os.fspath(path)
        if stream is None:
            stream = open(path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115
        self.stream: io.FileIO = stream
        self._turn = threading.Lock()
        try:
            kind = kind_of(stream)
            if kind:
                raise FileFormatError(f"{self.name}: expected a plain file, got {kind}")
            self.identity = identity(stream)
            if known is not None and self.identity != known:
                raise changed(self.name)
        except BaseException:
            stream.close()
            raise
        self.size = self.identity.size
        self.close = weakref.finalize(self, stream.close)  # at the latest when nobody has it

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytearray:
        """The bytes start..stop, which must be in the file.

        Memory grows as they are read: Ctrl-C could not stop bytearray(size), which clears it all.
        """
        start, found = part.start or 0, bytearray()
        piece = memoryview(bytearray(min(STEP, part.stop - start)))
        while len(found) < part.stop - start:
            goal = piece[: part.stop - start - len(found)]
            self.fill(start + len(found), goal)
            found += goal
        return found

    def __enter__(self) -> PlainFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fill(self, start: int, goal: Any) -> None:
        """Read from byte `start` on until all of `goal` (contiguous memory) is filled."""
        view, done = memoryview(goal).cast("B"), 0
        while done < len(view):
            count = self._read_at(start + done, view[done : done + PIECE])
            if not count:
                raise FileFormatError(
                    f"{self.name}, byte {start + done}: the file became shorter while it was read"
                )
            done += count

    def _read_at(self, start: int, goal: memoryview) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self.stream.fileno(), [goal], start)
        with self._turn:  # Windows
            self.stream.seek(start)
            return self.stream.readinto(goal) or 0

    def require_unchanged(self, *, may_grow: bool = False) -> None:
        """Raise if the file was written to since it was opened; it may have grown, if so asked."""
        now = identity(self.stream)
        if now != self.identity and not (may_grow and now.size > self.size):
            raise changed(self.name)

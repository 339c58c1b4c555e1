"""Matrices to archives, one after the other: a file, or a folder of files with so many each.

Nearly all of the time goes into zstd, which lets other threads run.  So matrices are packed ahead,
one by each thread, and written in order: the bytes do not depend on the number of threads.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from matchwood import engines
from matchwood.arguments import count
from matchwood.io.files import outcome, replacing
from matchwood.sensing.archive import tar
from matchwood.sensing.archive.blob import Packer
from matchwood.sensing.traffic import TrafficMatrix

EPOCH = datetime.datetime(1970, 1, 1)  # of times; UTC
ENDING = bytes(2 * tar.BLOCK)


WRITTEN = 1 << 22  # bytes that are written at once
SMALL = 1 << 12  # links of a matrix that is packed at once: 0.4 ms for so many random ones (Xeon),
# and a thread of the pool would copy what it has packed


class _Waiting(NamedTuple):
    """A matrix that is being packed."""

    pieces: Future[list[Any]]
    packets: int
    time: int | None


class ArchiveWriter:
    """Takes matrices one at a time; a context manager.  A file appears when it is complete."""

    def __init__(
        self, caller: str, path: str, each: int, compression: str | None, level: int, threads: int
    ) -> None:
        self._caller = caller  # the function that messages name
        self.paths: list[Path] = []
        self.matrices = 0
        self._folder = Path(path) if _is_folder(path) else None
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._path, self._each = Path(path), each
        self._compression, self._level, self._threads = compression, level, threads
        self._packer = Packer(compression, level)
        self._packers = threading.local()  # each thread has its own
        self._stop = threading.Event()  # threads of the pool give up
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[_Waiting] = deque()
        self._stack = contextlib.ExitStack()
        self._stream: Any = None
        self._closed = False
        self._inside = 0  # matrices of the file that is open
        self._packets = 0
        self._time: int | None = None

    def add(self, matrix: TrafficMatrix, time: int | None = None) -> None:
        """Write a matrix behind those before it; `time` is that of its first packet."""
        if not isinstance(matrix, TrafficMatrix):
            kind = type(matrix).__name__
            raise TypeError(f"{self._caller}: matrices must be TrafficMatrix objects, got {kind}")
        if self._closed:
            raise ValueError(f"{self._caller}: the archive is closed, nothing can be added to it")
        if matrix.engine != "cpu":
            arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
            matrix = TrafficMatrix(*(engines.moved(array, "cpu") for array in arrays))
        time = None if time is None else count(self._caller, "time", time, -(1 << 63))
        self.matrices += 1
        if self._threads > 1 and self._compression and matrix.links >= SMALL:
            self._pool = self._pool or ThreadPoolExecutor(self._threads, "matchwood-archive")
            packed = self._pool.submit(self._packed, matrix)
            self._waiting.append(_Waiting(packed, matrix.packets, time))
            while len(self._waiting) > self._threads:  # so many are packed ahead
                self._write_first()
            return
        self._write_all()
        self._write(self._packer.pieces(matrix), matrix.packets, time)

    def _packed(self, matrix: TrafficMatrix) -> list[Any]:
        """By a thread of the pool.  Its buffers are used again, so what lies in them is copied."""
        if not hasattr(self._packers, "own"):
            self._packers.own = Packer(self._compression, self._level, self._stop)
        pieces = self._packers.own.pieces(matrix)
        return [bytes(p) if isinstance(p, memoryview) else p for p in pieces]

    def _write_first(self) -> None:
        first = self._waiting.popleft()
        self._write(outcome(first.pieces), first.packets, first.time)

    def _write_all(self) -> None:
        while self._waiting:
            self._write_first()

    def _write(self, pieces: list[Any], packets: int, time: int | None) -> None:
        if self._stream is None:
            self._open(time)
        size = sum(map(len, pieces))
        self._stream.write(tar.member_header(f"{self._inside}.grb", size))
        for found in pieces:
            piece: memoryview = memoryview(found)
            for k in range(0, len(piece), WRITTEN):  # Ctrl-C is heard in between
                self._stream.write(piece[k : k + WRITTEN])
        self._stream.write(bytes(-size % tar.BLOCK))
        self._inside += 1
        self._packets += packets
        if self._folder is not None and self._inside == self._each:
            self._finish()

    def _open(self, time: int | None = None) -> None:
        path = self._path
        if self._folder is not None:
            path = self._folder / f"{len(self.paths):06d}.tar"
        named = self._folder is not None and time is not None
        self._time = time if named else None
        final = self._final_name if named else None
        self._stream = self._stack.enter_context(replacing(path, final))
        self._inside = self._packets = 0
        self.paths.append(path)

    def _final_name(self) -> Path:
        """As the study names its files: when they begin, and how many packets they have."""
        assert self._folder is not None
        assert self._time is not None
        stem = f"{_stamp(self._time)}.{self._packets}"
        path, others = self._folder / f"{stem}.tar", 0
        while path in self.paths[:-1]:
            others += 1
            path = self._folder / f"{stem}_{others:03d}.tar"  # behind the others in their order
        self.paths[-1] = path
        return path

    def _finish(self) -> None:
        if self._stream is not None:
            self._stream.write(ENDING)
            self._stack.close()
            self._stream = None

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._closed = True
        try:
            if kind is None:
                self._write_all()
                if self._folder is None and self._stream is None:
                    self._open()  # an archive without matrices
                self._finish()
        except BaseException as wrong:
            kind, error, trace = type(wrong), wrong, wrong.__traceback__
            raise
        finally:
            if kind is not None:
                self._stop.set()
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
            if kind is not None:  # the file under way does not take its name
                self._stack.__exit__(kind, error, trace)


def _is_folder(path: Any) -> bool:
    return os.path.isdir(path) or os.fspath(path).endswith(("/", os.sep))


def _stamp(nanoseconds: int) -> str:
    """20241022-035742-648596: day, time and microseconds, UTC."""
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y%m%d-%H%M%S}-{rest // 1000:06d}"

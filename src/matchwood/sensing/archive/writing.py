"""Matrices to archives, one after the other: a file, or a folder of files with so many each."""

from __future__ import annotations

import contextlib
import datetime
import os
from pathlib import Path
from typing import Any

from matchwood import engines
from matchwood.arguments import integer
from matchwood.io.files import replacing
from matchwood.sensing.archive import tar
from matchwood.sensing.archive.blob import Packer
from matchwood.sensing.traffic import TrafficMatrix

EPOCH = datetime.datetime(1970, 1, 1)  # of times; UTC
ENDING = bytes(2 * tar.BLOCK)


class ArchiveWriter:
    """Takes matrices one at a time; a context manager.  A file appears when it is complete."""

    def __init__(self, path: Any, each: int, compression: str | None, level: int) -> None:
        self.paths: list[Path] = []
        self.matrices = 0
        self._folder = Path(path) if _is_folder(path) else None
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._path, self._each = Path(path), each
        self._packer = Packer(compression, level)
        self._stack = contextlib.ExitStack()
        self._stream: Any = None
        self._inside = 0  # matrices of the file that is open
        self._packets = 0
        self._time: int | None = None

    def add(self, matrix: TrafficMatrix, time: int | None = None) -> None:
        """Write a matrix behind those before it; `time` is that of its first packet."""
        if not isinstance(matrix, TrafficMatrix):
            kind = type(matrix).__name__
            raise TypeError(f"write_archive: matrices must be TrafficMatrix objects, got {kind}")
        if matrix.engine != "cpu":
            arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
            matrix = TrafficMatrix(*(engines.moved(array, "cpu") for array in arrays))
        if self._stream is None:
            self._open(None if time is None else _checked(time))
        pieces = self._packer.pieces(matrix)
        size = sum(map(len, pieces))
        self._stream.write(tar.member_header(f"{self._inside}.grb", size))
        for piece in pieces:
            self._stream.write(piece)
        self._stream.write(bytes(-size % tar.BLOCK))
        self._inside += 1
        self._packets += matrix.packets
        self.matrices += 1
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
            path = self._folder / f"{stem}-{others}.tar"
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
        if kind is not None:  # the file under way does not take its name
            self._stack.__exit__(kind, error, trace)
            return
        if self._folder is None and self._stream is None:
            self._open()  # an archive without matrices
        self._finish()


def _is_folder(path: Any) -> bool:
    return os.path.isdir(path) or os.fspath(path).endswith(("/", os.sep))


def _checked(time: Any) -> int:
    moment = integer("write_archive", "time", time)
    if not -(1 << 63) <= moment < 1 << 63:
        raise ValueError(f"write_archive: time must be nanoseconds of 64 bits, got {moment}")
    return moment


def _stamp(nanoseconds: int) -> str:
    """20241022-035742-648596: day, time and microseconds, UTC."""
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y%m%d-%H%M%S}-{rest // 1000:06d}"

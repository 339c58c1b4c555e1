"""Sums of runs: a binary tree in memory, runs on disk where memory is short.

Runs of the same level are merged as soon as there are two, so a link is moved once for each level.
When the runs in memory are larger than allowed, they become one run on disk.  At the end the keys
are cut into ranges so small that a range of all runs fits into memory, and the ranges are added up
one after the other, in order.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LINK_BYTES = 16  # a key and a count
WRITTEN = 1 << 22  # elements that are written or read at once
SAMPLE = 1 << 12  # every so many keys of a run on disk one is remembered, to cut ranges


class Stored(NamedTuple):
    """A run on disk."""

    keys: Path
    counts: Path
    size: int
    sample: Any  # every SAMPLE-th key


class Folder:
    """A folder of our own that goes with the objects that use it; nobody else may read it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="matchwood-"))  # mode 0700
        self._files = 0
        self.remove = weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)

    def file(self, kind: str) -> Path:
        self._files += 1
        return self.path / f"{self._files}.{kind}"


class RunSums:
    """Adds up runs of (keys, counts).

    Parameters
    ----------
    merge, combine : functions
        The sum of two runs, and of several.
    memory : int or None
        Bytes of runs that are kept in memory; None keeps all.
    folder : function
        Gives the folder for runs on disk when it is first needed.
    """

    def __init__(
        self,
        merge: Callable[..., Any],
        combine: Callable[..., Any],
        memory: int | None,
        folder: Callable[[], Folder],
    ) -> None:
        self._merge, self._combine = merge, combine
        self._memory = memory
        self._folder = folder
        self._levels: list[Any] = []
        self._stored: list[Stored] = []

    @property
    def on_disk(self) -> bool:
        return bool(self._stored)

    def add(self, run: Any) -> None:
        carry, level = run, 0
        while level < len(self._levels) and self._levels[level] is not None:
            carry, self._levels[level] = self._merge(self._levels[level], carry), None
            level += 1
        if level == len(self._levels):
            self._levels.append(None)
        self._levels[level] = carry
        if self._memory is not None and self._held() > self._memory:
            self._store(self.take())

    def _held(self) -> int:
        return sum(LINK_BYTES * run.keys.size for run in self._levels if run is not None)

    def take(self) -> Any:
        """The sum of what is in memory, which is empty afterwards."""
        runs = [run for run in self._levels if run is not None]
        self._levels = []
        return self._combine(runs)

    def _store(self, run: Any) -> None:
        folder = self._folder()
        paths = folder.file("keys"), folder.file("counts")
        for path, array in zip(paths, run, strict=True):
            append(path, array)
        self._stored.append(Stored(*paths, run.keys.size, run.keys[::SAMPLE].copy()))

    def parts(self, boundary: int) -> Iterator[Any]:
        """The sum as runs, each with larger keys than the one before.

        Keys that differ only in their lowest `boundary` bits are in one run.
        """
        if not self._stored:
            yield self.take()
            return
        if any(run is not None for run in self._levels):
            self._store(self.take())
        marks = self._marks(boundary)
        places = [_cuts(stored, marks) for stored in self._stored]
        for k in range(len(marks) + 1):
            pieces = [
                _read(stored, cut[k], cut[k + 1])
                for stored, cut in zip(self._stored, places, strict=True)
                if cut[k] < cut[k + 1]
            ]
            yield self._combine(pieces)
        for stored in self._stored:
            stored.keys.unlink()
            stored.counts.unlink()
        self._stored = []

    def _marks(self, boundary: int) -> list[Any]:
        """The first keys of the ranges but the first."""
        sample = np.sort(np.concatenate([stored.sample for stored in self._stored]))
        total = LINK_BYTES * sum(stored.size for stored in self._stored)
        parts = 1 + 2 * total // max(1, self._memory or total)
        at = [sample[sample.size * part // parts] for part in range(1, parts)]
        shift = np.uint64(boundary)
        return sorted({(mark >> shift) << shift for mark in at})


def append(path: Path, array: Any) -> None:
    """Write an array behind what a file has, in pieces: Ctrl-C is heard in between."""
    with path.open("ab") as file:
        for start in range(0, array.size, WRITTEN):
            np.ascontiguousarray(array[start : start + WRITTEN]).tofile(file)


def _cuts(stored: Stored, marks: list[Any]) -> list[int]:
    keys = np.memmap(stored.keys, np.uint64, "r")
    return [0, *(int(np.searchsorted(keys, mark)) for mark in marks), stored.size]


def _read(stored: Stored, start: int, end: int) -> Any:
    from matchwood.applications.sensing.traffic.cpu_runs import Run

    made = Run(np.empty(end - start, np.uint64), np.empty(end - start, np.int64))
    for array, path in zip(made, (stored.keys, stored.counts), strict=True):
        for at in range(0, array.size, WRITTEN):
            part = array[at : at + WRITTEN]
            part[:] = np.fromfile(path, array.dtype, part.size, offset=8 * (start + at))
    return made

"""Arrays of the host that are used once: pinned piece by piece while their rows travel.

To pin memory takes a little longer than to copy it over the bus, and a thread can do it while other
pieces travel.  So the rows of a large graph that is used once need not be copied on the host.  When
the call ends, nothing of it stays pinned.

On an H200 behind PCIe 5 memory is pinned at 50 GB/s in pieces of 64 MiB, by any number of threads,
and given free at 65.
"""

from __future__ import annotations

import itertools
import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.beyond.pinned import MAPPED, PORTABLE, unregister

Array = np.ndarray[Any, Any]

PIECE_BYTES = 64 << 20  # pieces begin at multiples of it
PIECES_AHEAD = 3  # of an array: some 4 ms of the bus
LEAST_BYTES = 64 << 20  # of all arrays: fewer pass through the ring as fast
MOST_BYTES = 5 << 30  # of all arrays: so much is given free within 100 ms, also after Ctrl-C


class Piece:
    """Memory from one place to another; `pinned` is None until somebody has tried."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.lock = threading.Lock()
        self.pinned: bool | None = None
        self.asked = False  # the thread was told to pin it


class Ahead:
    """Arrays whose pieces are pinned when they are needed, and some by a thread before that.

    Parameters
    ----------
    arrays : sequence of arrays
        Of the host, contiguous.
    device : int
        One of the call's.

    Attributes
    ----------
    reason : str
        Why a piece could not be pinned; empty if all could so far.
    """

    def __init__(self, arrays: Sequence[Array], device: int) -> None:
        self._arrays, self._device = arrays, device  # memory must not be given back while pinned
        self._pieces = [_pieces(array) for array in arrays]
        self._done: list[int] = []
        self._cupy, self._next = engines.cupy(), queue.SimpleQueue[Piece | None]()
        self.reason = ""
        weakref.finalize(self, unregister, self._cupy.cuda.runtime, self._done)
        self._thread = threading.Thread(target=self._work, daemon=True, name="matchwood pinning")
        self._thread.start()

    def holds(self, array: Array) -> bool:
        """Whether all of the array, which may be a part of a larger one, is pinned by now."""
        own, first, last = self._range(array)
        for piece in own[first:last]:
            self._pin(piece)
        for piece in own[last : last + PIECES_AHEAD]:
            if not piece.asked:
                piece.asked = True
                self._next.put(piece)
        return first < last and all(piece.pinned for piece in own[first:last])

    def runs(self, array: Array) -> Iterator[slice]:
        """The array in parts that are pinned as one: no copy may be longer."""
        own, first, last = self._range(array)
        ends = [(piece.end - array.ctypes.data) // array.itemsize for piece in own[first:last]]
        for begin, end in itertools.pairwise([0, *ends[:-1], array.size]):
            yield slice(begin, end)

    def _range(self, array: Array) -> tuple[list[Piece], int, int]:
        """The pieces of the array that this one lies in, and which of them it touches."""
        begin = array.ctypes.data
        end = begin + array.nbytes
        for own in self._pieces:
            if own and own[0].begin <= begin < end <= own[-1].end:
                before = own[0].begin // PIECE_BYTES
                first, last = begin // PIECE_BYTES - before, (end - 1) // PIECE_BYTES - before + 1
                return own, first, last
        return [], 0, 0

    def _pin(self, piece: Piece) -> None:
        runtime = self._cupy.cuda.runtime
        with piece.lock:
            if piece.pinned is not None:
                return
            piece.pinned = False
            if self.reason:
                return
            try:
                runtime.hostRegister(piece.begin, piece.end - piece.begin, PORTABLE | MAPPED)
            except runtime.CUDARuntimeError as error:  # a limit, or pages that others have pinned
                self.reason = f"pinning was refused: {error}"
                return
            self._done.append(piece.begin)
            piece.pinned = True

    def _work(self) -> None:
        with self._cupy.cuda.Device(self._device):
            while (piece := self._next.get()) is not None:
                self._pin(piece)

    def close(self) -> None:
        """Give the memory free; no device reads it any more."""
        while not self._next.empty():  # what was asked for is not needed
            self._next.get()
        self._next.put(None)
        self._thread.join()
        unregister(self._cupy.cuda.runtime, self._done)


def _pieces(array: Array) -> list[Piece]:
    begin, end = array.ctypes.data, array.ctypes.data + array.nbytes
    inner = range((begin // PIECE_BYTES + 1) * PIECE_BYTES, end, PIECE_BYTES)
    ends = [begin, *inner, end] if end > begin else []
    return [Piece(*pair) for pair in itertools.pairwise(ends)]


def worth_it(arrays: Sequence[Array]) -> bool:
    """Whether arrays that all travel once are better pinned ahead than copied through the ring."""
    nbytes = sum(array.nbytes for array in arrays)
    plain = all(
        array.flags.c_contiguous
        and not isinstance(array, np.memmap)
        and not isinstance(array.base, np.memmap)
        for array in arrays
    )
    return plain and LEAST_BYTES <= nbytes <= MOST_BYTES

"""Rounds on the device: captured launches, a convergence flag, a status word.

A launch from Python costs 8 us, one inside a captured graph 0.7 us (H200), so rounds that repeat
are captured once and replayed; the host reads a flag in pinned memory every few rounds:

    flag = gpu.Flag()
    rounds = gpu.capture(lambda: [one_round(flag) for _ in range(4)])
    while True:
        flag.clear()
        rounds.launch()
        flag.fetch()                    # asynchronous
        if not flag.read():             # waits for the fetch, not for what was launched after it
            break
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

_NO_STATUS = 0xFFFF_FFFF_FFFF_FFFF  # the word of status.cuh for "nothing has failed"
_DETAIL_BITS = 56  # bits of a status below its code


class Captured:
    """Launches recorded by `capture`; `launch` replays them on the current stream."""

    def __init__(self, graph: Any, function: Callable[[], object]) -> None:
        self._graph = graph
        # the arrays that the launches use belong to the function's closure: keep it alive
        self._function = function

    def launch(self) -> None:
        """Replay on the current stream.  Does not wait."""
        self._graph.launch()


def capture(function: Callable[[], object]) -> Captured:
    """Record what `function` launches, without running it.

    The function may launch kernels and copy between arrays asynchronously.  It must not allocate
    (allocate before and let it use those arrays), must not wait for the device, and its kernels
    must be compiled already (call `Source.kernels` before).  The arrays it uses stay alive as
    long as the result.
    """
    from matchwood import engines

    cupy = engines.cupy()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, cupy.cuda.using_allocator(_no_allocation):
        stream.begin_capture()
        try:
            function()
        except BaseException:
            # leave capture mode; the broken recording itself may be an error, the first one counts
            with contextlib.suppress(Exception):
                stream.end_capture()
            raise
        graph = stream.end_capture()
    return Captured(graph, function)


def _no_allocation(nbytes: int) -> NoReturn:
    raise RuntimeError(f"capture: the function allocates {nbytes} bytes; allocate them before")


class Flag:
    """Words that kernels set on the device and the host reads from pinned memory.

    Pass the flag itself as an ``int*`` argument of a kernel.  One word by default.
    """

    def __init__(self, words: int = 1, dtype: Any = np.int32) -> None:
        from matchwood import engines

        self._cupy = engines.cupy()
        import cupyx

        self.device_words = self._cupy.zeros(words, dtype)
        self._host = cupyx.zeros_pinned(words, dtype)
        self._fetched = self._cupy.cuda.Event(disable_timing=True)

    def clear(self) -> None:
        """Set the device words to 0, on the current stream."""
        self.device_words.data.memset_async(0, self.device_words.nbytes)

    def fetch(self) -> None:
        """Start to copy the words to the host, on the current stream (not inside `capture`)."""
        words = self.device_words
        words.data.copy_to_host_async(self._host.ctypes.data, words.nbytes)
        self._fetched.record()

    def read(self) -> Any:
        """Wait for the last `fetch` and return what it brought: an int, or an array of words."""
        self._fetched.synchronize()
        return int(self._host[0]) if self._host.size == 1 else self._host.copy()


class Status:
    """A word in which kernels report an error (status.cuh: ``fail(status, code, detail)``).

    Pass it as the ``unsigned long long* status`` of a kernel.  Of several failures the one with
    the smallest (code, detail) is kept, so the message does not depend on scheduling.
    """

    def __init__(self) -> None:
        self._flag = Flag(1, np.uint64)
        self.clear()

    @property
    def device_words(self) -> Any:
        return self._flag.device_words

    def clear(self) -> None:
        """Clear failures, on the current stream."""
        words = self.device_words
        words.data.memset_async(0xFF, words.nbytes)

    def read(self) -> tuple[int, int]:
        """Wait for the current stream; code and detail of the failure, or (0, -1)."""
        self._flag.fetch()
        word = self._flag.read()
        if word == _NO_STATUS:
            return 0, -1
        return word >> _DETAIL_BITS, word & ((1 << _DETAIL_BITS) - 1)

    def check(self, errors: Mapping[int, Callable[[int], Exception]] | None = None) -> None:
        """Wait for the current stream and raise what the kernels reported.

        `errors` maps codes (1 to 255) to functions that make the exception from the detail
        (0 to 2^56 - 1, a vertex or an entry).
        """
        code, detail = self.read()
        if code == 0:
            return
        if errors is None or code not in errors:
            raise RuntimeError(f"a GPU kernel failed with code {code}, detail {detail}")
        raise errors[code](detail)

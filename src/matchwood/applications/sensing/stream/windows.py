"""How a stream of packets is cut into windows: by numbers of packets, or by time.

By time, window k holds the packets from k to k + 1 lengths after the first packet.  Packets stay in
the order in which they came: one that is older than the window that is open counts there.  Windows
without packets are left out.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from matchwood.arguments import at_most, count, shown

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_TEXT = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*(ns|us|ms|s|min|h)\s*")
LONGEST = 1 << 62  # nanoseconds, or packets


class PacketWindows:
    """Windows of so many packets."""

    by_time = False

    def __init__(self, size: int) -> None:
        self.size = size

    def cuts(self, packets: int, time: Any, last: bool) -> tuple[Any, bool]:
        """Where windows begin and end, and whether the last of them is complete.

        All but a `last` call leave out a window that is not complete.
        """
        whole = packets // self.size
        ends = np.arange(whole + 1, dtype=np.int64) * self.size
        if not last or whole * self.size == packets:
            return ends, True
        return np.append(ends, packets), False


class TimeWindows:
    """Windows of so many nanoseconds."""

    by_time = True

    def __init__(self, length: int) -> None:
        self.length = length
        self._origin: int | None = None
        self._open = np.uint64(0)  # the window that is open: earlier ones are closed

    def cuts(self, packets: int, time: Any, last: bool) -> tuple[Any, bool]:
        if packets == 0:
            return np.zeros(1, np.int64), True
        if self._origin is None:
            self._origin = int(time[0])
        window = self._numbers(time)
        starts = np.flatnonzero(np.append(True, window[1:] != window[:-1]))
        self._open = window[-1]
        if last:
            return np.append(starts, packets), False
        return starts, True  # the window of the last packet may go on

    def _numbers(self, time: Any) -> Any:
        """The window of each packet.  Differences of times need all 64 bits, without a sign."""
        assert self._origin is not None
        since = time.view(np.uint64) - np.int64(self._origin).view(np.uint64)
        since[time < self._origin] = 0  # late, for whatever window is open
        window = since // np.uint64(self.length)
        return np.maximum(np.maximum.accumulate(window), self._open)


def parse_window(caller: str, window: Any) -> PacketWindows | TimeWindows:
    """`window` is a number of packets, or a text such as "10s" or "500 ms"."""
    if not isinstance(window, str):
        size = count(caller, "window", window, 1)
        return PacketWindows(at_most(caller, "window", size, LONGEST, "packets of a window"))
    match = _TEXT.fullmatch(window)
    if match is None:
        units = ", ".join(UNITS)
        raise ValueError(
            f"{caller}: window must be a number of packets or a time such as '10s' ({units}), "
            f"got {shown(window)}"
        )
    whole, _, fraction = match[1].partition(".")
    unit = UNITS[match[2]]
    length = int(whole) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
    if not 0 < length < LONGEST:
        raise ValueError(f"{caller}: window must be a time of at least 1 ns, got {shown(window)}")
    return TimeWindows(length)

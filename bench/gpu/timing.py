"""Times of GPU work by events: several calls in a row, so that launching does not count."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

CALLS = 10  # in a row between two events
ROUNDS = 7  # of which the median counts


def device_ms(function: Callable[[], Any], calls: int = CALLS, rounds: int = ROUNDS) -> float:
    """Median milliseconds of one call on the device, after one to warm up."""
    import cupy

    function()
    times = []
    for _ in range(rounds):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / calls)
    return statistics.median(times)


def host_us(function: Callable[[], Any], calls: int = 200) -> float:
    """Median microseconds that a call keeps Python busy, device not waited for."""
    import time

    import cupy

    function()
    times = []
    for _ in range(ROUNDS):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - start) / calls * 1e6)
    cupy.cuda.Device().synchronize()
    return statistics.median(times)


class Table:
    """Lines that are printed as they come and kept for JSON."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: list[dict[str, Any]] = []
        print(f"\n{title}", flush=True)

    def add(self, name: str, ms: float, **more: Any) -> None:
        """One measurement; numbers in `more` are printed with three digits."""
        self.rows.append({"name": name, "ms": ms, **more})
        notes = "  ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in more.items()
        )
        print(f"  {name:44s} {ms:9.4f} ms  {notes}", flush=True)

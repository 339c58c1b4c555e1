"""How times are compared: the same graph, the same process, calls in turn, the median of several.

A time alone says little on a shared machine.  Calls in turn run under the same conditions, and what
is reported is the ratio of their times.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Clock:
    """Seconds in all, and those of them that the compiler took (0 when its code was cached)."""

    seconds: float = 0.0
    compiling: float = 0.0


@contextlib.contextmanager
def clock() -> Iterator[Clock]:
    """Time what happens inside the ``with`` block."""
    from matchwood.engines.cpu.code import seconds_compiling

    taken = Clock()
    start, before = time.perf_counter(), seconds_compiling()
    yield taken
    taken.seconds = time.perf_counter() - start
    taken.compiling = seconds_compiling() - before


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a call took, and what it returned."""
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


def take_turns(
    calls: Mapping[str, Callable[[], Any]], *, repeats: int = 5, at_most: float = 10.0
) -> dict[str, float]:
    """Median seconds of each call, all called in turn `repeats` times.

    A round is not started when the rounds so far took more than `at_most` seconds; there is always
    one.  Call each function once before, so that compilation is not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    start = time.perf_counter()
    for _ in range(repeats):
        for name, call in calls.items():
            seconds[name].append(once(call)[0])
        if time.perf_counter() - start > at_most:
            break
    return {name: statistics.median(times) for name, times in seconds.items()}

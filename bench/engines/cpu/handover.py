"""How late members begin: from the call until the last member of a team is inside the kernel.

Calls come one after the other, or each after a pause in which the members have gone to sleep.
LOOKS_BEFORE_SLEEP of matchwood/engines/cpu/native.py comes from here.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from bench import harness
from matchwood.engines.cpu import crew, default_threads, kernel

ROUNDS = 200
PAUSE_SECONDS = 0.002
ARRAYS = 15  # of a kernel with many arguments
MONOTONIC = time.CLOCK_MONOTONIC if sys.platform != "win32" else 1

_clock = types.ExternalFunction("clock_gettime", types.intc(types.intc, types.intp))


@kernel
def _tell_time(team: Any, begun: Any) -> None:
    """Rank r writes seconds and nanoseconds."""
    _clock(MONOTONIC, begun[team.me].ctypes.data)


@kernel
def _tell_time_and_take_arrays(team: Any, begun: Any, arrays: Any) -> None:
    _clock(MONOTONIC, begun[team.me].ctypes.data)
    arrays[0][team.me] = arrays[-1].size


def measured(threads: int, arrays: int, pause: float, rounds: int = ROUNDS) -> dict[str, Any]:
    """Seconds until the last member begins, and until the call returns, of each round."""
    team, begun = crew(threads, work=10**9), np.zeros((threads, 16), np.int64)
    many = tuple(np.zeros(threads) for _ in range(arrays))
    call: Callable[[], None] = (
        (lambda: team.run(_tell_time_and_take_arrays, begun, many))
        if arrays
        else (lambda: team.run(_tell_time, begun))
    )
    call()
    last, whole = [], []
    for _ in range(rounds):
        if pause:
            time.sleep(pause)
        start = time.clock_gettime_ns(MONOTONIC)
        call()
        end = time.clock_gettime_ns(MONOTONIC)
        last.append((int((begun[:, 0] * 10**9 + begun[:, 1]).max()) - start) * 1e-9)
        whole.append((end - start) * 1e-9)
    return {"last begins": last, "call returns": whole}


def run() -> list[harness.Result]:
    results = []
    for threads in sorted({1, 2, default_threads()}):
        for arrays in (0, ARRAYS):
            for pause in (0, PAUSE_SECONDS):
                when = "after a pause" if pause else "one after the other"
                rows = {
                    name: {"median": statistics.median(taken), "best": min(taken), "times": taken}
                    for name, taken in measured(threads, arrays, pause).items()
                }
                result = {
                    "title": f"{threads} members, {arrays} arrays, {when}",
                    "baseline": "", "rounds": ROUNDS, "rows": rows,
                }  # fmt: skip
                harness.show(result)
                results.append(result)
    return results


if __name__ == "__main__":
    harness.main(run)

"""Times of GPU work by events, and graphs that lie on the GPU.

`milliseconds` times single calls: a call waits for its own end, so they hold what Python does as
well.  `device_ms` times several in a row, so that launching does not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from matchwood import engines, generators
from matchwood.engines.gpu import launch

ROUNDS = 15  # of single calls; the median counts
WARM_SECONDS = 0.2  # of calls before the first that is timed
CALLS = 10  # in a row between two events
SERIES = 7  # of calls in a row; the median counts


def graphs() -> dict[str, Callable[[], Any]]:
    """Makers of the three graphs, on the GPU."""
    return {
        "R-MAT 22": lambda: generators.rmat(22, engine="gpu"),
        "grid 2048^2": lambda: generators.grid((2048, 2048), engine="gpu"),
        "mesh 128^3": lambda: generators.mesh((128, 128, 128), engine="gpu"),
    }


def made(makers: dict[str, Callable[[], Any]]) -> Iterator[tuple[str, Any]]:
    """The graphs one after the other; the memory of the one before is given back."""
    pool = engines.cupy().get_default_memory_pool()
    for name, make in makers.items():
        pool.free_all_blocks()
        yield name, make()


def row_of_entries(view: Any) -> Any:
    """The row of every entry."""
    cupy = engines.cupy()
    marks = cupy.zeros(view.nnz + 1, view.indices.dtype)
    cupy.add.at(marks, view.indptr[1:-1], marks.dtype.type(1))
    return cupy.cumsum(marks[:-1], dtype=marks.dtype)


def milliseconds(function: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """Times of single calls, after enough of them that the clocks are up."""
    cupy = engines.cupy()
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_SECONDS:
        function()
    times = []
    for _ in range(rounds):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        answer = function()
        end.record()
        end.synchronize()
        del answer
        times.append(cupy.cuda.get_elapsed_time(start, end))
    return times


def row(times: list[float], **more: Any) -> dict[str, Any]:
    """A row of a `harness.Result`, from milliseconds."""
    median, best = statistics.median(times) / 1e3, min(times) / 1e3
    return {"median": median, "best": best, "times": [t / 1e3 for t in times], **more}


def timed(
    title: str,
    function: Callable[[], Any],
    bar: float | None = None,
    *,
    note: str = "",
    calls: int = ROUNDS,
    **more: Any,
) -> dict[str, Any]:
    """Time single calls and print them; the row has the milliseconds of the bar and `more`."""
    found = row(milliseconds(function, calls), **more)
    verdict = ""
    if bar is not None:
        found["bar_ms"] = bar
        verdict = f", bar {bar:g} ms {'met' if found['median'] * 1e3 <= bar else 'MISSED'}"
    best = f"(best {found['best'] * 1e3:.3f})"
    notes = f"; {note}" if note else ""
    print(f"{title}: {found['median'] * 1e3:.3f} ms {best}{verdict}{notes}", flush=True)
    return found


def device_ms(function: Callable[[], Any], calls: int = CALLS, rounds: int = SERIES) -> float:
    """Median milliseconds of one call on the device, after one to warm up."""
    cupy = engines.cupy()
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
    cupy = engines.cupy()
    function()
    times = []
    for _ in range(SERIES):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - start) / calls * 1e6)
    cupy.cuda.Device().synchronize()
    return statistics.median(times)


def whole_ms(function: Callable[[], Any], calls: int = 9) -> float:
    """Median milliseconds of a whole call from outside, the device waited for."""
    device = engines.cupy().cuda.Device()
    function()
    times = []
    for _ in range(calls):
        device.synchronize()
        start = time.perf_counter()
        function()
        device.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
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


def by_kernel(call: Callable[[], Any]) -> dict[str, Any]:
    """Milliseconds and launches of each kernel of ours, those of the whole call, and the rest.

    The rest is what CuPy launches, and the time that the device waits for Python.
    """
    events: list[tuple[str, Any, Any]] = []
    plain_call, plain_launch = launch.Kernel.__call__, launch.Kernel.launch

    def timed(run: Any) -> Any:
        def launched(self: Any, *args: Any, **options: Any) -> None:
            start, end = cuda.Event(), cuda.Event()
            start.record()
            run(self, *args, **options)
            end.record()
            events.append((self.name, start, end))

        return launched

    cuda = engines.cupy().cuda
    call()
    cuda.Device().synchronize()
    launch.Kernel.__call__ = timed(plain_call)  # type: ignore[method-assign]
    launch.Kernel.launch = timed(plain_launch)  # type: ignore[method-assign]
    try:
        since = time.perf_counter()
        call()
        cuda.Device().synchronize()
        total = (time.perf_counter() - since) * 1e3
    finally:
        launch.Kernel.__call__ = plain_call  # type: ignore[method-assign]
        launch.Kernel.launch = plain_launch  # type: ignore[method-assign]
    kernels: dict[str, list[float]] = {}
    for name, start, end in events:
        entry = kernels.setdefault(name, [0.0, 0])
        entry[0] += cuda.get_elapsed_time(start, end)
        entry[1] += 1
    rest = total - sum(entry[0] for entry in kernels.values())
    return {"total": total, "rest": rest, "kernels": kernels}

"""Where the time of a call on the GPU goes: milliseconds by kernel, from events around launches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from matchwood import engines
from matchwood.engines.gpu import launch


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

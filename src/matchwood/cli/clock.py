"""How long something took, and how much of that went into compiling."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Clock:
    """Seconds in all, and those of them that the compiler took (0 when its code was cached)."""

    seconds: float = 0.0
    compiling: float = 0.0

    def __str__(self) -> str:
        from matchwood.cli.output import duration

        text = duration(self.seconds)
        if self.compiling > 0.1 * self.seconds:
            text += f", of which {duration(self.compiling)} compiling; the next time that is done"
        return text

    def as_json(self) -> dict[str, float]:
        """For `--json`."""
        return {"total": self.seconds, "compiling": self.compiling}


@contextlib.contextmanager
def clock() -> Iterator[Clock]:
    """Time what happens inside the ``with`` block."""
    from numba.core import event

    taken = Clock()

    def add(seconds: float) -> None:
        taken.compiling += seconds

    start = time.perf_counter()
    with event.install_timer("numba:compile", add):
        yield taken
    taken.seconds = time.perf_counter() - start

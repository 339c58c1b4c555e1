"""Seconds by phase, as results report them."""

from __future__ import annotations

import time


class Stopwatch:
    """Times consecutive phases; the times of a phase that occurs again are added up.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> watch.lap("prepare")
    >>> list(watch.seconds)
    ['prepare']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, phase: str) -> None:
        """End a phase, which began where the one before it ended."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
        self._since = now

    def go_on(self) -> None:
        """Begin the next phase now: the time since the last one counts for none."""
        self._since = time.perf_counter()

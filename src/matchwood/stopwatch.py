"""Seconds by phase, as results report them."""

from __future__ import annotations

import time


class Stopwatch:
    """Times phases that follow one another; those of a phase that comes again are added up.

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
        """The phase that ends now began where the one before it ended."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
        self._since = now

    def go_on(self) -> None:
        """What was done since the last phase belongs to none."""
        self._since = time.perf_counter()

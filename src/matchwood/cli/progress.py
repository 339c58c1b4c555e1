"""A progress bar on stderr for work that takes over a second, where stderr is a terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

DELAY = 1.0  # seconds; work that is over by then shows no bar


class Bar:
    """A bar that appears once `delay` seconds have gone; `update` may come at any time before.

    `units`: names of what is done and of what is found, which are then told in numbers too.
    """

    def __init__(
        self, what: str, delay: float = DELAY, units: tuple[str, str] | None = None
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=40 if units is None else 12),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=4,  # drawing takes time from the work that is being timed
        )
        # Without a total the bar swings: at work, end unknown.
        self._task = self._bar.add_task(what, total=None)
        self._what, self._units, self._found = what, units, 0
        self._lock = threading.Lock()
        self._open = True
        self.shown = False
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if self._open:
                self._bar.start()
                self.shown = True

    def update(self, done: int, total: int) -> None:
        """The callback for `matchwood.on_progress`; total 0 means not known."""
        self._bar.update(
            self._task, completed=done, total=total or None, description=self._told(done, total)
        )

    def found(self, count: int) -> None:
        """The callback `found` of `matchwood.on_progress`: the next `update` shows it."""
        self._found = count

    def _told(self, done: int, total: int) -> str:
        if self._units is None or not total:
            return self._what
        steps, things = self._units
        return f"{self._what}: {done:,} of {total:,} {steps}, {self._found:,} {things} found"

    def say(self, what: str) -> None:
        """Tell what is being done now."""
        self._what = what
        self._bar.update(self._task, description=what)

    def close(self) -> None:
        """Take the bar away."""
        self._timer.cancel()
        with self._lock:
            self._open = False
            if self.shown:
                self._bar.stop()


class NoBar:
    """What `progress` gives where nobody looks at stderr."""

    def say(self, what: str) -> None:
        """Nothing."""


@contextlib.contextmanager
def progress(what: str, units: tuple[str, str] | None = None) -> Iterator[Bar | NoBar]:
    """Show a bar for the work inside the ``with`` block, should it take over a second."""
    if not sys.stderr.isatty():
        yield NoBar()
        return
    import matchwood

    bar = Bar(what, units=units)
    try:
        with matchwood.on_progress(bar.update, found=bar.found):
            yield bar
    finally:
        bar.close()

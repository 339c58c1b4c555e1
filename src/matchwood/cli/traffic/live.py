"""The table of windows that grows on stderr while packets are read, where that is a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

COLUMNS = (
    "packets", "links", "max link", "sources", "max source", "fan-out", "destinations",
    "max destination", "fan-in",
)  # fmt: skip
ROWS = 10  # windows shown
DELAY = 1.0  # seconds; work that is over by then shows nothing
PAUSE = 0.25  # seconds between two drawings


class Live:
    """What `sense` tells: drawn now and then."""

    def __init__(self, captures: list[str]) -> None:
        from rich.console import Console
        from rich.live import Live as Screen

        self._screen = Screen(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._start = time.monotonic()
        self._drawn = self._start + DELAY - PAUSE
        self._total = _total_bytes(captures)
        self._open = False

    def __call__(self, told: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._drawn < PAUSE:
            return
        self._drawn = now
        if not self._open:
            self._screen.start()
            self._open = True
        self._screen.update(self._table(told, now - self._start), refresh=True)

    def _table(self, told: dict[str, Any], seconds: float) -> Any:
        from rich.table import Table

        from matchwood.cli.output import amount

        rate = told["packets"] / max(seconds, 1e-9)
        of = f" of {amount(self._total)}" if self._total else ""
        title = (
            f"{told['packets']:,} packets, {amount(told['bytes'])}{of}, "
            f"{rate / 1e6:.3g} M packets/s"
        )
        table = Table(title=title, title_justify="left", header_style="dim")
        for head in ("window", *COLUMNS):
            table.add_column(head, justify="right")
        windows = told["windows"]
        for k in range(max(0, len(windows) - ROWS), len(windows)):
            table.add_row(f"{k:,}", *(f"{value:,}" for value in windows[k].nine().values()))
        return table

    def close(self) -> None:
        if self._open:
            self._screen.stop()


def _total_bytes(captures: list[str]) -> int | None:
    """Bytes of plain files; what compressed ones and pipes will have is not known."""
    total = 0
    for name in captures:
        plain = name.endswith((".pcap", ".pcapng", ".cap", ".tar"))
        if not (plain and os.path.isfile(name)):
            return None
        total += os.path.getsize(name)
    return total


@contextlib.contextmanager
def live(captures: list[str]) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """A function for `on_chunk`; None where nobody looks at stderr."""
    if not sys.stderr.isatty():
        yield None
        return
    screen = Live(captures)
    try:
        yield screen
    finally:
        screen.close()

"""What verbs print: tables, JSON, and a bar while work goes on."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import matchwood
from matchwood.report.timing import Clock

PIPED_WIDTH = 120  # columns for tables that go to a file or a pipe


def console() -> Any:
    """The terminal, or a pipe wide enough for the tables."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """As for any other print; Rich would exit with code 1."""
            raise BrokenPipeError

    return Terminal(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)


def print_json(facts: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json_text(facts, indent=2))


def json_text(value: Any, indent: int) -> str:
    """Text that any reader of JSON takes: NumPy's numbers and arrays as plain ones.

    JSON has no infinite numbers and no NaN; they become the words "Infinity", "-Infinity", "NaN".
    """
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Two columns, name and value.  A value None is left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            table.add_row(Text(name.replace("_", " ")), Text(as_text(value)))
    terminal = console()
    terminal.print(Text(plain(title), style="bold"))
    terminal.print(table)


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table whose numbers stand to the right; nothing where it has no rows."""
    from rich.table import Table
    from rich.text import Text

    texts = [[as_text(value) for value in row] for row in rows]
    if not texts:
        return
    table = Table(header_style="dim")
    for k, head in enumerate(heads):
        numbers = all(_like_number(row[k]) for row in texts)
        table.add_column(head, justify="right" if numbers else "left")
    for row in texts:
        table.add_row(*map(Text, row))
    terminal = console()
    terminal.print(Text(plain(title), style="bold"))
    terminal.print(table)


def _like_number(text: str) -> bool:
    return text in ("", "...") or text.removeprefix("-")[:1].isdigit()


CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)], "\ufffd")


def plain(text: str) -> str:
    """Text of a file, or its name, without what steers a terminal."""
    return text.translate(CONTROLS)


def as_text(value: Any) -> str:
    """A value as people write it: 1,234,567; yes and no; four digits of a fraction."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, Clock):
        return _taken(value)
    return plain(str(value))


def _taken(clock: Clock) -> str:
    text = duration(clock.seconds)
    if clock.compiling > 0.1 * clock.seconds:
        text += f", of which {duration(clock.compiling)} compiling; the next time that is done"
    return text


def duration(seconds: float) -> str:
    """A time with a unit that fits: 850 us, 12.3 ms, 4.56 s."""
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} us"


def amount(nbytes: int) -> str:
    """Bytes with a unit that fits."""
    value = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.4g} {unit}"


# A progress bar on stderr for work that takes over a second, where stderr is a terminal.


DELAY = 1.0  # seconds; work that is over by then shows no bar


class Bar:
    """A bar that appears after `delay` seconds; `update` may be called before.

    `units`: names of what is done and of what is found, whose numbers are then shown too.
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
            redirect_stdout=sys.stdout.isatty(),  # else what is printed would go to stderr
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
        """Show what is being done now."""
        self._what = what
        self._bar.update(self._task, description=what)

    def close(self) -> None:
        """Remove the bar."""
        self._timer.cancel()
        with self._lock:
            self._open = False
            if self.shown:
                self._bar.stop()


class NoBar:
    """What `progress` gives where stderr is no terminal."""

    def say(self, what: str) -> None:
        """Nothing."""


@contextlib.contextmanager
def progress(what: str, units: tuple[str, str] | None = None) -> Iterator[Bar | NoBar]:
    """Show a bar for the work inside the ``with`` block, should it take over a second."""
    if not sys.stderr.isatty():
        yield NoBar()
        return
    bar = Bar(what, units=units)
    try:
        with matchwood.on_progress(bar.update, found=bar.found):
            yield bar
    finally:
        bar.close()

"""What verbs print: facts and tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matchwood.report.timing import Clock

PIPED_WIDTH = 120  # columns for tables that go to a file or a pipe


def console() -> Any:
    """The terminal, or a pipe wide enough for our tables."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Rich would leave the program with code 1; we treat it like any other print."""
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
    terminal.print(Text(title, style="bold"))
    terminal.print(table)


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table whose numbers stand to the right."""
    from rich.table import Table
    from rich.text import Text

    texts = [[as_text(value) for value in row] for row in rows]
    table = Table(header_style="dim")
    for k, head in enumerate(heads):
        numbers = all(_like_number(row[k]) for row in texts)
        table.add_column(head, justify="right" if numbers else "left")
    for row in texts:
        table.add_row(*map(Text, row))
    terminal = console()
    terminal.print(Text(title, style="bold"))
    terminal.print(table)


def _like_number(text: str) -> bool:
    return text in ("", "...") or text.removeprefix("-")[:1].isdigit()


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
    return str(value)


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

"""Print two results of `make bench` side by side: the tree before a change, and after it.

python -m bench.compare OLD.json NEW.json             all entries
python -m bench.compare OLD.json NEW.json --slower    only those that became slower

Both files are what `python -m bench.run --json FILE` wrote.  For every entry the table shows both
best times, both ratios to the baseline, and one quotient:

    ratio before / ratio after   where the entry has a baseline (scipy / this): what the machine
                                 did meanwhile falls on both sides of a ratio
    best after / best before     elsewhere

A quotient above 1 is a loss.  Those above 1 + LIMIT are marked, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.harness import in_words

LIMIT = 0.05  # part by which an entry may become slower and is not marked


class Row(NamedTuple):
    """One function of one comparison, before and after."""

    title: str
    name: str
    old: dict[str, Any] | None  # None: the entry is not there
    new: dict[str, Any] | None

    @property
    def quotient(self) -> float | None:
        """Above 1: slower than before; None where there is nothing to compare."""
        if self.old is None or self.new is None:
            return None
        before, after = self.old.get("ratio"), self.new.get("ratio")
        if before and after and not before == after == 1.0:  # the baseline itself has ratio 1
            return float(before / after)
        return float(self.new["best"] / self.old["best"])


def read(path: str | Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The entries of a file by title of the comparison and name of the function."""
    content = json.loads(Path(path).read_text())
    return {
        (f"{result['benchmark']}: {result['title']}", name): row
        for result in content["results"]
        for name, row in result.get("rows", {}).items()
        if isinstance(row, dict) and "best" in row
    }


def rows(
    old: dict[tuple[str, str], dict[str, Any]], new: dict[tuple[str, str], dict[str, Any]]
) -> Iterator[Row]:
    """All entries of both, those of the new file first, in its order."""
    for title, name in [*new, *(key for key in old if key not in new)]:
        yield Row(title, name, old.get((title, name)), new.get((title, name)))


def is_slower(row: Row, limit: float = LIMIT) -> bool:
    """Whether an entry lost more than the limit."""
    return row.quotient is not None and row.quotient > 1 + limit


def show(found: list[Row], limit: float) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("", "", header_style="dim")
    for head in ("best before", "after", "ratio before", "after", "quotient"):
        table.add_column(head, justify="right")
    last = ""
    for row in found:
        times = [in_words(one["best"]) if one else "absent" for one in (row.old, row.new)]
        ratios = [
            f"{one['ratio']:.2f}x" if one and "ratio" in one else "" for one in (row.old, row.new)
        ]
        quotient = "" if row.quotient is None else f"{row.quotient:.3f}"
        if is_slower(row, limit):
            quotient = f"[red]{quotient} slower[/red]"
        title = row.title if row.title != last else ""
        table.add_row(title, row.name, *times, *ratios, quotient)
        last = row.title
    Console(width=160).print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="compare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--slower", action="store_true", help="show only what became slower")
    parser.add_argument("--limit", type=float, default=LIMIT, help="part that is not marked")
    options = parser.parse_args(arguments)
    found = list(rows(read(options.old), read(options.new)))
    slower = [row for row in found if is_slower(row, options.limit)]
    show(slower if options.slower else found, options.limit)
    print(f"{len(found)} entries, {len(slower)} slower by more than {options.limit:.0%}")
    return 1 if slower else 0


if __name__ == "__main__":
    raise SystemExit(main())

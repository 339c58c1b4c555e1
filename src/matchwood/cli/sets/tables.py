"""Sets from files: a column of a table (csv, tsv, parquet), or one set a line; also compressed."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

from matchwood.errors import FileFormatError

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
MOST_TEXT = 1 << 36  # bytes of a file that is unpacked


class Sets(NamedTuple):
    """What a file holds: a table of columns, or lines."""

    data: Any  # dict of columns, or a list of texts
    is_table: bool
    separator: str | None  # what separates elements, where the kind of file says so

    def __len__(self) -> int:
        return len(next(iter(self.data.values()), [])) if self.is_table else len(self.data)


def read(path: Path, on: str | None) -> Sets:
    """The sets of a file.  A table needs the name of a column, else each line is a set.

    Blanks separate the items of a line in .dat files (FIMI), and semicolons elsewhere.
    """
    name = path.name
    kind = Path(name[: -len(path.suffix)] if path.suffix in COMPRESSED else name).suffix.lower()
    if kind == ".parquet":
        return Sets(_parquet(path), True, None)
    text = _text(path)
    if on is None:
        return Sets(_lines(text), False, None if kind != ".dat" else " ")
    if kind not in (".csv", ".tsv", ".txt"):
        raise FileFormatError(f"{path}: only csv, tsv and parquet files have columns")
    return Sets(_table(path, text, "\t" if kind == ".tsv" else _delimiter(text)), True, None)


def _text(path: Path) -> str:
    from matchwood.io.files import expanded

    content = path.read_bytes()
    if path.suffix in COMPRESSED:
        found = expanded(content, path.suffix, MOST_TEXT)
        if found.damage or found.too_much:
            raise FileFormatError(f"{path}: {found.damage or 'too long when unpacked'}")
        content = bytes(found.text)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileFormatError(f"{path}, line {line}: not UTF-8 text ({error.reason})") from None


def _lines(text: str) -> list[str]:
    """The lines of a file.  `splitlines` would also cut at form feeds and other characters."""
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def _delimiter(text: str) -> str:
    """Of a csv file: the most frequent of the usual ones in its first line."""
    first = text.partition("\n")[0]
    return max(",;|\t", key=first.count)


def _table(path: Path, text: str, delimiter: str) -> dict[str, list[Any]]:
    csv.field_size_limit(1 << 30)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    heads = next(rows, None)
    if not heads:
        raise FileFormatError(f"{path}: there is no line with the names of columns")
    if len(set(heads)) < len(heads):
        raise FileFormatError(f"{path}, line 1: a column comes twice")
    columns: list[list[Any]] = [[] for _ in heads]
    for row in rows:
        if not row:
            continue
        if len(row) != len(heads):
            raise FileFormatError(
                f"{path}, line {rows.line_num}: {len(row)} cells, but there "
                f"are {len(heads)} columns"
            )
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
    return dict(zip(heads, columns, strict=True))


def _parquet(path: Path) -> dict[str, list[Any]]:
    if path.suffix in COMPRESSED:
        raise FileFormatError(f"{path}: parquet files are compressed inside; unpack this one")
    try:
        import pyarrow.parquet
    except ImportError:
        raise FileFormatError(
            f"{path}: reading parquet needs pyarrow: pip install pyarrow"
        ) from None
    table = pyarrow.parquet.read_table(path)
    return {name: table.column(name).to_pylist() for name in table.column_names}


def safe_cell(value: Any) -> str:
    """A cell of a CSV file: quoted where needed, and never a formula.

    A spreadsheet runs what begins with = + - @ or a tab, so such text gets an apostrophe.
    """
    text = str(value)
    if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n"):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',;"\t\r\n') else text

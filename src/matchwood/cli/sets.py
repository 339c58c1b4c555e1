"""`matchwood join`: similar records of tables and lines of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import matchwood
from matchwood.cli import results
from matchwood.cli.options import Check, Engine, Json, Threads, timed
from matchwood.cli.output import print_facts, print_json, print_table
from matchwood.errors import FileFormatError

# Sets from files: a column of a table (csv, tsv, parquet), or one set a line; also compressed.


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
    """The sets of a file: a column of a table, or each line of another file.

    Blanks separate the items of a line in .dat files (FIMI), and semicolons elsewhere.
    """
    name = path.name
    kind = Path(name[: -len(path.suffix)] if path.suffix in COMPRESSED else name).suffix.lower()
    if kind == ".parquet":
        columns = _parquet(path)
        _require_named(path, on, columns)
        return Sets(columns, True, None)
    text = _text(path)
    if on is None and kind not in (".csv", ".tsv"):
        return Sets(_lines(text), False, None if kind != ".dat" else " ")
    if kind not in (".csv", ".tsv", ".txt"):
        raise FileFormatError(f"{path}: only csv, tsv and parquet files have columns")
    delimiter = "\t" if kind == ".tsv" else _delimiter(text)
    _require_named(path, on, text.partition("\n")[0].rstrip("\r").split(delimiter))
    return Sets(_table(path, text, delimiter), True, None)


def _require_named(path: Path, on: str | None, columns: Iterable[str]) -> None:
    """Raise ValueError with the columns of a table where none of them was named."""
    if on is None:
        raise ValueError(
            f"{path}: say with --on which column holds the sets; there are: {', '.join(columns)}.  "
            "A file with one set a line must be called .txt"
        )


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
    """The most frequent of the usual delimiters in the first line of a csv file."""
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


SHOWN = 10  # best pairs in the table
COUNTS = (
    "generated",
    "refined",
    "verified",
    "accepted_by_bound",
    "rejected_by_bound",
    "solved_exactly",
    "without_prefix",
)


def join(
    left: Annotated[Path, typer.Argument(metavar="A", help="csv, tsv, parquet, or a set a line.")],
    right: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Another file.  Default: A with itself.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", help="Column with the sets.  Tables need it.")
    ] = None,
    right_on: Annotated[
        str | None, typer.Option("--right-on", help="Its name in B, where that is another.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Join only rows that are equal in this column.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option("--separator", help="Between elements.  Default: ';'.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Least similarity.  Default: 0.7.")
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, metavar="N", help="Only the best N pairs.")
    ] = None,
    per_left: Annotated[
        int | None,
        typer.Option("--per-left", min=1, metavar="N", help="Only the best N of each row of A."),
    ] = None,
    similarity: Annotated[
        str, typer.Option("--similarity", help="jaccard, edit, edit_padded or equal.")
    ] = "jaccard",
    q: Annotated[int, typer.Option("-q", min=1, help="Characters of a gram.")] = 3,
    verify: Annotated[
        str,
        typer.Option("--verify", help="certified, exact, early, greedy, dominant or streaming."),
    ] = "certified",
    normalise: Annotated[
        list[str] | None,
        typer.Option("--normalise", help="strip, lower, casefold, nfc, nfkc; may be repeated."),
    ] = None,
    exclude_equal: Annotated[
        bool, typer.Option("--exclude-equal", help="Leave out pairs of score 1.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=0, metavar="N", help="Stop with an error at more than N pairs."
        ),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say how many pairs and seconds to expect.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the pairs as .csv.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page about the join.")
    ] = None,
    check: Check = False,
    engine: Engine = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find pairs of sets whose elements can be matched well.

    A result file has both rows, the score and both sets of each pair.
    """
    for path, option, suffix in ((output, "-o", ".csv"), (html, "--html", ".html")):
        if path is not None:
            if path.suffix != suffix:
                raise ValueError(f"{option} {path}: the name must end in {suffix}")
            results.check_place(path, option, [left, *([] if right is None else [right])])
    if right is None and right_on is not None:
        raise ValueError("--right-on names a column of B, and there is no B")
    options: dict[str, Any] = {
        "delta": delta, "k": top, "per_left": per_left, "verify": verify,
        "exclude_equal": exclude_equal, "limit": limit, "engine": engine, "threads": threads,
    }  # fmt: skip
    if estimate:
        unread = {
            "-o": output, "--html": html, "--check": check, "--top": top, "--per-left": per_left,
            "--exclude-equal": exclude_equal, "--limit": limit,
        }  # fmt: skip
        for option, value in unread.items():
            if value not in (None, False):
                raise ValueError(f"{option} is for the join itself, which --estimate does not make")
    making = {"similarity": similarity, "q": q, "normalise": normalise or None}
    with timed("reading") as loading:
        sides = _sides(left, right, (on, right_on or on), separator, making)
    options["by"] = _groups(by, sides)
    if estimate:
        _estimate(left, sides, options, as_json)
        return
    with timed("joining", ("records", "pairs")) as taken:
        pairs = matchwood.fuzzy_join(*sides, **options)
    if check:
        with timed("checking"):
            pairs.check(*sides)
    if output is not None:
        results.write_text(output, _csv(pairs, sides))
    if html is not None:
        from matchwood.report.joins import page_of

        results.write_text(html, page_of(left.name, pairs, sides))
    facts = {
        "left": str(left),
        "right": None if right is None else str(right),
        "records": [len(side) for side in sides],
        "pairs": len(pairs),
        **{name: pairs.stats.get(name, 0) for name in COUNTS},
    }
    if as_json:
        seconds = {"load": loading.seconds, "join": taken.seconds, "phases": pairs.stats["seconds"]}
        files = {"output": output, "html": html}
        named = {name: str(path) if path else None for name, path in files.items()}
        print_json({**facts, "checked": check, "seconds": seconds, **named})
        return
    shown = {**facts, "records": " and ".join(f"{len(side):,}" for side in sides)}
    shown = {**shown, "loading": loading, "time": taken, "checked": "right" if check else None}
    print_facts(f"join of {left}", {**shown, "written": output, "page": html})
    print_table(
        "best pairs", ("left", "right", "score", "left set", "right set"), _best(pairs, sides)
    )


def _sides(
    left: Path, right: Path | None, names: Any, separator: str | None, making: dict[str, Any]
) -> list[Any]:
    made = []
    for path, on in ((left, names[0]), (right, names[1])):
        if path is None:
            continue
        sets = read(path, on)
        between: str | None = separator or sets.separator or ";"
        texts = sets.data
        if sets.is_table and on in texts and any(not isinstance(v, str) for v in texts[on] if v):
            between = None  # a parquet column of lists
        made.append(
            matchwood.collection(
                texts, on=on if sets.is_table else None, separator=between, **making
            )
        )
    return made


def _groups(by: str | None, sides: list[Any]) -> Any:
    if by is None:
        return None
    for side in sides:
        if not isinstance(side.data, dict):
            raise ValueError("--by names a column: say with --on which column holds the sets")
    return by


def _estimate(left: Path, sides: list[Any], options: dict[str, Any], as_json: bool) -> None:
    from matchwood.applications.join.fuzzy import estimate

    chosen = {name: options[name] for name in ("delta", "verify", "by", "engine", "threads")}
    found = estimate(*sides, **chosen)
    if as_json:
        print_json({"left": str(left), "estimate": found})
        return
    shown = {
        **found,
        "pairs": f"about {found['pairs']:,}",
        "error": f"{found['error']:,} or less, most likely",
    }
    print_facts(f"estimate of the join of {left}", shown)


def _csv(pairs: Any, sides: list[Any]) -> str:

    lines = ["left,right,score,left_set,right_set\n"]
    for a, b, score in zip(*(part.tolist() for part in pairs), strict=True):
        cells = (_told(sides[0], a), _told(sides[-1], b))
        lines.append(f"{a},{b},{score!r},{','.join(map(safe_cell, cells))}\n")
    return "".join(lines)


def _told(side: Any, row: int) -> str:
    return "; ".join(map(str, side.record(row)))


def _best(pairs: Any, sides: list[Any]) -> list[Any]:
    import numpy as np

    order = np.lexsort((pairs.right, pairs.left, -pairs.score))[:SHOWN]
    return [
        (
            int(pairs.left[i]),
            int(pairs.right[i]),
            float(pairs.score[i]),
            _told(sides[0], pairs.left[i])[:60],
            _told(sides[-1], pairs.right[i])[:60],
        )
        for i in order.tolist()
    ]

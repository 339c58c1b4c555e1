"""Edge lists whose vertices are names: airport codes, words, addresses.

Read line by line in Python, some million lines a second at most.  With a comma or semicolon,
fields may be quoted as in csv files.

Where ids are text, a header looks like an edge.  `header=` says what the first line is; without it

1.  a line whose third field, the weight, is no number is a header;
2.  a line is an edge where a comment counts as many edges as there are lines, or where one of its
    names occurs again below, which the words of a header do not;
3.  a line with two words that headers hold (`HEADERS`) is a header;
4.  any other may be either.  With commas or semicolons, where headers are usual, that is an error
    which asks for `header=`: a wrong guess would lose an edge or make two vertices of a header.
    With blanks, and where the line is the only one, it is an edge.
"""

from __future__ import annotations

import csv
import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from matchwood.io.build import matrix_of_edges
from matchwood.io.formats.edge_list import COMMENTS, NO_EDGES, Compacted, counts_in, delimiter_of
from matchwood.io.limits import FREE_BYTES
from matchwood.io.options import Options
from matchwood.io.text import Array, Text, clip

HEADERS = frozenset(
    (
        "source target", "from to", "src dst", "src dest", "src tgt", "src target", "source sink",
        "source destination", "source dest", "origin destination", "origin dest",
        "sender receiver", "sender recipient", "row column", "row col",
    )
)  # fmt: skip
# with what spreadsheets put around them: source_id, id1, fromNode, node_a, vertex 2
_AROUND = ("vertices", "vertex", "nodes", "node", "ids", "id", "name", "label", "_", "-", ".", " ")
_NUMBERED = ({"1", "2"}, {"0", "1"}, {"a", "b"}, {"u", "v"})
NAMES_PER_RUN = 1 << 15  # sorted at once: 20 ms


class Table(NamedTuple):
    """The lines of the file; `first` holds the number and the fields of the first of them."""

    sources: list[str]
    targets: list[str]
    weights: list[float]
    weighted: bool
    declared: int | None


def read(text: Text, options: Options) -> Compacted:
    """The matrix of the list, and the names in alphabetical order of their characters."""
    text.require_finished(options.strict)
    table = _table(text, options)
    sources, targets, weights = table.sources, table.targets, table.weights
    if table.declared is not None and table.declared > len(sources):
        text.require_count(table.declared, len(sources), "edges", options.strict)
    names = _in_order({*sources, *targets})
    ids = _array(text, names)
    place = {name: v for v, name in enumerate(names)}
    u = np.fromiter((place[name] for name in sources), np.int32, len(sources))
    v = np.fromiter((place[name] for name in targets), np.int32, len(targets))
    A = matrix_of_edges(
        (ids.size, ids.size), u, v, np.array(weights, np.float64) if table.weighted else None,
        undirected=options.symmetric,
        duplicates=options.duplicates or "sum",
        threads=options.threads,
    )  # fmt: skip
    return Compacted(A, ids)


def _table(text: Text, options: Options) -> Table:
    """Read the lines, and drop the first where it is a header."""
    sources: list[str] = []
    targets: list[str] = []
    weights: list[float] = []
    columns, width, delimiter = options.columns, 0, ""
    declared: int | None = None
    first, header = (0, b"", ""), bool(options.header)
    for number, _, _, line in text.filled():
        if number <= options.skip:
            continue
        if line.startswith(COMMENTS):
            _, declared = counts_in(line) or (None, declared)
            continue
        if not width:
            delimiter = options.delimiter or delimiter_of(line, None)
        fields = _fields(text, number, line, delimiter)
        if not width:
            width = len(fields)
            if columns is None:
                columns = tuple(range(width))
                if width not in (2, 3):
                    raise text.error(number, f"{width} columns: choose two or three by columns=")
            if max(columns) >= width:
                raise text.error(
                    number, f"there is no column {max(columns)}, the last is {width - 1}"
                )
            first = (number, line, fields[columns[2]] if len(columns) > 2 else "")
        if len(fields) != width:
            raise text.error(number, f"expected {width} fields, got {len(fields)}")
        assert columns is not None
        if number == first[0] and header:
            continue
        if number == first[0] and options.header is None and _is_text(first[2]):
            header = True
            continue
        sources.append(fields[columns[0]])
        targets.append(fields[columns[1]])
        if not (sources[-1] and targets[-1]):
            raise text.error(number, "the name of a vertex is empty")
        if len(columns) > 2:
            weight = _number(fields[columns[2]])
            if weight is None:
                raise text.error(number, f"expected a number, got {fields[columns[2]]!r}")
            weights.append(weight)
    if header and options.header is None and not sources and delimiter.isspace():
        raise text.error(first[0], f"expected a number, got {first[2]!r}")
    if declared is None and not sources and not header and options.strict:
        raise text.error(text.last_line(), NO_EDGES)
    if options.header is None and not header and sources and declared != len(sources):
        marked = not delimiter.isspace()
        if _is_header(text, first, sources, targets, marked):
            sources, targets, weights = sources[1:], targets[1:], weights[1:]
    return Table(sources, targets, weights, columns is not None and len(columns) > 2, declared)


def _is_header(
    text: Text, first: tuple[int, bytes, str], sources: list[str], targets: list[str], marked: bool
) -> bool:
    """Whether the first line is one; an error where that cannot be told."""
    pair = sources[0], targets[0]
    others = {*sources[1:], *targets[1:]}
    if pair[0] in others or pair[1] in others or pair[0] == pair[1]:
        return False
    if _like_header(*pair):
        return True
    if not marked or not others:
        return False
    raise text.error(
        first[0],
        f"{clip(first[1])} may be a header or an edge, its names occur nowhere else; "
        f"pass header=True or header=False",
    )


def _like_header(source: str, target: str) -> bool:
    bare = []
    for word in (source.lower(), target.lower()):
        for part in _AROUND:
            word = word.replace(part, "")
        bare.append(word)
    if " ".join(bare) in HEADERS:
        return True
    around = source.lower() != bare[0] and target.lower() != bare[1]
    return around and set(bare) in _NUMBERED


def _fields(text: Text, number: int, line: bytes, delimiter: str) -> list[str]:
    try:
        words = line.decode()
        if delimiter.isspace():
            return words.split() if delimiter == " " else words.split(delimiter)
        reader = csv.reader([words], delimiter=delimiter, strict=True)
        return [field.strip() for field in next(reader)]
    except (UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise text.error(number, f"not a line of text: {error}") from None


def _number(field: str) -> float | None:
    """The number, or None for what is none, or not finite."""
    try:
        value = float(field) if "_" not in field else np.nan
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _is_text(field: str) -> bool:
    """Whether this, which should be a weight, has nothing of a number."""
    try:
        float(field or "0")
    except ValueError:
        return True
    return False


def _in_order(names: set[str]) -> list[str]:
    """Sorted, a run at a time, so that Ctrl-C is heard."""
    waiting = list(names)
    runs = [
        sorted(waiting[start : start + NAMES_PER_RUN])
        for start in range(0, len(waiting), NAMES_PER_RUN)
    ]
    return runs[0] if len(runs) == 1 else list(heapq.merge(*runs))


def _array(text: Text, names: list[str]) -> Array:
    """NumPy gives every name the room of the longest."""
    longest = max(map(len, names), default=0)
    if 4 * longest * len(names) > max(FREE_BYTES, 50 * len(text.content)):
        name = max(names, key=len)
        at = text.content.find(name.encode())
        raise text.error(
            text.line_at(max(at, 0)), f"a name has {longest} characters: {clip(name.encode())}"
        )
    return np.array(names, dtype=np.str_)


def read_names(text: Text) -> Iterator[str]:
    """The lines of a file, without blanks at their ends; none of them empty."""
    text.require_finished(True)
    for number, (_, _, line) in enumerate(text.lines(), 1):
        if not line:
            raise text.error(number, "the line is empty, expected a name")
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise text.error(number, f"not a line of text: {error}") from None

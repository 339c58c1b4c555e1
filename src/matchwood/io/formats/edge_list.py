"""Edge lists: one edge a line, as SNAP, KONECT, Network Repository and spreadsheets write them.

    # Nodes: 4 Edges: 3         comments start with # or %; this one is believed
    0   1   0.5                 two ids and, on all lines or on none, a weight
    3   1   2

Fields are separated by blanks, or by commas or semicolons, as on the first edge.  A header line
without numbers, as in csv files, is skipped (`header=` decides unclear cases), and so is a line of
text between two comment lines (a comment that was broken).  Two lines with one number each at the
top are n and m, as in the files of Sedgewick and Wayne.  Everything else is an error.

A list is cut off if its last line has too few fields, if there are fewer edges than the comment
says, or if there is no newline at the end.  A list without such a comment that was cut exactly at
the end of a line is a shorter list, and is read as one.

Lists whose vertices are names (airport codes, words, addresses) are read line by line in Python,
some million lines a second at most.  With a comma or semicolon, fields may be quoted as in csv
files.

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
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from matchwood.gate.resources import interruptible, require_memory
from matchwood.io.build import matrix_of_edges
from matchwood.io.options import FREE_BYTES, Options, matrix_bytes
from matchwood.io.result import Array, Compacted, Entries, Matrix, no_entries
from matchwood.io.tables import Layout, Records, read_records
from matchwood.io.text import Text, clip, whole_numbers

COMMENTS = (b"#", b"%")
DELIMITERS = ",;"

_SQUARE = re.compile(rb"nodes:\s*(\d{1,18})\s+edges:\s*(\d{1,18})", re.IGNORECASE)
_RECTANGLE = re.compile(
    rb"rows:\s*(\d{1,18})\s+columns:\s*(\d{1,18})\s+entries:\s*(\d{1,18})", re.IGNORECASE
)
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

NO_EDGES = "no edges, and no comment '# Nodes: ... Edges: 0' that says so"
EDGES_PER_CHUNK = 1 << 14  # edges formatted at once: 20 ms, in which Ctrl-C has no effect
MOST_LINES_OF_TEXT = 100  # before the first edge; more are not looked at

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


class Head(NamedTuple):
    """What stands before the first edge."""

    start: int  # byte of the first edge; of the last newline where there is none
    shape: tuple[int, int] | None = None  # as a comment or the first two lines say
    edges: int | None = None
    exact: bool = False  # said by the first two lines: all ids are below n, all m edges follow
    header: bool = False  # there is a header line with commas or semicolons, as in csv files
    line: int = 1  # number of the line with the first edge


def read(text: Text, options: Options) -> Matrix | Compacted:
    """The matrix of an edge list whose ids are numbers, with the ids where asked."""
    if not options.compact:
        return matrix_of_edges(entries(text, options), options.threads)
    _, edges, _ = _edges(text, options)
    if edges is None:
        return Compacted(sp.csr_array((0, 0)), np.zeros(0, np.int64))
    u, v, ids = compacted(edges.u, edges.v, 1 + max(edges.u_max, edges.v_max))
    found = _entries((ids.size, ids.size), u, v, edges.w, options)
    return Compacted(matrix_of_edges(found, options.threads), ids + options.base)


def entries(text: Text, options: Options) -> Entries:
    """The edges; on ranks those of this rank's piece, with the shape of the whole."""
    head, edges, m = _edges(text, options)
    if edges is None:
        shape: tuple[int, int] = options.shape or head.shape or (0, 0)
        _require_room(text, shape, 0, options)
        return no_entries(shape)
    u_max, v_max = text.largest(edges.u_max, edges.v_max)
    shape = _allowed_shape(text, head, u_max, v_max, m, options)
    return _entries(shape, edges.u, edges.v, edges.w, options)


def _entries(shape: tuple[int, int], u: Array, v: Array, w: Array | None, options: Options) -> Any:
    return Entries(shape, u, v, w, options.symmetric, options.duplicates or "sum")


def _edges(text: Text, options: Options) -> tuple[Head, Records | None, int]:
    """(what stands before the edges, the edges, how many); None for a list without any."""

    def top(part: Text) -> tuple[int, tuple[Head, bytes]]:
        head = find_head(part, options)
        first = bytes(part.content[head.start : part.content.index(b"\n", head.start)].strip())
        return head.start, (head._replace(line=part.line_at(head.start)), first)

    start, (head, first) = text.head(top, lambda found: bool(found[1]))
    text.require_finished(options.strict)
    if not first:
        if head.edges is None and options.strict and not head.header:
            raise text.error(text.last_line(), NO_EDGES)
        text.require_count(head.edges or 0, 0, "edges", options.strict)
        return head, None, 0
    edges = read_records(text, start, layout_of(text, head, first, options), options.threads)
    m = text.total(edges.u.size)
    if head.edges is not None and (head.exact or m < head.edges):
        text.require_count(head.edges, m, "edges", options.strict)
    return head, edges, m


def _allowed_shape(
    text: Text, head: Head, u_max: int, v_max: int, m: int, options: Options
) -> tuple[int, int]:
    """The shape of a matrix of m edges; an error where the ids ask for too much.

    As asked, else as large as the largest id needs, and at least as the file says.
    """
    n = 1 + max(u_max, v_max)
    shape: tuple[int, int] = options.shape or (n, n)
    if options.shape is None and head.shape is not None:
        square = head.shape[0] == head.shape[1]
        ends = (n, n) if square else (u_max + 1, v_max + 1)
        shape = max(head.shape[0], ends[0]), max(head.shape[1], ends[1])
    if options.shape is None and n > text.limits.most_vertices(m):
        raise ValueError(
            f"read: the ids of {text.path} reach {n - 1 + options.base} with only {m} edges; "
            f"pass compact=True to number the vertices that occur, "
            f"or most_vertices={n} to have all of them"
        )
    _require_room(text, shape, m, options)
    return shape


def _require_room(text: Text, shape: tuple[int, int], edges: int, options: Options) -> None:
    """Raise if memory is short, or if a shape that the caller did not ask for is out of bounds."""
    entries = edges * (1 + options.symmetric)
    if options.shape is None:
        text.require_shape(1, shape, entries)
    else:
        require_memory(text.caller, matrix_bytes(shape, entries), f"a matrix of shape {shape}")


def compacted(u: Array, v: Array, n: int) -> tuple[Array, Array, Array]:
    """(u, v, ids): the edges with ids 0, 1, ... in the order of the old ids, and the old ids."""
    if n > 16 * (u.size + 1000):  # a table of all possible ids would be larger than the edges
        ids, places = interruptible(lambda: np.unique(np.concatenate((u, v)), return_inverse=True))
        places = places.astype(np.int32 if ids.size <= np.iinfo(np.int32).max else np.int64)
        return places[: u.size], places[u.size :], ids.astype(np.int64)
    present = np.zeros(n, np.bool_)
    present[u] = True
    present[v] = True
    place = np.cumsum(present, dtype=u.dtype) - u.dtype.type(1)
    return place[u], place[v], np.flatnonzero(present)


def find_head(text: Text, options: Options) -> Head:
    """Read comments and header lines up to the first edge, and what they say."""
    shape: tuple[int, int] | None = None
    edges: int | None = None
    commented = False
    start = len(text.content) - 1
    others: list[tuple[int, bytes]] = []  # lines that are neither comment nor edge
    waiting = options.header is True  # for the line that the caller says is a header
    header = False
    for number, position, _, line in text.filled():
        if number <= options.skip:
            continue
        if line.startswith(COMMENTS):
            if commented:
                others.clear()  # what stands between two comments is part of one
            commented = True
            shape, edges = counts_in(line) or (shape, edges)
        elif waiting:
            waiting, header = False, True
        elif _is_edge(line, options):
            start = position
            break
        else:
            others.append((number, line))
            if len(others) > MOST_LINES_OF_TEXT:
                break
    if not others:
        return Head(start, shape, edges, header=header)
    if len(others) == 1 and options.header is None and _is_header(others[0][1], options):
        marked = delimiter_of(others[0][1], options.delimiter) != " "
        return Head(start, shape, edges, header=marked)
    numbers = whole_numbers([line for _, line in others])
    if numbers is not None and len(numbers) == 2 and not header:
        n, m = numbers
        return Head(start, (n, n), m, exact=True)
    number, line = others[0]
    wanted = "an edge"
    if options.columns is not None:
        wanted += f" with numbers in the columns {', '.join(map(str, options.columns))}"
    raise text.error(number, f"expected {wanted}, got {clip(line)}")


def counts_in(comment: bytes) -> tuple[tuple[int, int], int] | None:
    """Shape and number of edges, where the comment says them."""
    if match := _SQUARE.search(comment):
        return (int(match[1]), int(match[1])), int(match[2])
    if match := _RECTANGLE.search(comment):
        return (int(match[1]), int(match[2])), int(match[3])
    return None


def _is_edge(line: bytes, options: Options) -> bool:
    chosen = _chosen(line, options)
    return len(chosen) > 1 and all(map(_NUMBER.fullmatch, chosen))


def _is_header(line: bytes, options: Options) -> bool:
    chosen = _chosen(line, options)
    return len(chosen) > 1 and not any(map(_NUMBER.fullmatch, chosen))


def _chosen(line: bytes, options: Options) -> list[bytes]:
    """The fields that will be read; fewer where the line does not have them."""
    fields = split(line, delimiter_of(line, options.delimiter))
    if options.columns is None:
        return fields
    return [fields[column] for column in options.columns if column < len(fields)]


def delimiter_of(line: bytes, asked: str | None) -> str:
    """What separates the fields: as asked, else a comma or semicolon where there is one."""
    if asked is not None:
        return " " if asked.isspace() else asked
    return next((mark for mark in DELIMITERS if mark.encode() in line), " ")


def split(line: bytes, delimiter: str) -> list[bytes]:
    if delimiter == " ":
        return line.split()
    return [field.strip() for field in line.split(delimiter.encode())]


def layout_of(text: Text, head: Head, first: bytes, options: Options) -> Layout:
    """The columns, by what was asked or by how many fields the first edge has."""
    delimiter = delimiter_of(first, options.delimiter)
    fields = len(split(first, delimiter))
    columns = options.columns
    if columns is None:
        if fields > 3:
            raise text.error(
                head.line,
                f"{fields} columns: choose ids and weight by columns=(0, 1) or columns=(0, 1, 2)",
            )
        columns = tuple(range(fields))
    if max(columns) >= fields:
        raise text.error(head.line, f"there is no column {max(columns)}, the last is {fields - 1}")
    limits = options.shape or (head.shape if head.exact else None) or (None, None)
    return Layout(
        fields, columns[0], columns[1], columns[2] if len(columns) > 2 else -1,
        base=options.base, delimiter=delimiter, u_limit=limits[0], v_limit=limits[1],
    )  # fmt: skip


# Names


class NamedEdges(NamedTuple):
    """The lines of a list whose ids are text."""

    sources: list[str]
    targets: list[str]
    weights: list[float]
    weighted: bool
    declared: int | None


def read_named(text: Text, options: Options) -> Compacted:
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
    w = np.array(weights, np.float64) if table.weighted else None
    found = _entries((ids.size, ids.size), u, v, w, options)
    return Compacted(matrix_of_edges(found, options.threads), ids)


def _table(text: Text, options: Options) -> NamedEdges:
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
        if _is_named_header(text, first, sources, targets, marked):
            sources, targets, weights = sources[1:], targets[1:], weights[1:]
    return NamedEdges(sources, targets, weights, columns is not None and len(columns) > 2, declared)


def _is_named_header(
    text: Text, first: tuple[int, bytes, str], sources: list[str], targets: list[str], marked: bool
) -> bool:
    """Whether the first line is a header; an error where that is not clear."""
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
    """Sorted, a run at a time, so that Ctrl-C takes effect."""
    waiting = list(names)
    runs = [
        sorted(waiting[start : start + NAMES_PER_RUN])
        for start in range(0, len(waiting), NAMES_PER_RUN)
    ]
    return runs[0] if len(runs) == 1 else list(heapq.merge(*runs))


def _array(text: Text, names: list[str]) -> Array:
    """The names as an array, unless that is too large: each takes the room of the longest."""
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


# Writing


def pieces(
    A: Matrix, weights: bool, comments: Sequence[str], delimiter: str, ids: Array | None,
    base: int, header: bool,
) -> Iterator[bytes]:  # fmt: skip
    """The lines of the file, some thousands at a time."""
    lines = [f"# {line}" for line in comments]
    if header:
        words = ["source", "target", "weight"]
        lines.append(delimiter.join(words if weights else words[:2]))
    elif A.shape[0] == A.shape[1]:
        lines.append(f"# Nodes: {A.shape[0]} Edges: {A.nnz}")
    else:
        lines.append(f"# Rows: {A.shape[0]} Columns: {A.shape[1]} Entries: {A.nnz}")
    yield ("\n".join(lines) + "\n").encode()
    for u, v, w in chunks(A, weights):
        columns: list[Any] = [u + base, v + base] if ids is None else [ids[u], ids[v]]
        yield lines_of([*columns, w] if weights else columns, delimiter)


def chunks(A: Matrix, weights: bool) -> Iterator[tuple[Array, Array, Array]]:
    """(u, v, w) of the entries, row by row; whole weights as integers."""
    u = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    data = A.data
    if weights and np.issubdtype(data.dtype, np.floating):
        signed_zero = (data == 0) & np.signbit(data)  # an integer has no -0
        whole = np.all((data == np.rint(data)) & (np.abs(data) < 2**53) & ~signed_zero)
        data = data.astype(np.int64) if whole else data.astype(np.float64)
    for start in range(0, A.nnz, EDGES_PER_CHUNK):
        piece = slice(start, start + EDGES_PER_CHUNK)
        yield u[piece], A.indices[piece].astype(np.int64), data[piece]


def lines_of(columns: Sequence[Array], delimiter: str, key: str = "") -> bytes:
    """The table of these columns as lines; floats so that they read back the same."""
    texts = [map(str, column.tolist()) for column in columns]
    rows = map(delimiter.join, zip(*texts, strict=True))
    return (key + f"\n{key}".join(rows) + "\n").encode()

"""Edge lists whose vertices are names: airport codes, words, addresses.

Read line by line in Python, some million lines a second at most.  With a comma or semicolon,
fields may be quoted as in csv files.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np

from matchwood.io.build import matrix_of_edges
from matchwood.io.edge_list import COMMENTS, NO_EDGES, Compacted, counts_in, delimiter_of
from matchwood.io.options import Options
from matchwood.io.text import Text


def read(text: Text, options: Options) -> Compacted:
    """The matrix of the list, and the names in alphabetical order of their characters."""
    sources: list[str] = []
    targets: list[str] = []
    weights: list[float] = []
    columns, width, delimiter = options.columns, 0, ""
    declared: int | None = None
    text.require_finished(options.strict)
    for number, (_, _, line) in enumerate(text.lines(), 1):
        if number <= options.skip or not line:
            continue
        if line.startswith(COMMENTS):
            _, declared = counts_in(line) or (None, declared)
            continue
        if not width:
            delimiter = options.delimiter or delimiter_of(line, None)
        try:
            fields = _split(line.decode(), delimiter)
        except (UnicodeDecodeError, csv.Error) as error:
            raise text.error(number, f"not a line of text: {error}") from None
        if not width:
            width = len(fields)
            if columns is None:
                columns = tuple(range(width))
                if width not in (2, 3):
                    raise text.error(number, f"{width} columns: choose two or three by columns=")
        if len(fields) != width:
            raise text.error(number, f"expected {width} fields, got {len(fields)}")
        assert columns is not None
        if max(columns) >= width:
            raise text.error(number, f"there is no column {max(columns)}, the last is {width - 1}")
        sources.append(fields[columns[0]])
        targets.append(fields[columns[1]])
        if not (sources[-1] and targets[-1]):
            raise text.error(number, "the name of a vertex is empty")
        if len(columns) > 2:
            weights.append(_weight(text, number, fields[columns[2]]))
    if declared is None and not sources and options.strict:
        raise text.error(text.last_line(), NO_EDGES)
    if declared is not None and declared > len(sources):
        text.require_count(declared, len(sources), "edges", options.strict)
    ids = np.array(sorted({*sources, *targets}), dtype=np.str_)
    place = {name: v for v, name in enumerate(ids.tolist())}
    u = np.fromiter((place[name] for name in sources), np.int32, len(sources))
    v = np.fromiter((place[name] for name in targets), np.int32, len(targets))
    A = matrix_of_edges(
        (ids.size, ids.size), u, v, np.array(weights) if weights else None,
        undirected=options.symmetric,
        duplicates=options.duplicates or "sum",
        threads=options.threads,
    )  # fmt: skip
    return Compacted(A, ids)


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter.isspace():
        return line.split() if delimiter == " " else line.split(delimiter)
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, strict=True))]


def _weight(text: Text, number: int, field: str) -> float:
    try:
        value = float(field)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise text.error(number, f"expected a number, got {field!r}")
    return value


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

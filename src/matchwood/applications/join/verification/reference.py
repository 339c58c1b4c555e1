"""Matchings of a small matrix of integers, from their definitions, in plain Python.

A matrix is a list of rows; a weight of 0 is no edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

Matrix = Sequence[Sequence[int]]
Edge = tuple[int, int, int]  # weight, row, column
EPSILON = Fraction(1, 100)


def exact(matrix: Matrix) -> list[Edge]:
    """The heaviest matching: each row in turn is added by the cheapest alternating path."""
    mate: dict[int, int] = {}  # column: row
    width = max((len(row) for row in matrix), default=0)
    for root in range(len(matrix)):
        gain, end, before = _best_path(matrix, mate, root, width)
        if gain > 0:
            _flip(mate, before, end, root)
    return sorted(
        ((matrix[row][column], row, column) for column, row in mate.items() if matrix[row][column]),
        key=lambda edge: edge[1:],
    )


def _best_path(
    matrix: Matrix, mate: dict[int, int], root: int, width: int
) -> tuple[int, tuple[str, int], dict[int, int]]:
    """By Bellman and Ford: the most that matching `root` can gain, and the path."""
    gain = dict.fromkeys(range(width), -(1 << 62))
    before: dict[int, int] = {}
    for column in range(width):
        gain[column], before[column] = matrix[root][column], root
    changed = True
    while changed:
        changed = False
        for column, row in mate.items():
            base = gain[column] - matrix[row][column]
            for other in range(width):
                if other != column and base + matrix[row][other] > gain[other]:
                    gain[other], before[other] = base + matrix[row][other], row
                    changed = True
    ends = [(gain[column], ("free", column)) for column in range(width) if column not in mate]
    ends += [(gain[column] - matrix[row][column], ("out", column)) for column, row in mate.items()]
    if not ends:
        return 0, ("free", -1), before
    best, end = max(ends, key=lambda pair: pair[0])
    return best, end, before


def _flip(mate: dict[int, int], before: dict[int, int], end: tuple[str, int], root: int) -> None:
    column = end[1]
    place = {row: column for column, row in mate.items()}
    if end[0] == "out":
        del place[mate[column]]
    while True:
        row = before[column]
        old = place.get(row)
        mate[column] = row
        if row == root:
            return
        assert old is not None
        column = old


def edges_of(matrix: Matrix) -> Iterator[Edge]:
    """All edges, row by row."""
    for i, row in enumerate(matrix):
        for j, weight in enumerate(row):
            if weight:
                yield weight, i, j


def _take(edges: Sequence[Edge]) -> list[Edge]:
    """Each edge in turn whose ends are still free."""
    rows: set[int] = set()
    columns: set[int] = set()
    taken = []
    for weight, row, column in edges:
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            taken.append((weight, row, column))
    return taken


def greedy(matrix: Matrix) -> list[Edge]:
    """Heaviest first; of equal ones the first row, then the first column."""
    return _take(sorted(edges_of(matrix), key=lambda edge: (-edge[0], edge[1], edge[2])))


def dominant(matrix: Matrix) -> list[Edge]:
    """Edges that are the first choice of both ends, in rounds."""
    left = sorted(edges_of(matrix), key=lambda edge: (-edge[0], edge[1], edge[2]))
    taken: list[Edge] = []
    while left:
        by_row: dict[int, Edge] = {}
        by_column: dict[int, Edge] = {}
        for edge in left:
            by_row.setdefault(edge[1], edge)
            by_column.setdefault(edge[2], edge)
        found = [edge for edge in by_row.values() if by_column[edge[2]] == edge]
        taken += found
        rows, columns = {edge[1] for edge in found}, {edge[2] for edge in found}
        left = [edge for edge in left if edge[1] not in rows and edge[2] not in columns]
    return taken


def streaming(
    matrix: Matrix, epsilon: Fraction = EPSILON, *, halves: bool = False
) -> tuple[list[Edge], Fraction, int]:
    """(matching, sum of the duals, edges that were kept); epsilon is a fraction."""
    rows = [Fraction(0)] * len(matrix)
    columns = [Fraction(0)] * max((len(row) for row in matrix), default=0)
    stack = []
    for weight, i, j in edges_of(matrix):
        if weight > (1 + epsilon) * (rows[i] + columns[j]):
            more = weight - rows[i] - columns[j]
            rows[i] += more / 2 if halves else more
            columns[j] += more / 2 if halves else more
            stack.append((weight, i, j))
    return _take(stack[::-1]), sum(rows, Fraction(0)) + sum(columns, Fraction(0)), len(stack)


def row_bound(matrix: Matrix) -> int:
    """The heaviest edge of each row, added up."""
    return sum(max(row, default=0) for row in matrix)


def column_bound(matrix: Matrix) -> int:
    """The heaviest edge of each column, added up."""
    return row_bound(list(zip(*matrix, strict=True)))


def weight_of(edges: Sequence[Edge]) -> int:
    """The weight of a matching."""
    return sum(edge[0] for edge in edges)

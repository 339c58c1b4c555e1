"""The heaviest matching, by shortest augmenting paths in integers.

Dual variables u (rows) and v (columns) with u + v >= weight for every edge prove an upper bound,
the sum of all duals.  It starts with u = heaviest edge of the row and v = 0, and with the rows
matched whose heaviest edge leads to a column nobody else took.  Every other row then looks for the
path of least total slack to a free column, or to a matched row that had better stay free (so no
zero edges are needed).  The bound falls by the length of the path.  At the end the matching weighs
what the bound says.  All numbers are integers, so the weight is the one optimum.

The search is Dijkstra's [1]_ over the edges that exist; the nearest column is found by looking at
all that were reached, which are few where edges are few.

.. [1] R. Jonker, A. Volgenant. A shortest augmenting path algorithm for dense and sparse linear
   assignment problems. Computing 38, 1987. doi:10.1007/BF02278710
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join.verification.cpu_scratch import Edges, Solver
from matchwood.engines.cpu import Team, device, stopping

FAR = np.int64(0x7FFFFFFFFFFFFFFF)
NEVER = np.int64(-0x7FFFFFFFFFFFFFFF)  # a weight that every matching reaches
OPTIMAL, BELOW, REACHED, HALTED = 0, 1, 2, 3  # how `solve` ended


@device
def match_choices(edges: Edges, rows: int, columns: int, solver: Solver) -> Any:
    """Rows take the column of their heaviest edge while it is free.  Weight of that matching."""
    for column in range(columns):
        solver.column_mate[column] = -1
    weight = np.int64(0)
    for row in range(rows):
        column = edges.row_choice[row]
        solver.row_mate[row] = -1
        if column >= 0 and solver.column_mate[column] < 0:
            solver.row_mate[row] = column
            solver.column_mate[column] = row
            weight += edges.row_best[row]
    return weight


@device
def _nearest(solver: Solver, closed: int, reached: int) -> Any:
    """The place in `reached` of the nearest column that is not finished."""
    best = closed
    for k in range(closed + 1, reached):
        if solver.distance[solver.reached[k]] < solver.distance[solver.reached[best]]:
            best = k
    return best


@device
def _search(edges: Edges, root: int, solver: Solver) -> Any:
    """Shortest path from a free row.  (its length, free column or -1, row that becomes free or -1,
    columns finished, columns reached)."""
    distance, reached_from, queue = solver.distance, solver.reached_from, solver.reached
    row, so_far = root, np.int64(0)
    length, end_column, end_row = solver.row_dual[root], -1, root
    closed, reached = 0, 0
    while True:
        for k in range(edges.starts[row], edges.starts[row + 1]):
            column = edges.columns[k]
            far = so_far + solver.row_dual[row] + solver.column_dual[column] - edges.weights[k]
            if far >= length:
                continue
            if solver.column_mate[column] < 0:
                length, end_column, end_row = far, column, -1
                reached_from[column] = row
            elif far < distance[column]:
                if distance[column] == FAR:
                    queue[reached] = column
                    reached += 1
                distance[column] = far
                reached_from[column] = row
        if closed == reached:
            break
        k = _nearest(solver, closed, reached)
        column = queue[k]
        if distance[column] >= length:
            break
        queue[k] = queue[closed]
        queue[closed] = column
        closed += 1
        so_far = distance[column]
        row = solver.column_mate[column]
        if so_far + solver.row_dual[row] < length:
            length, end_column, end_row = so_far + solver.row_dual[row], -1, row
    return length, end_column, end_row, closed, reached


@device
def _augment(edges: Edges, root: int, solver: Solver) -> Any:
    """Match the row, or leave it free where that is best.  By how much the bound falls."""
    length, column, end_row, closed, reached = _search(edges, root, solver)
    solver.row_dual[root] -= length
    for k in range(closed):
        scanned = solver.reached[k]
        rest = length - solver.distance[scanned]
        solver.column_dual[scanned] += rest
        solver.row_dual[solver.column_mate[scanned]] -= rest
    for k in range(reached):
        solver.distance[solver.reached[k]] = FAR
    if end_row == root:
        return length
    if end_row >= 0:
        column = solver.row_mate[end_row]
        solver.row_mate[end_row] = -1
    while True:  # back along the path
        row = solver.reached_from[column]
        before = solver.row_mate[row]
        solver.row_mate[row] = column
        solver.column_mate[column] = row
        if row == root:
            return length
        column = before


@device
def solve(
    team: Team, edges: Edges, rows: int, columns: int, solver: Solver, bounds: tuple[int, int]
) -> Any:
    """(how it ended, weight).  Starts from `match_choices`, which must have been called.

    `bounds` = (low, high): ends at once where no matching weighs `low` (BELOW, weight is the
    bound), or where the matching so far weighs `high` (REACHED).  (NEVER, FAR) for neither.
    """
    low, high = bounds
    bound = np.int64(0)
    waiting = np.int64(0)  # duals of the rows that are still to be matched
    for column in range(columns):
        solver.column_dual[column] = 0
    for row in range(rows):
        solver.row_dual[row] = edges.row_best[row]
        bound += edges.row_best[row]
        if solver.row_mate[row] < 0:
            waiting += edges.row_best[row]
    for row in range(rows):
        if bound < low:
            return BELOW, bound
        if bound - waiting >= high:
            return REACHED, bound - waiting
        # a row that another one pushed out has the dual 0 and stays free
        if solver.row_mate[row] < 0 and solver.row_dual[row] > 0:
            if stopping(team):
                return HALTED, bound
            waiting -= solver.row_dual[row]
            bound -= _augment(edges, row, solver)
    return (BELOW if bound < low else OPTIMAL), bound

"""One pair of records: accept, reject, or solve exactly.  Kernels call this for many tiny pairs.

The default, `certified`, spends as little as it can:

1. equal elements are matched with each other (Jaccard distance is a metric, so that loses nothing),
2. tokens of a row that no column has bound what the row can weigh,
3. rows of similarities are made one by one, and the best of each takes the place of its bound,
   until their sum shows that the pair cannot reach what it needs,
4. the same for the best of each column,
5. a matching from the rows' choices, then the locally dominant one: a lower bound,
6. duals in one pass, two ways: an upper bound,
7. the exact solver, where the bounds leave it open or the exact weight is wanted.

All decisions compare integers.  The weight of a pair that is reported is the exact one where scores
are wanted, and a lower bound else.

rows.py makes similarities.  Here are the matchings; pairs.py decides, and has `verify` for a list.

The heaviest, by shortest augmenting paths in integers.  Dual variables u (rows) and v (columns)
with u + v >= weight for every edge prove an upper bound, the sum of all duals.  It starts with u =
heaviest edge of the row and v = 0, and with the rows matched whose heaviest edge leads to a column
that is still free.  From every other row the path of least total slack is searched to a free
column, or to a matched row that is better left free (so no zero edges are needed).  The bound falls
by the length of the path.  At the end the weight equals the bound.  All numbers are integers, so
the weight is exactly the optimum.

The search is Dijkstra's [1]_ over the edges that exist; the nearest column is found by a scan of
all that were reached, which are few where edges are few.

Greedy, locally dominant, streaming.  Edges are ordered by (weight, heaviest first; row; column),
which is a strict order.  So the greedy and the locally dominant matching are the same set of edges,
found in two ways.

The streaming matching (Paz and Schwartzman [2]_, in the form of Ghaffari and Wajc [3]_) sees each
edge once, row by row.  It keeps an edge that weighs more than (1 + 1/100) times the duals of its
ends, and raises both duals by what is above them.  The duals then prove that no matching weighs
more than (1 + 1/100) times their sum.  The edges that were kept are taken from the last to the
first, while both ends are free.

.. [1] R. Jonker, A. Volgenant. A shortest augmenting path algorithm for dense and sparse linear
   assignment problems. Computing 38, 1987. doi:10.1007/BF02278710
.. [2] A. Paz, G. Schwartzman. A (2+eps)-approximation for maximum weight matching in the
   semi-streaming model. ACM Trans. Algorithms 15(2), 2019. doi:10.1145/3274668
.. [3] M. Ghaffari, D. Wajc. Simplified and space-optimal semi-streaming (2+eps)-approximate
   matching. SOSA 2019. doi:10.4230/OASIcs.SOSA.2019.13
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join.verification.cpu.rows import FAR, Edges, Solver, Stack
from matchwood.engines.cpu import Team, device, stopping

# A verdict is a sum of these, or one of the negative ones
ACCEPTED = 1  # the pair is reported
SOLVED = 2  # the exact solver ran
NO_ROOM = -1  # the edges of the pair do not fit; its weight is how many there are

NEVER = np.int64(-0x7FFFFFFFFFFFFFFF)  # a weight that every matching reaches
OPTIMAL, BELOW, REACHED, HALTED = 0, 1, 2, 3  # how `solve` ended
EPSILON = 100  # the streaming matching's epsilon is 1 / 100


# The heaviest matching


@device
def _free_all(rows: int, columns: int, solver: Solver) -> None:
    for row in range(rows):
        solver.row_mate[row] = -1
    for column in range(columns):
        solver.column_mate[column] = -1


@device
def match_choices(edges: Edges, rows: int, columns: int, solver: Solver) -> Any:
    """Match rows with the column of their heaviest edge while it is free.  Returns the weight."""
    _free_all(rows, columns, solver)
    weight = np.int64(0)
    for row in range(rows):
        column = edges.row_choice[row]
        if column >= 0 and solver.column_mate[column] < 0:
            solver.row_mate[row] = column
            solver.column_mate[column] = row
            weight += edges.row_best[row]
    return weight


@device
def _nearest(solver: Solver, closed: int, reached: int) -> Any:
    """The position in `reached` of the nearest column that is not finished."""
    best = closed
    for k in range(closed + 1, reached):
        if solver.distance[solver.reached[k]] < solver.distance[solver.reached[best]]:
            best = k
    return best


@device
def _search(edges: Edges, root: int, solver: Solver) -> Any:
    """Shortest path from a free row: (length, free column or -1, row that becomes free or -1,
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
    """Match the row, or leave it free where that is best.  Returns the fall of the bound."""
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


# Greedy


@device
def _before(edges: Edges, a: int, b: int) -> bool:
    """Whether edge a precedes edge b.  Edges are numbered by row and column."""
    return edges.weights[a] > edges.weights[b] or (edges.weights[a] == edges.weights[b] and a < b)


@device
def _sift(edges: Edges, order: np.ndarray, place: int, count: int) -> None:
    """Move the edge at `place` down the heap until it follows no edge below."""
    edge = order[place]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and _before(edges, order[child], order[child + 1]):
            child += 1
        if not _before(edges, edge, order[child]):
            break
        order[place] = order[child]
        place = child
    order[place] = edge


@device
def sort_edges(team: Team, edges: Edges, count: int, order: np.ndarray) -> bool:
    """`order`: the edges, heaviest first (heap sort, in place).  False: the team stops."""
    for k in range(count):
        order[k] = k
    for place in range(count // 2 - 1, -1, -1):
        _sift(edges, order, place, count)
        if place & 4095 == 4095 and stopping(team):
            return False
    for last in range(count - 1, 0, -1):
        order[0], order[last] = order[last], order[0]
        _sift(edges, order, 0, last)
        if last & 4095 == 4095 and stopping(team):
            return False
    return True


@device
def greedy(team: Team, edges: Edges, rows: int, columns: int, solver: Solver) -> Any:
    """Match the heaviest edge with both ends free, repeatedly.  The weight; -1: the team stops."""
    _free_all(rows, columns, solver)
    count = edges.starts[rows]
    if not sort_edges(team, edges, count, solver.order):
        return np.int64(-1)
    weight = np.int64(0)
    for k in range(count):
        edge = solver.order[k]
        column = edges.columns[edge]
        if solver.column_mate[column] >= 0:
            continue
        row = _row_of(edges, rows, edge)
        if solver.row_mate[row] < 0:
            solver.row_mate[row] = column
            solver.column_mate[column] = row
            weight += edges.weights[edge]
    return weight


@device
def _row_of(edges: Edges, rows: int, edge: int) -> Any:
    lo, hi = 0, rows
    while hi - lo > 1:
        middle = (lo + hi) // 2
        if edges.starts[middle] <= edge:
            lo = middle
        else:
            hi = middle
    return lo


# Locally dominant


@device
def _point(edges: Edges, rows: int, columns: int, solver: Solver) -> None:
    """Every free vertex points to its heaviest free neighbour, by the number of the edge.

    Rows keep it in `reached`, columns in `reached_from`: no search is under way.
    """
    for column in range(columns):
        solver.reached_from[column] = -1
    for row in range(rows):
        solver.reached[row] = -1
        if solver.row_mate[row] >= 0:
            continue
        best = -1
        for edge in range(edges.starts[row], edges.starts[row + 1]):
            column = edges.columns[edge]
            if solver.column_mate[column] >= 0:
                continue
            if best < 0 or edges.weights[edge] > edges.weights[best]:
                best = edge
            rival = solver.reached_from[column]
            if rival < 0 or edges.weights[edge] > edges.weights[rival]:
                solver.reached_from[column] = edge
        solver.reached[row] = best


@device
def dominant(team: Team, edges: Edges, rows: int, columns: int, solver: Solver) -> Any:
    """Match mutual pointers until none is left.  Returns the weight; -1: the team stops."""
    _free_all(rows, columns, solver)
    weight = np.int64(0)
    while True:
        if columns > 256 and stopping(team):
            return np.int64(-1)
        _point(edges, rows, columns, solver)
        found = False
        for row in range(rows):
            edge = solver.reached[row]
            if edge >= 0 and solver.reached_from[edges.columns[edge]] == edge:
                column = edges.columns[edge]
                solver.row_mate[row] = column
                solver.column_mate[column] = row
                weight += edges.weights[edge]
                found = True
        if not found:
            return weight


# Streaming, and the bounds of its duals


@device
def stream_edge(
    row: int, column: int, weight: int, solver: Solver, stack: Stack, height: int
) -> Any:
    """Pass one edge to the streaming matching.  Returns the stack's height, even above its room."""
    below = solver.row_dual[row] + solver.column_dual[column]
    if EPSILON * weight <= (EPSILON + 1) * below:
        return height
    more = weight - below
    solver.row_dual[row] += more
    solver.column_dual[column] += more
    if height < stack.rows.size:
        stack.rows[height] = row
        stack.columns[height] = column
        stack.weights[height] = weight
    return height + 1


@device
def unwind(stack: Stack, height: int, rows: int, columns: int, solver: Solver) -> Any:
    """Match the kept edges from the last to the first.  Returns the weight."""
    _free_all(rows, columns, solver)
    weight = np.int64(0)
    for k in range(height - 1, -1, -1):
        row, column = stack.rows[k], stack.columns[k]
        if solver.row_mate[row] < 0 and solver.column_mate[column] < 0:
            solver.row_mate[row] = column
            solver.column_mate[column] = row
            weight += stack.weights[k]
    return weight


@device
def clear_duals(rows: int, columns: int, solver: Solver) -> None:
    """Set all duals to 0, before the first edge."""
    for row in range(rows):
        solver.row_dual[row] = 0
    for column in range(columns):
        solver.column_dual[column] = 0


@device
def dual_sum(rows: int, columns: int, solver: Solver) -> Any:
    """The sum of all duals."""
    total = np.int64(0)
    for row in range(rows):
        total += solver.row_dual[row]
    for column in range(columns):
        total += solver.column_dual[column]
    return total


@device
def streamed_bound(rows: int, columns: int, solver: Solver) -> Any:
    """(1 + 1/100) times the duals, rounded up: no matching weighs more."""
    total = dual_sum(rows, columns, solver)
    return total + (total + EPSILON - 1) // EPSILON


@device
def local_ratio_bound(edges: Edges, rows: int, columns: int, solver: Solver, halves: bool) -> Any:
    """An upper bound from one pass over the edges, with epsilon 0: they are all in memory.

    An edge that is heavier than the duals of its ends raises both by the difference, or, with
    `halves`, each by half of it.  Both ways every edge is covered, and the sum is a bound.
    """
    clear_duals(rows, columns, solver)
    for row in range(rows):
        for edge in range(edges.starts[row], edges.starts[row + 1]):
            column = edges.columns[edge]
            more = edges.weights[edge] - solver.row_dual[row] - solver.column_dual[column]
            if more > 0:
                solver.row_dual[row] += (more + 1) // 2 if halves else more
                solver.column_dual[column] += more // 2 if halves else more
    return dual_sum(rows, columns, solver)

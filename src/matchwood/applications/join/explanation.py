"""Why two records are similar: which elements were matched, and what the bounds say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from matchwood.applications.join.collecting import make
from matchwood.applications.join.similarity import EDITS
from matchwood.applications.join.similarity.check import ONE, Similarities

__all__ = ["Explanation", "explain"]


class Explanation(NamedTuple):
    """The matching of two records.

    Attributes
    ----------
    matched : list of (left element, right element, similarity)
        The heaviest matching, the most similar first.
    left_only, right_only : list
        Elements without a partner.
    weight : float
        The similarities of `matched`, added up.
    score : float
        weight / (elements of both - weight), as `fuzzy_join` has it.
    lower, upper : float
        What certified verification knows of the weight before it solves anything: the greedy
        matching, and the least of the bounds from above.
    """

    matched: list[tuple[Any, Any, float]]
    left_only: list[Any]
    right_only: list[Any]
    weight: float
    score: float
    lower: float
    upper: float


def explain(R: Any, S: Any, *, similarity: str = "jaccard", q: int = 3) -> Explanation:
    """Which elements of two records match, how well, and what the bounds say.

    Parameters
    ----------
    R, S : lists of elements
        Two records, as `fuzzy_join` takes them.
    similarity : {"jaccard", "edit", "edit_padded", "equal"}
    q : int
        Code points of a gram.

    Returns
    -------
    Explanation

    Raises
    ------
    TypeError, ValueError
        As `collection` does.

    Notes
    -----
    Where several matchings are heaviest, one of them is shown.  All similarities of the two records
    are held at once: as many numbers as R times S has elements.

    Examples
    --------
    >>> import matchwood
    >>> why = matchwood.explain(["database", "systems"], ["databases", "system"])
    >>> [(r, s, round(x, 4)) for r, s, x in why.matched]
    [('database', 'databases', 0.75), ('systems', 'system', 0.5714)]
    >>> round(why.score, 4), why.lower == why.upper == why.weight
    (0.4933, True)
    """
    caller = "explain"
    records = [
        make([record], caller, name, similarity, q).record(0)
        for name, record in (("R", R), ("S", S))
    ]
    left, right = records
    values = list(dict.fromkeys([*left, *right]))
    place = {value: i for i, value in enumerate(values)}
    rows = Similarities(values, similarity, q)
    both = set() if similarity in EDITS else set(left) & set(right)
    mine = [value for value in left if value not in both]
    theirs = [value for value in right if value not in both]
    columns = [place[value] for value in theirs]
    matrix = np.zeros((len(mine), len(theirs)), np.int64)
    for i, value in enumerate(mine):
        matrix[i] = rows.row(place[value])[columns]
    at, to = linear_sum_assignment(matrix, maximize=True)
    used = [(int(i), int(j)) for i, j in zip(at, to, strict=True) if matrix[i, j] > 0]
    found = [(value, value, ONE) for value in left if value in both]
    found += [(mine[i], theirs[j], int(matrix[i, j])) for i, j in used]
    found.sort(key=lambda pair: -pair[2])
    weight = sum(pair[2] for pair in found)
    total = ONE * (len(left) + len(right))
    lower, upper = (len(both) * ONE + bound for bound in _bounds(matrix))
    return Explanation(
        [(r, s, x / ONE) for r, s, x in found],
        [value for i, value in enumerate(mine) if i not in {i for i, _ in used}],
        [value for j, value in enumerate(theirs) if j not in {j for _, j in used}],
        weight / ONE,
        weight / (total - weight) if weight else 0.0,
        lower / ONE,
        upper / ONE,
    )


def _bounds(matrix: np.ndarray) -> tuple[int, int]:
    """The greedy matching, and the least of four bounds: rows, columns, and duals in two ways."""
    by_rows = int(matrix.max(axis=1, initial=0).sum())
    by_columns = int(matrix.max(axis=0, initial=0).sum())
    upper = min(by_rows, by_columns, _duals(matrix, 1), _duals(matrix, 2))
    return _greedy(matrix), upper


def _greedy(matrix: np.ndarray) -> int:
    rows, columns = np.nonzero(matrix)
    order = np.lexsort((columns, rows, -matrix[rows, columns]))
    free_rows, free_columns = np.ones(matrix.shape[0], bool), np.ones(matrix.shape[1], bool)
    total = 0
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if free_rows[i] and free_columns[j]:
            free_rows[i] = free_columns[j] = False
            total += int(matrix[i, j])
    return total


def _duals(matrix: np.ndarray, share: int) -> int:
    """Paz and Schwartzman's: an edge above its ends raises each of them by 1/share of the rest."""
    u, v = [0] * matrix.shape[0], [0] * matrix.shape[1]
    for i, j in zip(*(places.tolist() for places in np.nonzero(matrix)), strict=True):
        more = int(matrix[i, j]) - u[i] - v[j]
        if more > 0:
            u[i] += -(-more // share)
            v[j] += more // share
    return sum(u) + sum(v)

"""How two records match, by another method than the kernels': SciPy's assignment solver.

`explain` shows it to users; ../check.py compares the pairs of a join with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from matchwood import memory
from matchwood.applications.join import ONE
from matchwood.applications.join.collecting import make
from matchwood.applications.join.similarity import EDITS
from matchwood.applications.join.similarity.check import Similarities
from matchwood.applications.join.verification import reference

__all__ = ["Explanation", "explain"]

COPIES = 3  # of the matrix: itself, SciPy's in floating point, and that negated


class Matching(NamedTuple):
    """The heaviest matching of two records, whose elements are numbers."""

    both: set[int]  # elements of both records, matched with each other
    rows: list[int]  # the others of the left record
    columns: list[int]  # and of the right one
    matrix: np.ndarray  # int64: their similarities, in units of 2^-40
    taken: list[tuple[int, int]]  # places in the matrix; a similarity may be 0

    @property
    def weight(self) -> int:
        return len(self.both) * ONE + sum(int(self.matrix[place]) for place in self.taken)


def matching(
    left: Sequence[int], right: Sequence[int], similarities: Similarities, metric: bool
) -> Matching:
    """`metric`: matching equal elements with each other first loses nothing."""
    both = set(left) & set(right) if metric else set()
    rows = [e for e in left if e not in both]
    columns = [e for e in right if e not in both]
    matrix = np.zeros((len(rows), len(columns)), np.int64)
    for i, e in enumerate(rows):
        matrix[i] = similarities.row(e)[columns]
    at, to = linear_sum_assignment(matrix, maximize=True)
    taken = list(zip(at.tolist(), to.tolist(), strict=True))
    return Matching(both, rows, columns, matrix, taken)


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
        The bounds that certified verification has before it solves anything: the greedy
        matching, and the least of the upper bounds.
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
    OutOfMemory
        If the similarities of the two records do not fit.

    Notes
    -----
    Where several matchings are heaviest, one of them is shown.  All similarities of the two records
    are held at once: as many numbers as R times S has elements, three times.

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
    _require_memory(caller, left, right, similarity)
    values = list(dict.fromkeys([*left, *right]))
    place = {value: i for i, value in enumerate(values)}
    rows = Similarities(values, similarity, q)
    r, s = ([place[value] for value in record] for record in records)
    both, mine, theirs, matrix, used = matching(r, s, rows, similarity not in EDITS)
    found = [(e, e, ONE) for e in r if e in both]
    found += [(mine[i], theirs[j], int(matrix[i, j])) for i, j in used if matrix[i, j] > 0]
    found.sort(key=lambda pair: -pair[2])
    weight = sum(pair[2] for pair in found)
    total = ONE * (len(left) + len(right))
    lower, upper = (len(both) * ONE + bound for bound in _bounds(matrix))
    taken, used_up = {e for e, _, _ in found}, {e for _, e, _ in found}
    return Explanation(
        [(values[a], values[b], x / ONE) for a, b, x in found],
        [values[e] for e in mine if e not in taken],
        [values[e] for e in theirs if e not in used_up],
        weight / ONE,
        weight / (total - weight) if weight else 0.0,
        lower / ONE,
        upper / ONE,
    )


def _require_memory(caller: str, left: list[Any], right: list[Any], similarity: str) -> None:
    """Raise `OutOfMemory` unless the matrix and what the solver makes of it will fit."""
    cells = COPIES * len(left) * len(right)
    if similarity in EDITS:  # all texts, and a table of distances to all of them
        texts = [*left, *right]
        cells += COPIES * len(texts) * max(map(len, texts), default=0)
    what = f"the matching of {len(left)} and {len(right)} elements"
    memory.require_memory(caller, 8 * cells, what)


def _bounds(matrix: np.ndarray) -> tuple[int, int]:
    """The greedy matching, and the least of four bounds: rows, columns, and duals in two ways."""
    by_rows = int(matrix.max(axis=1, initial=0).sum())
    by_columns = int(matrix.max(axis=0, initial=0).sum())
    upper = min(by_rows, by_columns, _duals(matrix, 1), _duals(matrix, 2))
    return reference.weight_of(reference.greedy(matrix.tolist())), upper


def _duals(matrix: np.ndarray, share: int) -> int:
    """Paz and Schwartzman's bound: an edge above its duals raises both by 1/share of the rest."""
    u, v = [0] * matrix.shape[0], [0] * matrix.shape[1]
    for i, j in zip(*(places.tolist() for places in np.nonzero(matrix)), strict=True):
        more = int(matrix[i, j]) - u[i] - v[j]
        if more > 0:
            u[i] += -(-more // share)
            v[j] += more // share
    return sum(u) + sum(v)

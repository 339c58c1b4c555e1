"""Is this the answer of a join?  Compared by another method: every left record with all others.

For each left record the best similarity of each of its elements in every other record is added up,
by NumPy over all records at once.  Only records whose sum reaches what the pair needs are matched,
by SciPy's assignment solver on the same integers (doubles hold them exactly).  No index, no prefix,
none of this package's solvers.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from matchwood import answers, arguments
from matchwood.applications.join import ONE, Choice, read_choice, with_defaults
from matchwood.applications.join.collecting import Collection, read_groups, read_sides
from matchwood.applications.join.reference import least_weight
from matchwood.applications.join.similarity import EDITS
from matchwood.applications.join.similarity.check import Similarities
from matchwood.applications.join.verification.check import matching
from matchwood.errors import CheckFailed

EXACT = ("certified", "exact", "early")


class _Side:
    """The records of one side as numbers of distinct elements."""

    def __init__(self, collection: Collection, numbers: dict[Any, int]) -> None:
        records = [collection.record(i) for i in range(len(collection))]
        self.lists = [[numbers.setdefault(e, len(numbers)) for e in r] for r in records]
        self.sizes = np.array([len(r) for r in self.lists], np.int64)
        self.rows = np.flatnonzero(self.sizes)  # an empty record is in no pair
        self.starts = np.concatenate(([0], np.cumsum(self.sizes[self.rows])))[:-1]
        self.elements = np.array([e for r in self.lists for e in r], np.int64)


class _Truth:
    """The exact weights of pairs of two sides."""

    def __init__(self, left: Collection, right: Collection | None) -> None:
        numbers: dict[Any, int] = {}
        self.left = _Side(left, numbers)
        self.right = self.left if right is None else _Side(right, numbers)
        self.itself = right is None
        self.metric = left.similarity not in EDITS
        self.similarities = Similarities(list(numbers), left.similarity, left.q)

    def weight(self, i: int, j: int) -> int:
        """The heaviest matching of left record i and right record j, in units of 2^-40."""
        r, s = self.left.lists[i], self.right.lists[j]
        return matching(r, s, self.similarities, self.metric).weight

    def partners(self, i: int, needs: np.ndarray) -> np.ndarray:
        """Right records j whose weight with left record i may reach needs[j]."""
        side = self.right
        if not side.rows.size or not self.left.sizes[i]:
            return side.rows[:0]
        most = np.zeros(side.rows.size, np.int64)
        for e in self.left.lists[i]:
            most += np.maximum.reduceat(self.similarities.row(e)[side.elements], side.starts)
        return side.rows[most >= needs[side.rows]]


def check_fuzzy_join(
    pairs: Any,
    left: Any,
    right: Any = None,
    *,
    sample: int | None = None,
    rng: Any = 0,
    **options: Any,
) -> None:
    """Raise `CheckFailed` unless `pairs` are the pairs of `fuzzy_join`, with their scores.

    Parameters
    ----------
    pairs : Pairs, or (left, right, score)
        `score` may be None.
    left, right : as given to `fuzzy_join`
    sample : int, optional
        The number of left records, drawn at random, whose missing pairs are looked for; all
        pairs given are checked anyway.  None takes all.
    rng : int
        The seed of the sample.
    **options
        Those of `fuzzy_join`: delta, k, per_left, similarity, q, by, exclude_equal, ...

    Raises
    ------
    CheckFailed
        For a pair that is missing, false, twice, out of order or wrongly scored.

    Notes
    -----
    Left records are compared with all right ones: work grows with the product of their numbers.
    Of approximate answers (verify="greedy" and so on) what holds for all is checked: scores by
    weight are not too high, and pairs by bound are complete.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.check import check_fuzzy_join
    >>> tags = [["database", "systems"], ["databases", "system"], ["graphs"]]
    >>> check_fuzzy_join(matchwood.fuzzy_join(tags, delta=0.4), tags, delta=0.4)
    >>> check_fuzzy_join(([], [], []), tags, delta=0.4)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: fuzzy join: the pair (0, 1) of score 0.493... is missing
    """
    caller = "check_fuzzy_join"
    given = with_defaults(caller, options)
    choice = read_choice(caller, given)
    sample = None if sample is None else arguments.count(caller, "sample", sample, 1)
    seed = arguments.seed(caller, rng)
    pairs = _three(caller, pairs)
    first, second = read_sides(caller, left, right, given)
    choice.groups = read_groups(caller, given["by"], first, second)
    truth = _Truth(first, second)
    found = _Found(caller, pairs, truth, choice)
    found.check_scores()
    best_only = choice.k is not None or choice.per_left is not None
    if choice.verify not in EXACT and (choice.mode == "weight" or best_only):
        return
    rows = np.arange(truth.left.sizes.size)
    if sample is not None:
        rows = np.sort(np.random.default_rng(seed).permutation(rows)[:sample])
    if choice.shard[1] == 1:  # only the join knows which records are in a shard
        found.check_complete(rows)


def _three(caller: str, pairs: Any) -> tuple[Any, Any, Any]:
    parts = pairs if isinstance(pairs, (tuple, list)) else [*pairs] if np.iterable(pairs) else []
    if isinstance(pairs, (str, bytes)) or len(parts) != 3:
        kind = type(pairs).__name__
        raise TypeError(f"{caller}: pairs must be Pairs or (left, right, score), got {kind}")
    return parts[0], parts[1], parts[2]


class _Found:
    def __init__(self, caller: str, pairs: Any, truth: _Truth, choice: Choice) -> None:
        left, right, score = pairs
        self.truth, self.choice = truth, choice
        n, m = truth.left.sizes.size, truth.right.sizes.size
        shape = (int(answers.array(caller, "left", left).size),)
        self.left = _rows(caller, "left", left, shape, n)
        self.right = _rows(caller, "right", right, shape, m)
        self.score = None
        if score is not None:
            self.score = answers.reals(caller, "fuzzy join", "score", score, shape, "cpu")
        self.places = {
            pair: k
            for k, pair in enumerate(zip(self.left.tolist(), self.right.tolist(), strict=True))
        }
        if len(self.places) != self.left.size:
            raise CheckFailed("fuzzy join: a pair comes twice")
        directed = choice.per_left is not None
        if truth.itself and not directed and (self.left >= self.right).any():
            k = int(np.argmax(self.left >= self.right))
            raise CheckFailed(
                f"fuzzy join: pair {k} is ({self.left[k]}, {self.right[k]}), not left < right"
            )
        self.weights = [truth.weight(i, j) for i, j in self.places]

    def least(self, i: int, j: int) -> int:
        """The least weight of a pair that counts."""
        sizes = self.truth.left.sizes[i], self.truth.right.sizes[j]
        return least_weight(self.choice.delta, int(sizes[0]), int(sizes[1]))

    def total(self, i: int, j: int) -> int:
        return int(self.truth.left.sizes[i] + self.truth.right.sizes[j])

    def score_of(self, weight: int, i: int, j: int) -> float:
        return weight / (ONE * self.total(i, j) - weight)

    def admits(self, i: int, j: int, weight: int) -> bool:
        """Whether a pair of that weight meets the other options: groups, `exclude_equal`."""
        sizes = self.truth.left.sizes[i], self.truth.right.sizes[j]
        groups = self.choice.groups
        if groups is not None and (groups[0][i] != groups[-1][j] or groups[0][i] < 0):
            return False
        equal = sizes[0] == sizes[1] and weight == sizes[0] * ONE
        return not (self.choice.exclude_equal and equal)

    def check_scores(self) -> None:
        """Every pair counts, has its score, and stands where it belongs."""
        by_bound = self.choice.verify not in EXACT and self.choice.mode == "bound"
        keys = []
        for (i, j), k in self.places.items():
            weight = self.weights[k]
            score = self.score_of(weight, i, j)
            if not self.admits(i, j, weight) or (weight < self.least(i, j) and not by_bound):
                raise CheckFailed(f"fuzzy join: ({i}, {j}) is no pair; its score is {score}")
            if self.score is not None:
                self._check_score(k, i, j, score)
            keys.append(self._key(k, i, j))
        for k in range(1, len(keys)):
            if keys[k] < keys[k - 1]:
                i, j = int(self.left[k]), int(self.right[k])
                raise CheckFailed(f"fuzzy join: pair {k}, ({i}, {j}), is out of order")

    def _check_score(self, k: int, i: int, j: int, score: float) -> None:
        assert self.score is not None
        verify, mode = self.choice.verify, self.choice.mode
        if verify in ("certified", "exact"):
            right = self.score[k] == score
        elif verify == "early" or mode == "weight":
            right = 0.0 < self.score[k] <= score
        else:
            right = score <= self.score[k] <= 1.0
        if not right:
            raise CheckFailed(
                f"fuzzy join: the pair ({i}, {j}) has the score {score}, got {self.score[k]}"
            )

    def _key(self, k: int, i: int, j: int) -> tuple[Any, ...]:
        """The sort key of pair k; approximate scores are left out of it."""
        score = Fraction(self.weights[k], self.total(i, j))
        exact = self.choice.verify in ("certified", "exact")
        if self.choice.k is not None:
            return (-score, i, j) if exact else ()
        if self.choice.per_left is not None:
            return (i, -score, j) if exact else (i,)
        return i, j

    def check_complete(self, rows: np.ndarray) -> None:
        """No pair is missing."""
        for i in rows.tolist():
            best = self._worst_kept(i)
            for j in self._candidates(i, best):
                if (i, j) in self.places:
                    continue
                weight = self.truth.weight(i, j)
                if weight < self.least(i, j) or not self.admits(i, j, weight):
                    continue
                key = (-Fraction(weight, self.total(i, j)), i, j)
                if best is None or key < best:
                    score = self.score_of(weight, i, j)
                    raise CheckFailed(
                        f"fuzzy join: the pair ({i}, {j}) of score {score} is missing"
                    )

    def _worst_kept(self, i: int) -> tuple[Fraction, int, int] | None:
        """The last pair that k or per_left kept: what comes after it may be missing."""
        k, per_left = self.choice.k, self.choice.per_left
        if k is not None and self.left.size >= k:
            kept = list(range(self.left.size))
        elif per_left is not None and int((self.left == i).sum()) >= per_left:
            kept = np.flatnonzero(self.left == i).tolist()
        else:
            return None
        pairs = [(int(self.left[p]), int(self.right[p]), p) for p in kept]
        return max((-Fraction(self.weights[p], self.total(a, b)), a, b) for a, b, p in pairs)

    def _candidates(self, i: int, best: tuple[Fraction, int, int] | None) -> Iterator[int]:
        sizes = self.truth.right.sizes
        if best is None:
            by_size = {s: self.least(i, int(np.argmax(sizes == s))) for s in set(sizes.tolist())}
            needs = np.array([by_size[s] for s in sizes.tolist()], np.int64)
        else:
            needs = np.array(
                [int(-best[0] * (self.truth.left.sizes[i] + s)) for s in sizes], np.int64
            )
        for j in self.truth.partners(i, needs).tolist():
            if self.truth.itself and (i == j or (i > j and self.choice.per_left is None)):
                continue
            yield j


def _rows(caller: str, name: str, rows: Any, shape: tuple[int, ...], count: int) -> np.ndarray:
    made: np.ndarray = answers.integers(caller, "fuzzy join", name, rows, shape, "cpu")
    wrong = np.flatnonzero((made < 0) | (made >= count))
    if wrong.size:
        raise CheckFailed(
            f"fuzzy join: {name}[{wrong[0]}] is {made[wrong[0]]}, not a row of {count}"
        )
    return made

"""The best k of all pairs, and the best of each left record where many records are equal.

A join at a high threshold is cheap and has few pairs.  So the threshold falls in steps until a
sample of the records has its share of k pairs.  The scores of the sample give an estimate of the
k-th best score.  Then all records are joined at that score, and as soon as k pairs are known, the
worst of them is the new threshold.  Where the estimate was too high, all records are joined at
the threshold of the step.

Ties are decided by (left, right), and scores are compared as fractions in integers, so the answer
is the same on every engine and at any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from matchwood.applications.join import COUNTED, NO_PAIRS, ONE, STEP, Choice, Raw, together
from matchwood.applications.join.result import by_left, by_score, scores_of

SAMPLE = 16  # one record in 16 is joined to estimate the number of pairs of a threshold
LEAST_SAMPLED = 4096  # records; fewer are joined without a sample
AT_ONCE = 1 << 20  # pairs that are looked at, for the best of each record of a kind
MANY_EQUAL = 64  # records equal to a record, on average: then one of each kind is joined
MIX = np.uint64(0x9E3779B97F4A7C15)  # odd


class _Best:
    """The best k pairs so far."""

    def __init__(self, k: int, sizes: tuple[np.ndarray, np.ndarray]) -> None:
        self.k = k
        self.sizes = sizes
        self.left = self.right = self.weight = np.empty(0, np.int64)
        self.waiting: list[Any] = []
        self.count = 0

    def add(self, raw: Any) -> None:
        kept = self.better(raw)
        self.waiting.append([array[kept] for array in raw])
        self.count += self.waiting[-1][0].size
        if self.count >= 2 * self.k + 1024:
            self.settle()

    def better(self, raw: Any) -> Any:
        """Which pairs precede the present k-th; all of them where int64 cannot decide."""
        if self.left.size < self.k:
            return slice(None)
        left, right, weight = (int(array[-1]) for array in (self.left, self.right, self.weight))
        total = int(self.sizes[0][left] + self.sizes[1][right])
        sums = self.sums(raw.left, raw.right)
        most = max(int(raw.weight.max(initial=0)) * total, weight * int(sums.max(initial=0)))
        if most >= 1 << 63:  # the products would not fit; `settle` compares them digit by digit
            return slice(None)
        mine, theirs = raw.weight * total, weight * sums
        first = (raw.left < left) | ((raw.left == left) & (raw.right < right))
        return (mine > theirs) | ((mine == theirs) & first)

    def settle(self) -> None:
        """Keep the best k, each once: after a change of the threshold a pair may be found again."""
        old = (self.left, self.right, self.weight)
        left, right, weight = (
            np.concatenate(parts) for parts in zip(old, *self.waiting, strict=True)
        )
        both = left.astype(np.int64) * self.sizes[1].size + right
        once = np.unique(both, return_index=True)[1]  # by (left, right)
        left, right, weight = left[once], right[once], weight[once]
        order = by_score(weight, self.sums(left, right))[: self.k]
        self.left, self.right, self.weight = left[order], right[order], weight[order]
        self.waiting, self.count = [], 0

    def sums(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.sizes[0][left] + self.sizes[1][right]

    def threshold(self) -> float:
        """The score of the k-th pair, 0 while there are fewer."""
        if self.left.size < self.k:
            return 0.0
        last = slice(self.k - 1, self.k)
        sums = self.sums(self.left[last], self.right[last])
        return float(scores_of(self.weight[last], sums)[0])


def best_pairs(
    engine: Any, prepared: Any, choice: Choice, in_steps: bool = True
) -> tuple[Any, Any, Any]:
    """left, right and weight of the k best pairs, by (-score, left, right).

    `in_steps`: a join at a higher threshold is cheaper, so those are tried first.
    """
    sizes = prepared.sizes
    best = _Best(choice.k or 1, sizes)
    records = sum(side.size for side in sizes)
    for delta in _levels(engine, prepared, choice, records) if in_steps else (choice.delta,):
        for raw in engine.above(prepared, choice, delta, best.threshold, None):
            best.add(raw)
        best.settle()
        if best.left.size == best.k:
            break
    return best.left, best.right, best.weight


# Records of one kind (score 1 with each other) have the same scores with all others.  So one of
# each kind is joined, and its rows take its place afterwards.  Pairs of score 1 need no join.


class _Kinds:
    """The rows of one side by kind; those that are empty or in no group have none."""

    def __init__(self, kinds: np.ndarray, count: int) -> None:
        self.of = kinds
        order = np.argsort(kinds, kind="stable")
        self.rows = order[np.count_nonzero(kinds < 0) :]  # by (kind, row)
        self.starts = np.searchsorted(kinds[self.rows], np.arange(count + 1))

    def repeated(self) -> float:
        """The number of rows of a row's kind, on average."""
        times = np.diff(self.starts).astype(float)
        return float((times**2).sum() / max(times.sum(), 1.0))

    def members(self, kind: int) -> np.ndarray:
        return self.rows[self.starts[kind] : self.starts[kind + 1]]

    def firsts(self) -> np.ndarray:
        """The first row of each kind, ascending."""
        return np.sort(self.rows[self.starts[:-1][np.diff(self.starts) > 0]])


def kinds_of(prepared: Any, groups: tuple[np.ndarray, ...] | None) -> list[_Kinds]:
    """The kinds of both sides, which are one object for a join with itself."""
    sides = len(prepared.records)
    keys = [kinds.astype(np.int64) for kinds in prepared.kinds()][:sides]
    kept = [sizes > 0 for sizes in prepared.sizes][:sides]
    if groups is not None:
        most = 1 + max(int(side.max(initial=0)) for side in groups)
        keys = [side * most + of for side, of in zip(keys, groups, strict=True)]
        kept = [side & (of >= 0) for side, of in zip(kept, groups, strict=True)]
    values, numbers = np.unique(np.concatenate(keys), return_inverse=True)
    parts = np.split(numbers.reshape(-1), [keys[0].size])[:sides]
    made = [
        _Kinds(np.where(some, part, -1), values.size)
        for some, part in zip(kept, parts, strict=True)
    ]
    return made * (3 - sides)


def best_of_kinds(engine: Any, prepared: Any, choice: Choice) -> tuple[Any, Any, Any]:
    """`best_pairs`, without joining records of one kind again and again."""
    engine.refuse(prepared, choice)
    if choice.verify not in ("certified", "exact"):  # others are not the same for equal records
        return best_pairs(engine, prepared, choice)
    mine, theirs = kinds_of(prepared, choice.groups)
    k = choice.k or 1
    found = [] if choice.exclude_equal else [_equal_pairs(mine, theirs, prepared.sizes[0], k)]
    need = k - sum(part[0].size for part in found)
    choice.stats.update(dict.fromkeys(COUNTED, 0))
    if need > 0 and max(mine.repeated(), theirs.repeated()) < MANY_EQUAL:
        return best_pairs(engine, prepared, choice)
    if need > 0:
        rows, some, less = _of_firsts(prepared, replace(choice, k=need), mine, theirs)
        left, right, weight = best_pairs(engine, some, less)
        firsts = rows[0][left], rows[-1][right], weight
        found.append(_all_of_kinds(firsts, mine, theirs, prepared.sizes, need))
    left, right, weight = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return left, right, weight


def _of_firsts(prepared: Any, choice: Choice, mine: _Kinds, theirs: _Kinds) -> Any:
    """One row of each kind of both sides, the collections of these, and what is asked of them."""
    rows = [side.firsts() for side in (mine, theirs)][: len(prepared.records)]
    groups = choice.groups
    some = None if groups is None else tuple(g[r] for g, r in zip(groups, rows, strict=True))
    return rows, prepared.part(rows), replace(choice, exclude_equal=True, groups=some)


def each_of_kinds(engine: Any, prepared: Any, choice: Choice) -> Iterator[Raw] | None:
    """The best partners of each left record, as `best_of_kinds`; None where that does not pay."""
    if choice.verify not in ("certified", "exact") or choice.shard[1] > 1:
        return None
    if max(map(_repeated_elements, prepared.records)) < MANY_EQUAL:  # quicker than the next lines
        return None
    mine, theirs = kinds_of(prepared, choice.groups)
    if max(mine.repeated(), theirs.repeated()) < MANY_EQUAL:
        return None
    return _each_of_kinds(engine, prepared, choice, mine, theirs)


def _repeated_elements(records: Any) -> float:
    """How often a record's sum of mixed elements occurs, on average."""
    starts, elements = records
    mixed = elements.astype(np.uint64) * MIX
    mixed = np.cumsum((mixed ^ (mixed >> np.uint64(32))) * MIX)
    mixed = np.concatenate((np.zeros(1, np.uint64), mixed))
    times = np.unique(np.diff(mixed[starts]), return_counts=True)[1].astype(float)
    return float((times**2).sum() / max(times.sum(), 1.0))


def _each_of_kinds(
    engine: Any, prepared: Any, choice: Choice, mine: _Kinds, theirs: _Kinds
) -> Iterator[Raw]:
    """The best of a record are of the kinds whose first rows are the best of its kind's first."""
    rows, some, less = _of_firsts(prepared, choice, mine, theirs)
    raw = together(list(engine.blocks(some, less, True)))
    left, right, weight = rows[0][raw.left], rows[-1][raw.right], raw.weight
    sizes, most = prepared.sizes, choice.per_left or 1
    order = by_left(left, right, weight, sizes[0][left] + sizes[1][right])
    left, right, weight = left[order], right[order], weight[order]
    for first in rows[0].tolist():
        kind = mine.of[first]
        at = slice(*np.searchsorted(left, (first, first + 1)))
        parts = [theirs.members(theirs.of[row])[:most] for row in right[at].tolist()]
        weights = np.repeat(weight[at], [part.size for part in parts])
        others = np.concatenate((right[:0], *parts))
        order = by_score(weights, sizes[0][first] + sizes[1][others], others)[:most]
        equal = theirs.members(kind)[: 0 if choice.exclude_equal else most + 1]
        others = np.concatenate((equal, others[order]))
        weights = np.concatenate((np.full(equal.size, sizes[0][first] * ONE), weights[order]))
        members = mine.members(kind)
        step = 1 + AT_ONCE // max(others.size, 1)
        for some_rows in np.split(members, range(step, members.size, step)):
            pairs = np.broadcast_to(others, (some_rows.size, others.size))
            kept = pairs != some_rows[:, None] if mine is theirs else np.ones(pairs.shape, bool)
            kept &= np.cumsum(kept, axis=1) <= most
            at_left, at_right = np.nonzero(kept)
            yield Raw(some_rows[at_left], others[at_right], weights[at_right])


def _equal_pairs(mine: _Kinds, theirs: _Kinds, sizes: np.ndarray, k: int) -> tuple[Any, Any, Any]:
    """The first k pairs of one kind, by (left, right)."""
    kinds = mine.of
    if mine is theirs:  # only later rows of the kind
        firsts = np.zeros(kinds.size, np.int64)
        firsts[mine.rows] = np.arange(1, mine.rows.size + 1)
    else:
        firsts = theirs.starts[kinds]
    counts = np.where(kinds < 0, 0, theirs.starts[kinds + 1] - firsts)
    left, right = _spread(np.arange(kinds.size), firsts, counts, theirs.rows, k)
    return left, right, sizes[left].astype(np.int64) * ONE


def _spread(
    rows: np.ndarray, firsts: np.ndarray, counts: np.ndarray, others: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first `most` pairs of each of `rows` with others[first : first + count]."""
    ends = np.cumsum(counts)
    used = int(np.searchsorted(ends, most)) + 1
    rows, firsts, counts, ends = rows[:used], firsts[:used], counts[:used], ends[:used]
    at = np.arange(ends[-1] if ends.size else 0) + np.repeat(firsts - (ends - counts), counts)
    return np.repeat(rows, counts)[:most], others[at[:most]]


def _all_of_kinds(
    firsts: tuple[Any, Any, Any], mine: _Kinds, theirs: _Kinds, sizes: Any, k: int
) -> tuple[Any, Any, Any]:
    """The best k pairs of rows, from the best k pairs of first rows of different kinds.

    A pair precedes all others of the same two kinds, and those have its score: so no other kinds
    are needed.
    """
    left, right, weight = firsts
    sums = sizes[0][left] + sizes[1][right]
    kinds = mine.of[left], theirs.of[right]
    times = np.diff(mine.starts)[kinds[0]] * np.diff(theirs.starts)[kinds[1]]
    # pairs of one score: those of better scores come first, and k of all are needed
    divisor = np.gcd(weight, sums)
    changes = np.diff(weight // divisor, prepend=-1) | np.diff(sums // divisor, prepend=-1)
    tie = np.cumsum(changes != 0) - 1
    before = np.concatenate(([0], np.cumsum(np.bincount(tie, times))))[tie].astype(np.int64)
    found: list[Any] = []
    last: tuple[int, int, int] | None = None  # the worst pair that is needed of a tie
    for i in np.flatnonzero(before < k).tolist():
        rows = int(left[i]), int(right[i])
        need = k - int(before[i])
        if last is not None and last[0] == tie[i] and rows > last[1:]:
            continue
        a, b = mine.members(kinds[0][i]), theirs.members(kinds[1][i])
        pair = _pairs_of_two(a, b, mine is theirs, need)
        if pair[0].size == need:
            last = int(tie[i]), int(pair[0][-1]), int(pair[1][-1])
        found.append((*pair, np.full(pair[0].size, weight[i])))
    left, right, weight = (np.concatenate(arrays) for arrays in zip(NO_PAIRS, *found, strict=True))
    order = by_score(weight, sizes[0][left] + sizes[1][right], left, right)[:k]
    return left[order], right[order], weight[order]


def _pairs_of_two(a: np.ndarray, b: np.ndarray, itself: bool, most: int) -> Any:
    """The first `most` pairs of rows of two kinds, by (left, right)."""
    if not itself:
        return _spread(a, np.zeros(a.size, np.int64), np.full(a.size, b.size), b, most)
    rows = np.concatenate((a, b))
    firsts = np.concatenate((a.size + np.searchsorted(b, a), np.searchsorted(a, b)))
    counts = np.repeat((rows.size, a.size), (a.size, b.size)) - firsts
    order = np.argsort(rows)
    return _spread(rows[order], firsts[order], counts[order], rows, most)


def _levels(engine: Any, prepared: Any, choice: Choice, records: int) -> Iterator[float]:
    """Thresholds at which all records are joined, until there are k pairs; the last is delta."""
    for delta in _thresholds(choice.delta, choice.exclude_equal):
        if delta > choice.delta and records >= LEAST_SAMPLED:
            some = engine.above(
                prepared, choice, delta, lambda: 0.0, lambda task: task.sample(SAMPLE)
            )
            yield from _guesses(list(some), prepared, choice, delta)
        else:
            yield delta


def _guesses(some: list[Any], prepared: Any, choice: Choice, delta: float) -> Iterator[float]:
    """Estimates of the k-th best score from the pairs of a sample at `delta`, then delta itself.

    Nothing where there are not k pairs.  Of k pairs a sample has k / SAMPLE on average, and the
    square root of that more or less.
    """
    expected = (choice.k or 1) / SAMPLE
    place = int(expected + 2 * expected**0.5 + 2)
    seen = sum(raw.left.size for raw in some)
    if seen < expected + expected**0.5 + 1:
        return
    if seen > place:
        sizes = prepared.sizes
        scores = [scores_of(r.weight, sizes[0][r.left] + sizes[1][r.right]) for r in some]
        guess = float(-np.partition(-np.concatenate(scores), place - 1)[place - 1])
        if guess > delta:
            yield guess
    yield delta


def _thresholds(least: float, unequal: bool) -> Iterator[float]:
    """Thresholds from 1 down in steps, then `least`.  Unequal pairs have a score below 1."""
    steps = int((1.0 - least) / STEP)
    tried = (1.0 - STEP * i for i in range(int(unequal), steps))
    yield from (delta for delta in tried if delta > least + STEP / 2)
    yield least

"""The join from its definition: every pair of records, every pair of elements.  Slow on purpose."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from matchwood.applications.join import ONE, Raw
from matchwood.applications.join.similarity.reference import phi
from matchwood.applications.join.verification import reference, share_of

MATCHINGS = {
    "exact": reference.exact,
    "certified": reference.exact,
    "early": reference.exact,
    "greedy": reference.greedy,
    "dominant": reference.dominant,
}


def in_order(record: Sequence[Any], similarity: str = "jaccard", q: int = 3) -> list[Any]:
    """The distinct elements of a record, without empty ones: by (length as compared, text)."""
    kept = sorted({element for element in record if element != ""})
    if similarity == "edit":
        kept.sort(key=len)
    elif similarity != "equal":
        kept.sort(key=lambda text: -(-len(text) // q))
    return kept


def rest_of(
    r: Sequence[Any], s: Sequence[Any], similarity: str
) -> tuple[int, list[Any], list[Any]]:
    """(number of equal elements, which are matched; the others of r; the others of s).

    Only where 1 - similarity is a metric: two edit distances can be less than the direct one.
    """
    if similarity not in ("jaccard", "equal"):
        return 0, list(r), list(s)
    both = set(r) & set(s)
    return len(both), [e for e in r if e not in both], [e for e in s if e not in both]


def weight(
    r: Sequence[Any],
    s: Sequence[Any],
    similarity: str = "jaccard",
    q: int = 3,
    verify: str = "exact",
    mode: str = "weight",
) -> int:
    """The weight of the matching of two records, in units of 2^-40.

    The approximate ones depend on the order of the elements: `in_order`.
    """
    equal, r, s = rest_of(r, s, similarity)
    matrix = [[phi(a, b, similarity, q) for b in s] for a in r]
    most = min(len(r), len(s)) * ONE
    if verify == "streaming":
        taken, duals, _ = reference.streaming(matrix)
        bound = math.ceil(duals + math.ceil(duals / 100))
    else:
        taken = MATCHINGS[verify](matrix)
        bound = 2 * reference.weight_of(taken)
    approximate = verify in ("greedy", "dominant", "streaming")
    if approximate and mode == "bound":
        return equal * ONE + min(bound, most)
    return equal * ONE + reference.weight_of(taken)


def least_weight(delta: float, left: int, right: int) -> int:
    """The least weight, above 0, that is reported for records of `left` and `right` elements."""
    return max(1, math.floor(share_of(delta) * (left + right) * ONE) - min(left, right))


# As an engine: records and options are checked


def blocks(prepared: Any, choice: Any, whole: bool) -> Iterator[Raw]:
    """The pairs of a join.  Of `parts` shards, `part` has left records part, part + parts, ..."""
    part, parts = choice.shard
    pairs = [
        (i, j, total) for i, j, total in _pairs(prepared, choice, choice.delta) if i % parts == part
    ]
    choice.stats["seconds"] = {}
    yield _raw(pairs if choice.per_left is None else _best_of(prepared, choice, pairs))


def above(prepared: Any, choice: Any, delta: float, raise_to: Any, sample: Any) -> Iterator[Raw]:
    """Pairs of at least `delta`, for the best k.  Never of a sample."""
    yield _raw(_pairs(prepared, choice, delta))


def _pairs(prepared: Any, choice: Any, delta: float) -> list[tuple[int, int, int]]:
    sides = [_texts(prepared, side) for side in (0, -1)]
    itself, everyone = len(prepared.records) == 1, choice.per_left is not None
    found = []
    for i, r in enumerate(sides[0]):
        for j, s in enumerate(sides[1]):
            if not r or not s or (itself and (i == j if everyone else i >= j)):
                continue
            if not _together(choice.groups, i, j):
                continue
            a, b = (s, r) if itself and i > j else (r, s)  # the smaller row is the left one
            total = weight(a, b, prepared.similarity, prepared.q, choice.verify, choice.mode)
            if choice.exclude_equal and len(r) == len(s) and _equal(prepared, r, s):
                continue
            if total >= least_weight(delta, len(r), len(s)):
                found.append((i, j, total))
    return found


def _equal(prepared: Any, r: Sequence[Any], s: Sequence[Any]) -> bool:
    """Whether the exact score is 1, whatever matching was asked for."""
    return weight(r, s, prepared.similarity, prepared.q) == len(r) * ONE


def _texts(prepared: Any, side: int) -> list[list[Hashable]]:
    starts, elements = prepared.records[side]
    return [
        [prepared.values[e] for e in elements[starts[i] : starts[i + 1]]]
        for i in range(starts.size - 1)
    ]


def _together(groups: Any, i: int, j: int) -> bool:
    return groups is None or (groups[0][i] == groups[-1][j] and groups[0][i] >= 0)


def _best_of(
    prepared: Any, choice: Any, pairs: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    sizes = [np.diff(prepared.records[side].starts).tolist() for side in (0, -1)]
    ordered = sorted(pairs, key=lambda p: (-Fraction(p[2], sizes[0][p[0]] + sizes[1][p[1]]), p[1]))
    seen: dict[int, int] = {}
    kept = []
    for pair in ordered:
        seen[pair[0]] = seen.get(pair[0], 0) + 1
        if seen[pair[0]] <= choice.per_left:
            kept.append(pair)
    return kept


def _raw(pairs: list[tuple[int, int, int]]) -> Raw:
    columns = list(zip(*pairs, strict=True)) if pairs else [(), (), ()]
    kinds = (np.int32, np.int32, np.int64)
    return Raw(*(np.array(c, kind) for c, kind in zip(columns, kinds, strict=True)))

"""The join from its definition: every pair of records, every pair of elements.  Slow on purpose.

Records are lists of texts.  What a user may give besides (tables, columns, separators) is read by
`collection`; this file starts from the texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matchwood.join.similarity.reference import ONE, phi
from matchwood.join.verification import SLACK, reference

Records = Sequence[Sequence[str]]
Found = tuple[int, int, float]  # left, right, score

METHODS = {
    "exact": reference.exact,
    "certified": reference.exact,
    "greedy": reference.greedy,
    "dominant": reference.dominant,
}


def distinct(record: Sequence[str]) -> list[str]:
    """The elements of a record, each once, without empty ones."""
    return [element for element in dict.fromkeys(record) if element]


def rest_of(r: Sequence[str], s: Sequence[str], similarity: str) -> tuple[int, list[str], list[str]]:
    """(equal elements, which are matched with each other; those of r left; those of s left).

    Only where 1 - similarity is a metric: two edit distances can be less than the direct one.
    """
    if similarity not in ("jaccard", "equal"):
        return 0, list(r), list(s)
    both = set(r) & set(s)
    return len(both), [e for e in r if e not in both], [e for e in s if e not in both]


def weight(
    r: Sequence[str], s: Sequence[str], similarity: str = "jaccard", q: int = 3, method: str = "exact"
) -> int:
    """What the matching of two records weighs, in units of 2^-40; their elements are distinct."""
    equal, r, s = rest_of(r, s, similarity)
    matrix = [[phi(a, b, similarity, q) for b in s] for a in r]
    return equal * ONE + reference.weight_of(METHODS[method](matrix))


def least_weight(delta: float, left: int, right: int) -> int:
    """The least weight that is reported for records of so many elements, above 0."""
    lowest = delta - SLACK
    share = lowest / (1.0 + lowest)
    return max(1, math.floor(share * (left + right) * ONE) - min(left, right))


def fuzzy_join(
    left: Records,
    right: Records | None = None,
    *,
    delta: float = 0.7,
    similarity: str = "jaccard",
    q: int = 3,
    method: str = "exact",
) -> list[Found]:
    """All pairs that reach delta, with their scores, by (left, right)."""
    one = [distinct(record) for record in left]
    other = one if right is None else [distinct(record) for record in right]
    found = []
    for i, r in enumerate(one):
        for j in range(i + 1 if right is None else 0, len(other)):
            s = other[j]
            if not r or not s:
                continue
            total = weight(r, s, similarity, q, method)
            if total >= least_weight(delta, len(r), len(s)):
                found.append((i, j, total / (ONE * (len(r) + len(s)) - total)))
    return found

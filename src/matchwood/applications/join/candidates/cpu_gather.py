"""Which records can be similar to one record: gathered from the index, then refined.

    gather     the posting lists of the record's prefix give candidates, with a bound on the
               matching weight; those whose bound is too small go at once
    refine     the token lists of both records, merged until the bound fails

Both records of a pair that counts share a token of both prefixes.  For take the record whose
prefix ends first in the order of tokens: a shared token in it would also lie in the other's
prefix; so without one, all that they share lies after it, and that is too little.

The bounds hold by utilities (cpu_lists.py).  After a shared token, what comes later is at most
what is left in either record.  A token that m elements can share at most adds, for the joint
filter, the m largest utilities of both sides, in order, the smaller one of each two.

Edit similarities: the utilities of chunks are the left record's own, so all tokens of the other
side are in the index, and only what is left in the left record bounds the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join.candidates.cpu_lists import SLACK, Index, Lists, prefix_end
from matchwood.engines.cpu import Team, device, inlined, stopping

BASIC, POSITIONAL, JOINT = 0, 1, 2
WINDOW = 1 << 18  # records on the right that are looked at together: 5 MB a thread


class Rule(NamedTuple):
    """What counts as a pair, and how candidates are found."""

    share: float  # d / (1 + d), d = delta - 1e-9: what a pair needs of the sum of its sizes
    prefix: float  # what the left record needs at least, for each of its elements
    level: int  # BASIC, POSITIONAL, JOINT
    edit: int  # 1: chunks on the left, grams on the right
    itself: int  # 1: a join with itself, in which the left row is the smaller one
    unequal: int  # 1: no pairs of score 1


class Sums(NamedTuple):
    """One member's accumulators over a window."""

    got: np.ndarray  # float64: utility gathered so far; 0 where the record is no candidate
    bound: np.ndarray  # float64: most that the pair can weigh
    found: np.ndarray  # int32: the candidates, as places in the window


@device
def first_at_least(positions: Any, lo: int, hi: int, least: int) -> int:
    while lo < hi:
        middle = (lo + hi) >> 1
        if positions[middle] < least:
            lo = middle + 1
        else:
            hi = middle
    return lo


@inlined
def prefix_of(lists: Lists, row: int, size: int, rule: Rule) -> Any:
    """(end of the prefix, what is left after it, whether that is still enough for a pair).

    Edit similarities alone leave enough where a record has no prefix.
    """
    least = rule.prefix * size
    end = prefix_end(lists, row, float(size), least)
    left = np.float64(lists.rests[end - 1]) if end > lists.starts[row] else float(size)
    return end, left, rule.edit != 0 and left >= least - SLACK


@inlined
def gather(
    team: Team,
    lists: Lists,
    index: Index,
    row: int,
    size: int,
    lo: int,
    hi: int,
    rule: Rule,
    sums: Sums,
) -> int:
    """Candidates among the right positions lo..hi, in sums.found; how many.  -1: the team stops.

    A record without a prefix has all of them as candidates.
    """
    least = rule.prefix * size
    start = lists.starts[row]
    end, left, unbounded = prefix_of(lists, row, size, rule)
    if unbounded:
        for k in range(hi - lo):
            sums.found[k] = k
            sums.bound[k] = size
            sums.got[k] = 0.0
        return hi - lo
    found = 0
    sided = rule.level != BASIC and rule.edit == 0
    for i in range(start, end):
        token = lists.tokens[i]
        a, b = index.starts[token], index.starts[token + 1]
        if a == b:
            continue
        if stopping(team):
            return -1
        a = first_at_least(index.positions, a, b, lo)
        utility, rest = np.float64(lists.totals[i]), np.float64(lists.rests[i])
        most = np.float64(lists.utilities[start + lists.firsts[i]])
        positions = index.positions[a:b]
        totals, rests = index.totals[a:b], index.rests[a:b]
        for j in range(positions.size):
            if positions[j] >= hi:
                break
            k = positions[j] - lo
            shared = utility
            if rule.level == JOINT:
                other = np.float64(totals[j])
                shared = min(utility, other * most if rule.edit != 0 else other)
            got = sums.got[k]
            bound = got + shared + (min(rest, np.float64(rests[j])) if sided else rest)
            if got == 0.0:
                if bound < least - SLACK:
                    continue  # and later tokens will not help: the bound only falls
                sums.found[found] = k
                found += 1
            sums.got[k] = got + shared
            sums.bound[k] = bound
    for c in range(found):
        k = sums.found[c]
        if not sided:
            sums.bound[k] = sums.got[k] + left
        sums.got[k] = 0.0
    return found


@device
def _pairwise(mine: Any, theirs: Any) -> float:
    """Utilities of one token in two records, the smaller of each two, added up."""
    total = 0.0
    for i in range(min(mine.size, theirs.size)):
        total += min(mine[i], theirs[i])
    return total


@inlined
def _uses(lists: Lists, row: int, at: int) -> tuple[int, int]:
    """Where the utilities of the token at `at` lie."""
    start = lists.starts[row]
    last = lists.firsts[at + 1] if at + 1 < lists.ends[row] else lists.starts[row + 1] - start
    return start + lists.firsts[at], start + last


@device
def can_reach(lists: Lists, row: int, others: Lists, other: int, need: float, rule: Rule) -> Any:
    """Merge the token lists of two records.  False: their matching weighs less than `need`."""
    i, end = lists.starts[row], lists.ends[row]
    j, stop = others.starts[other], others.ends[other]
    need -= SLACK
    got = 0.0
    sided = rule.level != BASIC and rule.edit == 0
    rest = rest_other = np.float64(1e300)
    while i < end and j < stop:
        x, y = lists.tokens[i], others.tokens[j]
        if x == y:
            if rule.level != JOINT:
                got += lists.totals[i]
            else:
                a, b = _uses(lists, row, i)
                c, d = _uses(others, other, j)
                if rule.edit != 0:
                    for k in range(a, min(b, a + d - c)):
                        got += lists.utilities[k]
                else:
                    got += _pairwise(lists.utilities[a:b], others.utilities[c:d])
        if x <= y:
            rest = np.float64(lists.rests[i])
            i += 1
        if y <= x:
            if sided:
                rest_other = np.float64(others.rests[j])
            j += 1
        if got + min(rest, rest_other) < need:
            return False
    if rule.edit != 0:
        rest = np.float64(lists.rests[end - 1] if end > lists.starts[row] else 1e300)
        return got + rest >= need
    return got >= need


@device
def lengths_reach(elements: Any, left: Any, right: Any, need: float) -> bool:
    """Edit similarity is at most the shorter length by the longer.  Elements ascend by length."""
    starts = elements.text_starts
    total = 0.0
    j = 0
    for i in range(left.size):
        mine = starts[left[i] + 1] - starts[left[i]]
        while j + 1 < right.size and starts[right[j] + 1] - starts[right[j]] < mine:
            j += 1
        above = starts[right[j] + 1] - starts[right[j]]
        best = min(mine, above) / max(mine, above)
        if j > 0:
            below = starts[right[j - 1] + 1] - starts[right[j - 1]]
            best = max(best, below / mine)
        total += best
    return total >= need - SLACK

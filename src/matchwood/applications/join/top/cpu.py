"""The best partners of each left record.

Candidates are verified in the order of their bounds, best first (a heap), and each must reach the
worst of the best so far.  When the next bound cannot, the record is done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join.candidates.cpu import (
    FILLED,
    FULL,
    GENERATED,
    OVERFLOW,
    REFINED,
    Corpus,
    Known,
    Members,
    ProbeOrder,
    Rule,
    Sums,
    begin,
    decided,
    end_item,
    gather,
    item_at_work,
    size_of,
)
from matchwood.applications.join.candidates.cpu.index import SLACK
from matchwood.applications.join.similarity.cpu import ONE
from matchwood.applications.join.verification.cpu import ACCEPTED, NO_ROOM, STOPPED
from matchwood.applications.join.verification.cpu.rows import How, Scratch, mine
from matchwood.engines.cpu import Team, device, inlined, kernel, stopping, store_relaxed

MARGIN = 1e-9  # of a share, for rounding: bounds within it are verified


class Kept(NamedTuple):
    """The best partners of one record so far, best first.  The first axis is the member."""

    rows: np.ndarray  # int32
    weights: np.ndarray  # int64
    sums: np.ndarray  # int64: sizes of both records added up
    most: int  # partners that are kept


@device
def _sift(found: Any, key: Any, at: int, size: int) -> None:
    """Heap order below `at`: the largest key is on top."""
    value = found[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and key[found[child + 1]] > key[found[child]]:
            child += 1
        if key[found[child]] <= key[value]:
            break
        found[at] = found[child]
        at = child
    found[at] = value


@device
def _is_better(weight: int, total: int, row: int, weight2: int, total2: int, row2: int) -> bool:
    """Compare by score, as fractions weight / total in integers, then by row."""
    if weight // total != weight2 // total2:
        return weight // total > weight2 // total2
    mine, theirs = (weight % total) * total2, (weight2 % total2) * total
    return mine > theirs or (mine == theirs and row < row2)


@device
def _insert(kept: Kept, rank: int, count: int, row: int, weight: int, total: int) -> int:
    """Insert a partner in order, dropping the last where there are more than `most`."""
    rows, weights, sums = kept.rows[rank], kept.weights[rank], kept.sums[rank]
    at = count
    while at > 0 and _is_better(weight, total, row, weights[at - 1], sums[at - 1], rows[at - 1]):
        if at < kept.most:
            rows[at], weights[at], sums[at] = rows[at - 1], weights[at - 1], sums[at - 1]
        at -= 1
    if at < kept.most:
        rows[at], weights[at], sums[at] = row, weight, total
    return min(count + 1, kept.most)


@inlined
def _best_of(
    team: Team,
    corpus: Corpus,
    places: ProbeOrder,
    item: int,
    rule: Rule,
    how: How,
    space: Scratch,
    work: Members,
    kept: Kept,
) -> int:
    """The number of partners kept; below 0: the team stops, or a pair did not fit."""
    rank = team.rank
    counts = work.counts[rank]
    sums = Sums(work.got[rank], work.bound[rank], work.found[rank])
    known = Known(work.keys[rank], work.weights[rank], work.rows[rank], work.columns[rank])
    row = places.rows[item]
    size = size_of(corpus.left, row)
    window = sums.found.size
    count = 0
    least = rule.share
    for lo in range(places.lows[item], places.highs[item], window):
        hi = min(lo + window, places.highs[item])
        found = gather(team, corpus.left_lists, corpus.index, row, size, lo, hi, rule, sums)
        if found < 0:
            return STOPPED
        counts[GENERATED] += found
        for c in range(found):
            k = sums.found[c]
            other = size_of(corpus.right, places.right_rows[lo + k])
            sums.bound[k] = min(sums.bound[k], float(min(size, other))) / (size + other)
        for at in range(found // 2 - 1, -1, -1):
            _sift(sums.found, sums.bound, at, found)
        while found > 0:
            k = sums.found[0]
            if sums.bound[k] < least - SLACK:
                break
            if found & 255 == 0 and stopping(team):
                return STOPPED
            found -= 1
            sums.found[0] = sums.found[found]
            _sift(sums.found, sums.bound, 0, found)
            other = places.right_rows[lo + k]
            if rule.itself != 0 and other == row:
                continue
            if rule.unequal != 0 and corpus.left_kinds[row] == corpus.right_kinds[other]:
                continue
            counts[REFINED] += 1
            at_least = Rule(least, rule.prefix, rule.level, rule.edit, rule.itself, rule.unequal)
            verdict, weight = decided(team, corpus, row, other, at_least, how, space, known, counts)
            if verdict == NO_ROOM:
                work.state[rank, OVERFLOW] = max(work.state[rank, OVERFLOW], weight)
            if verdict < 0:
                return verdict
            if not verdict & ACCEPTED or weight <= 0:
                continue
            theirs = size_of(corpus.right, other)
            count = _insert(kept, rank, count, other, weight, size + theirs)
            if count == kept.most:
                worst = float(kept.weights[rank, count - 1]) / ONE / kept.sums[rank, count - 1]
                least = max(rule.share, worst - MARGIN)
    return count


@kernel
def join_best(
    team: Team,
    corpus: Corpus,
    places: ProbeOrder,
    rule: Rule,
    how: How,
    kept: Kept,
    spaces: Scratch,
    work: Members,
    words: Any,
    before: int,
) -> None:
    space = mine(spaces, team.rank)
    state = work.state[team.rank]
    begin(team, places, before)
    while True:
        item = item_at_work(team, places, words, state)
        if item < 0:
            return
        if state[FILLED] + kept.most > work.left.shape[1]:
            store_relaxed(words, FULL, 1)
            return
        count = _best_of(team, corpus, places, item, rule, how, space, work, kept)
        if count == STOPPED:
            return
        at = state[FILLED]
        if count == NO_ROOM:  # the host does this record again, with more room
            work.left[team.rank, at] = places.rows[item]
            work.weight[team.rank, at] = NO_ROOM
            state[FILLED] = at + 1
        else:
            for i in range(count):
                work.left[team.rank, at + i] = places.rows[item]
                work.right[team.rank, at + i] = kept.rows[team.rank, i]
                work.weight[team.rank, at + i] = kept.weights[team.rank, i]
            state[FILLED] = at + count
        end_item(team, state)

"""Left records probed one by one on a team, chunk by chunk of equal cost: all pairs, or the best.

A member takes a chunk of left records, gathers the candidates of each (../candidates), refines and
verifies them, and writes pairs into a buffer of its own.  When a buffer is full, all members
stop after their record and the host collects the pairs (`Task.run` in ../cpu.py): so memory is
bounded, whatever the answer.  A member's position is kept in `state`.

No two members write the same word, but for the cursor and the flag in `words`, which are atomic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join import Elements, Records
from matchwood.applications.join.candidates.cpu import (
    SLACK,
    Index,
    Rule,
    Sums,
    TokenLists,
    can_reach,
    first_at_least,
    gather,
    lengths_reach,
    prefix_of,
)
from matchwood.applications.join.similarity.cpu import ONE, jaccard
from matchwood.applications.join.verification.cpu import ACCEPTED, NO_ROOM, SOLVED
from matchwood.applications.join.verification.cpu.pairs import Verifier, verify_pair
from matchwood.applications.join.verification.cpu.rows import EXACT, STOPPED, How, least_weight
from matchwood.engines.cpu import (
    Team,
    advance,
    atomic_add,
    device,
    expect,
    inlined,
    interrupted,
    kernel,
    load_relaxed,
    share,
    stopping,
    store_relaxed,
)

WINDOW = 1 << 18  # right records whose sums are held at once: 5 MB a thread
PRUNED = -3  # a verdict: not verified, since it cannot be a pair
# words that members share
CURSOR, FULL, WORDS = 0, 16, 32
# a member's state: where it stands, pairs in its buffer, and those of them that did not fit the
# scratch (for the best partners of a record: the most edges that such a pair had)
ITEM, END, SKIP, FILLED, OVERFLOW, STATE = 0, 1, 2, 3, 4, 16
# what it has counted
GENERATED, REFINED, VERIFIED = 0, 1, 2
ACCEPTED_BY_BOUND, REJECTED_BY_BOUND, SOLVED_EXACTLY, COUNTS = 3, 4, 5, 16
KINDS = (REJECTED_BY_BOUND, ACCEPTED_BY_BOUND, SOLVED_EXACTLY, SOLVED_EXACTLY)  # by verdict
TOO_FEW, OPEN = -1, -2  # results of `settle`: cannot reach what it needs; undecided
SLOTS = 1 << 14  # similarities cached by a member: 256 KB
_SHIFT = np.uint64(64 - 14)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio
MARGIN = 1e-9  # of a share, for rounding: bounds within it are verified


class Corpus(NamedTuple):
    """Both sides."""

    elements: Elements
    left: Records
    right: Records
    left_lists: TokenLists
    right_lists: TokenLists
    index: Index
    nearest: np.ndarray  # float64: how similar each element can be to another; jaccard only
    left_kinds: np.ndarray  # int32: records of one kind have score 1; empty where not needed
    right_kinds: np.ndarray


class ProbeOrder(NamedTuple):
    """Which records are probed, in which order, against which."""

    rows: np.ndarray  # int32: the left row of each item
    lows: np.ndarray  # int32: right positions that are admitted ...
    highs: np.ndarray  # int32: ... up to this one
    right_rows: np.ndarray  # int32: the right row of each position
    chunks: np.ndarray  # int64: where chunks of items begin


class Job(NamedTuple):
    """What is joined, and how."""

    corpus: Corpus
    places: ProbeOrder
    rule: Rule
    how: How


class Members(NamedTuple):
    """What each member writes; the first axis is the member."""

    state: np.ndarray  # int64
    counts: np.ndarray  # int64
    got: np.ndarray  # float64
    bound: np.ndarray
    found: np.ndarray  # int32
    keys: np.ndarray  # see Known
    weights: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    left: np.ndarray  # int32: pairs, as rows
    right: np.ndarray
    weight: np.ndarray  # int64: of their matching, in units of 2^-40; below 0: did not fit


# Pairs that are settled at once
#
# Equal elements are matched with each other (for Jaccard that loses nothing).  What is left of both
# records weighs no more than the nearest neighbours of its elements.  Where one side has one or two
# elements left, the heaviest matching needs no solver: it is the largest similarity, or the best
# two in different columns.
#
# Similarities of distinct elements are needed repeatedly, so each member caches them in a hash
# table in which a later pair overwrites an earlier one in its slot.


class Known(NamedTuple):
    """One member's cache of similarities, and the elements that are left of a pair."""

    keys: np.ndarray  # uint64: both elements; 0 is free, since the second one is larger
    weights: np.ndarray  # int64
    rows: np.ndarray  # int32: elements left on one side ...
    columns: np.ndarray  # int32: ... and on the other


@device
def similarity(elements: Elements, a: int, b: int, keys: Any, weights: Any) -> int:
    """Jaccard similarity of two different elements, cached."""
    low, high = np.uint64(min(a, b)), np.uint64(max(a, b))
    key = (low << np.uint64(32)) | high
    slot = (key * _SPREAD) >> _SHIFT
    if keys[slot] == key:
        return weights[slot]
    found = jaccard(elements, a, b)
    keys[slot] = key
    weights[slot] = found
    return found


@device
def _best_of_row(elements: Elements, a: int, others: Any, keys: Any, weights: Any) -> Any:
    best = np.int64(0)
    for j in range(others.size):
        best = max(best, similarity(elements, a, others[j], keys, weights))
    return best


@device
def _best_of_two_rows(
    elements: Elements, a: int, b: int, others: Any, keys: Any, weights: Any
) -> Any:
    """The heaviest matching of two elements with several: the best columns, not the same one.

    If both rows prefer one column, one of them takes its second best.
    """
    first = second = np.int64(0)  # best of row a, and its best outside that column
    other_first = other_second = np.int64(0)
    at = other_at = -1
    for j in range(others.size):
        x = similarity(elements, a, others[j], keys, weights)
        y = similarity(elements, b, others[j], keys, weights)
        if x > first:
            first, second, at = x, first, j
        elif x > second:
            second = x
        if y > other_first:
            other_first, other_second, other_at = y, other_first, j
        elif y > other_second:
            other_second = y
    if at != other_at or at < 0:
        return first + other_first
    return max(first + other_second, second + other_first)


@inlined
def settle(
    elements: Elements, left: Any, right: Any, nearest: Any, need: int, solves: bool, known: Known
) -> int:
    """The weight if it is settled here (with `solves`, small rests too), else TOO_FEW or OPEN."""
    i = j = same = rows = columns = 0
    mine = theirs = 0.0
    while i < left.size and j < right.size:
        x, y = left[i], right[j]
        if x == y:
            same += 1
            i += 1
            j += 1
        elif x < y:
            mine += nearest[x]
            known.rows[rows] = x
            rows += 1
            i += 1
        else:
            theirs += nearest[y]
            known.columns[columns] = y
            columns += 1
            j += 1
    while i < left.size:
        x = left[i]
        mine += nearest[x]
        known.rows[rows] = x
        rows += 1
        i += 1
    while j < right.size:
        y = right[j]
        theirs += nearest[y]
        known.columns[columns] = y
        columns += 1
        j += 1
    rest = min(mine, theirs)
    if (same + rest + SLACK) * ONE < need:
        return TOO_FEW
    if rest <= 0.0:
        return same * ONE
    if not solves or min(rows, columns) > 2:
        return OPEN
    keys, weights = known.keys, known.weights
    if rows == 1:
        best = _best_of_row(elements, known.rows[0], known.columns[:columns], keys, weights)
    elif columns == 1:
        best = _best_of_row(elements, known.columns[0], known.rows[:rows], keys, weights)
    elif rows == 2:
        best = _best_of_two_rows(
            elements, known.rows[0], known.rows[1], known.columns[:columns], keys, weights
        )
    else:
        best = _best_of_two_rows(
            elements, known.columns[0], known.columns[1], known.rows[:rows], keys, weights
        )
    return same * ONE + best


# Probing


@inlined
def size_of(records: Records, row: int) -> int:
    return records.starts[row + 1] - records.starts[row]


@inlined
def members_of(records: Records, row: int) -> Any:
    return records.elements[records.starts[row] : records.starts[row + 1]]


@kernel
def count_postings(team: Team, corpus: Corpus, places: ProbeOrder, rule: Rule, costs: Any) -> None:
    """Entries of posting lists that each item will read, and one for the item itself."""
    lists, index = corpus.left_lists, corpus.index
    lo, hi = share(team, places.rows.size)
    for item in range(lo, hi):
        if interrupted(team, item):
            return
        row, first, last = places.rows[item], places.lows[item], places.highs[item]
        cost = np.int64(1)
        if first < last:
            end, _, unbounded = prefix_of(lists, row, size_of(corpus.left, row), rule)
            if unbounded:
                cost += last - first
            else:
                for i in range(lists.starts[row], end):
                    a, b = index.starts[lists.tokens[i]], index.starts[lists.tokens[i] + 1]
                    if a < b:
                        a = first_at_least(index.positions, a, b, first)
                        cost += first_at_least(index.positions, a, b, last) - a
        costs[item] = cost


@inlined
def worth_verifying(corpus: Corpus, left_row: int, right_row: int, need: float, rule: Rule) -> bool:
    """Whether the pair passes the filters between gathering and verification."""
    if rule.edit != 0:
        left, right = members_of(corpus.left, left_row), members_of(corpus.right, right_row)
        if not lengths_reach(corpus.elements, left, right, need):
            return False
    return can_reach(corpus.left_lists, left_row, corpus.right_lists, right_row, need, rule)


@inlined
def count_verdict(counts: Any, verdict: int) -> None:
    counts[VERIFIED] += 1
    if verdict & SOLVED:
        counts[SOLVED_EXACTLY] += 1
    elif verdict & ACCEPTED:
        counts[ACCEPTED_BY_BOUND] += 1
    else:
        counts[REJECTED_BY_BOUND] += 1


@device
def _verified(
    team: Team, job: Job, row: int, other: int, rule: Rule, verifier: Verifier
) -> tuple[int, int]:
    """The filters, then verification.  Not inlined: few pairs get here, and compiling costs."""
    corpus = job.corpus
    left, right = members_of(corpus.left, row), members_of(corpus.right, other)
    if not worth_verifying(corpus, row, other, rule.share * (left.size + right.size), rule):
        return PRUNED, 0
    need = least_weight(rule.share, left.size, right.size)
    # where both sides are the same, the smaller row is on the left
    if rule.itself != 0 and other < row:
        row, other = other, row
    return verify_pair(team, row, other, rule.exchanged != 0, need, verifier)


@inlined
def decided(
    team: Team,
    job: Job,
    row: int,
    other: int,
    rule: Rule,
    verifier: Verifier,
    known: Known,
    tally: Any,
) -> tuple[int, int]:
    """Verdict and weight of a pair: at once, or by filters and verification."""
    corpus = job.corpus
    left, right = members_of(corpus.left, row), members_of(corpus.right, other)
    need = least_weight(rule.share, left.size, right.size)
    if rule.edit == 0:
        solves = job.how.method <= EXACT
        weight = settle(corpus.elements, left, right, corpus.nearest, need, solves, known)
        if weight == TOO_FEW:
            return 0, 0
        if weight != OPEN:
            verdict = np.int64(weight >= need)
            count_verdict(tally, verdict)
            return verdict, weight
    verdict, weight = _verified(team, job, row, other, rule, verifier)
    if verdict == PRUNED:
        return 0, 0
    if verdict >= 0:
        count_verdict(tally, verdict)
    return verdict, weight


@inlined
def _probe(team: Team, job: Job, item: int, verifier: Verifier, work: Members) -> int:
    """All pairs of one left record.  -1: done; else the number of candidates decided so far."""
    corpus, places, rule, me = job.corpus, job.places, job.rule, team.me
    counts, state = work.counts[me], work.state[me]
    sums = Sums(work.got[me], work.bound[me], work.found[me])
    known = Known(work.keys[me], work.weights[me], work.rows[me], work.columns[me])
    out_left, out_right, out_weight = work.left[me], work.right[me], work.weight[me]
    row = places.rows[item]
    first, last = places.lows[item], places.highs[item]
    size = size_of(corpus.left, row)
    window = sums.found.size
    skip, seen = state[SKIP], np.int64(0)
    for lo in range(first, last, window):
        hi = min(lo + window, last)
        found = gather(team, corpus.left_lists, corpus.index, row, size, lo, hi, rule, sums)
        if found < 0:
            return seen
        for c in range(found):
            seen += 1
            if seen <= skip:
                continue
            if c & 255 == 255 and stopping(team):
                return seen - 1
            k = sums.found[c]
            other = places.right_rows[lo + k]
            if rule.itself != 0 and other == row:
                continue
            if rule.unequal != 0 and corpus.left_kinds[row] == corpus.right_kinds[other]:
                continue
            theirs = size_of(corpus.right, other)
            if sums.bound[k] < rule.share * (size + theirs) - SLACK:
                continue
            if state[FILLED] == out_left.size:
                return seen - 1
            counts[REFINED] += 1
            verdict, weight = decided(team, job, row, other, rule, verifier, known, counts)
            if verdict == STOPPED:
                return seen - 1
            if verdict == NO_ROOM:
                weight = -max(weight, 1)
                state[OVERFLOW] += 1
            elif not verdict & ACCEPTED or weight <= 0:
                continue
            at = state[FILLED]
            swap = rule.exchanged != 0 or (rule.itself != 0 and other < row)
            out_left[at] = other if swap else row
            out_right[at] = row if swap else other
            out_weight[at] = weight
            state[FILLED] = at + 1
        if seen > skip or found == 0:  # a window is counted once, when it is done
            counts[GENERATED] += found
    return -1


@device
def take_chunk(places: ProbeOrder, words: Any, state: Any) -> bool:
    """The next chunk for this member; False when none is left."""
    chunks = places.chunks.size - 1
    taken = atomic_add(words, CURSOR, 1)
    if taken >= chunks:
        return False
    # the last chunks have the largest records and are taken first, so that all end together
    state[ITEM] = places.chunks[chunks - 1 - taken]
    state[END] = places.chunks[chunks - taken]
    state[SKIP] = 0
    return True


@inlined
def begin(team: Team, places: ProbeOrder, before: int) -> None:
    """Announce the work: all items, of which calls before this one have done some."""
    expect(team, places.rows.size)
    if team.me == 0:
        advance(team, before)


@inlined
def item_at_work(team: Team, places: ProbeOrder, words: Any, state: Any) -> int:
    """The item that this member works on now; -1: no more of them, or the team stops."""
    if stopping(team) or load_relaxed(words, FULL) != 0:
        return -1
    if state[ITEM] >= state[END] and not take_chunk(places, words, state):
        return -1
    return state[ITEM]


@inlined
def end_item(team: Team, state: Any) -> None:
    state[ITEM] += 1
    state[SKIP] = 0
    advance(team, 1)


@kernel
def join_all(
    team: Team, job: Job, verifier: Verifier, work: Members, words: Any, before: int
) -> None:
    """Probe all items, from where the call before ended."""
    places = job.places
    state = work.state[team.me]
    begin(team, places, before)
    while True:
        item = item_at_work(team, places, words, state)
        if item < 0:
            return
        if places.lows[item] < places.highs[item]:
            seen = _probe(team, job, item, verifier, work)
            if seen >= 0:
                state[SKIP] = seen
                store_relaxed(words, FULL, 1)
                return
        end_item(team, state)


# The best partners of each left record: candidates are verified in the order of their bounds, best
# first (a heap), and each must reach the worst of the best so far.  When the next bound cannot, the
# record is done.


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
def _insert(kept: Kept, me: int, count: int, row: int, weight: int, total: int) -> int:
    """Insert a partner in order, dropping the last where there are more than `most`."""
    rows, weights, sums = kept.rows[me], kept.weights[me], kept.sums[me]
    at = count
    while at > 0 and _is_better(weight, total, row, weights[at - 1], sums[at - 1], rows[at - 1]):
        if at < kept.most:
            rows[at], weights[at], sums[at] = rows[at - 1], weights[at - 1], sums[at - 1]
        at -= 1
    if at < kept.most:
        rows[at], weights[at], sums[at] = row, weight, total
    return min(count + 1, kept.most)


@inlined
def _best_of(team: Team, job: Job, item: int, verifier: Verifier, work: Members, kept: Kept) -> int:
    """The number of partners kept; below 0: the team stops, or a pair did not fit."""
    corpus, places, rule, me = job.corpus, job.places, job.rule, team.me
    counts = work.counts[me]
    sums = Sums(work.got[me], work.bound[me], work.found[me])
    known = Known(work.keys[me], work.weights[me], work.rows[me], work.columns[me])
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
            at_least = Rule(least, rule.prefix, rule.level, rule.edit, rule.itself, rule.unequal, 0)
            verdict, weight = decided(team, job, row, other, at_least, verifier, known, counts)
            if verdict == NO_ROOM:
                work.state[me, OVERFLOW] = max(work.state[me, OVERFLOW], weight)
            if verdict < 0:
                return verdict
            if not verdict & ACCEPTED or weight <= 0:
                continue
            theirs = size_of(corpus.right, other)
            count = _insert(kept, me, count, other, weight, size + theirs)
            if count == kept.most:
                worst = float(kept.weights[me, count - 1]) / ONE / kept.sums[me, count - 1]
                least = max(rule.share, worst - MARGIN)
    return count


@kernel
def join_best(
    team: Team, job: Job, kept: Kept, verifier: Verifier, work: Members, words: Any, before: int
) -> None:
    places = job.places
    state = work.state[team.me]
    begin(team, places, before)
    while True:
        item = item_at_work(team, places, words, state)
        if item < 0:
            return
        if state[FILLED] + kept.most > work.left.shape[1]:
            store_relaxed(words, FULL, 1)
            return
        count = _best_of(team, job, item, verifier, work, kept)
        if count == STOPPED:
            return
        at = state[FILLED]
        if count == NO_ROOM:  # the host does this record again, with more room
            work.left[team.me, at] = places.rows[item]
            work.weight[team.me, at] = NO_ROOM
            state[FILLED] = at + 1
        else:
            for i in range(count):
                work.left[team.me, at + i] = places.rows[item]
                work.right[team.me, at + i] = kept.rows[team.me, i]
                work.weight[team.me, at + i] = kept.weights[team.me, i]
            state[FILLED] = at + count
        end_item(team, state)

"""The join on a team: records on the left are probed one by one, chunk by chunk of equal cost.

A member takes a chunk of left records, gathers the candidates of each (`gather`), refines and
verifies them, and writes pairs into a buffer of its own.  When a buffer is full, all members
stop after their record and the host collects the pairs (`Task.run` in ../../cpu.py): so memory is
bounded, whatever the answer.  A member's position is kept in `state`.

No two members write the same word, but for the cursor and the flag in `words`, which are atomic.

How candidates are found:

    gather     the posting lists of the record's prefix give candidates, with a bound on the
               matching weight; those whose bound is too small are dropped at once
    refine     the token lists of both records, merged until the bound fails

The records of a pair that counts share a token that lies in both prefixes.  Proof: take the record
whose prefix ends first in the order of tokens.  A shared token in it also lies in the other's
prefix; without one, all that they share lies after it, and that is too little.

The bounds hold by utilities (index.py).  After a shared token, later ones add at most what is left
in either record.  For the joint filter, a token that at most m elements share adds the m largest
utilities of both sides, compared in order, the smaller one of each two.

Edit similarities: the utilities of chunks are the left record's own, so all tokens of the other
side are in the index, and only what is left in the left record bounds the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join import Elements, Records
from matchwood.applications.join.candidates.cpu.index import SLACK, Index, TokenLists, prefix_end
from matchwood.applications.join.similarity.cpu import ONE, jaccard
from matchwood.applications.join.verification.cpu import (
    ACCEPTED,
    NO_ROOM,
    SOLVED,
    STOPPED,
    least_weight,
    verify_pair,
)
from matchwood.applications.join.verification.cpu.rows import EXACT, How, Scratch, mine
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

BASIC, POSITIONAL, JOINT = 0, 1, 2
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


# Gathering


class Rule(NamedTuple):
    """The criteria of a pair, and how candidates are found."""

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
def prefix_of(lists: TokenLists, row: int, size: int, rule: Rule) -> Any:
    """(end of the prefix, what is left after it, whether that is still enough for a pair).

    The last is true only for edit similarities, of a record without a prefix.
    """
    least = rule.prefix * size
    end = prefix_end(lists, row, float(size), least)
    left = np.float64(lists.rests[end - 1]) if end > lists.starts[row] else float(size)
    return end, left, rule.edit != 0 and left >= least - SLACK


@inlined
def gather(
    team: Team,
    lists: TokenLists,
    index: Index,
    row: int,
    size: int,
    lo: int,
    hi: int,
    rule: Rule,
    sums: Sums,
) -> int:
    """Write candidates among the right positions lo..hi to sums.found; their number, or -1: stop.

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
    """The sum over one token's utilities in two records, the smaller of each two."""
    total = 0.0
    for i in range(min(mine.size, theirs.size)):
        total += min(mine[i], theirs[i])
    return total


@inlined
def _uses(lists: TokenLists, row: int, at: int) -> tuple[int, int]:
    """Where the utilities of the token at `at` lie."""
    start = lists.starts[row]
    last = lists.firsts[at + 1] if at + 1 < lists.ends[row] else lists.starts[row + 1] - start
    return start + lists.firsts[at], start + last


@device
def can_reach(
    lists: TokenLists, row: int, others: TokenLists, other: int, need: float, rule: Rule
) -> Any:
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
    """Whether the best ratios shorter / longer length add up to `need`.  Elements are by length."""
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
    team: Team, corpus: Corpus, row: int, other: int, rule: Rule, how: How, space: Scratch
) -> tuple[int, int]:
    """The filters, then verification.  Not inlined: few pairs get here, and compiling costs."""
    left, right = members_of(corpus.left, row), members_of(corpus.right, other)
    if not worth_verifying(corpus, row, other, rule.share * (left.size + right.size), rule):
        return PRUNED, 0
    need = least_weight(rule.share, left.size, right.size)
    # where both sides are the same, the smaller row is on the left
    swap = rule.itself != 0 and other < row
    a = members_of(corpus.right, other) if swap else members_of(corpus.left, row)
    b = members_of(corpus.left, row) if swap else members_of(corpus.right, other)
    return verify_pair(team, corpus.elements, a, b, need, how, space)


@inlined
def decided(
    team: Team,
    corpus: Corpus,
    row: int,
    other: int,
    rule: Rule,
    how: How,
    space: Scratch,
    known: Known,
    counts: Any,
) -> tuple[int, int]:
    """Verdict and weight of a pair: at once, or by filters and verification."""
    left, right = members_of(corpus.left, row), members_of(corpus.right, other)
    need = least_weight(rule.share, left.size, right.size)
    if rule.edit == 0:
        solves = how.method <= EXACT
        weight = settle(corpus.elements, left, right, corpus.nearest, need, solves, known)
        if weight == TOO_FEW:
            return 0, 0
        if weight != OPEN:
            verdict = np.int64(weight >= need)
            count_verdict(counts, verdict)
            return verdict, weight
    verdict, weight = _verified(team, corpus, row, other, rule, how, space)
    if verdict == PRUNED:
        return 0, 0
    if verdict >= 0:
        count_verdict(counts, verdict)
    return verdict, weight


@inlined
def _probe(
    team: Team,
    corpus: Corpus,
    places: ProbeOrder,
    item: int,
    rule: Rule,
    how: How,
    space: Scratch,
    work: Members,
) -> int:
    """All pairs of one left record.  -1: done; else the number of candidates decided so far."""
    rank = team.rank
    counts, state = work.counts[rank], work.state[rank]
    sums = Sums(work.got[rank], work.bound[rank], work.found[rank])
    known = Known(work.keys[rank], work.weights[rank], work.rows[rank], work.columns[rank])
    out_left, out_right, out_weight = work.left[rank], work.right[rank], work.weight[rank]
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
            verdict, weight = decided(team, corpus, row, other, rule, how, space, known, counts)
            if verdict == STOPPED:
                return seen - 1
            if verdict == NO_ROOM:
                weight = -max(weight, 1)
                state[OVERFLOW] += 1
            elif not verdict & ACCEPTED or weight <= 0:
                continue
            at = state[FILLED]
            swap = rule.itself != 0 and other < row
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
    if team.rank == 0:
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
    team: Team,
    corpus: Corpus,
    places: ProbeOrder,
    rule: Rule,
    how: How,
    scratch: Scratch,
    work: Members,
    words: Any,
    before: int,
) -> None:
    """Probe all items, from where the call before ended."""
    space = mine(scratch, team.rank)
    state = work.state[team.rank]
    begin(team, places, before)
    while True:
        item = item_at_work(team, places, words, state)
        if item < 0:
            return
        if places.lows[item] < places.highs[item]:
            seen = _probe(team, corpus, places, item, rule, how, space, work)
            if seen >= 0:
                state[SKIP] = seen
                store_relaxed(words, FULL, 1)
                return
        end_item(team, state)

"""The join on a team: records on the left are probed one by one, chunk by chunk of equal cost.

A member takes a chunk of left records, gathers the candidates of each (cpu_gather.py), refines and
verifies them, and writes pairs into a buffer of its own.  When a buffer is full, all members
stop after their record and the host takes the pairs away (`Task.run` in cpu_run.py): so memory is
bounded, whatever the answer.  A member remembers where it stood in `state`.

No two members write the same word, but for the cursor and the flag in `words`, which are atomic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join.arrays import Elements, Records
from matchwood.applications.join.candidates.cpu_gather import (
    Rule,
    Sums,
    can_reach,
    first_at_least,
    gather,
    lengths_reach,
    prefix_of,
)
from matchwood.applications.join.candidates.cpu_lists import SLACK, Index, Lists
from matchwood.applications.join.candidates.cpu_small import OPEN, TOO_FEW, Known, settle
from matchwood.applications.join.verification.cpu_pair import (
    ACCEPTED,
    NO_ROOM,
    SOLVED,
    STOPPED,
    least_weight,
    mine,
    verify_pair,
)
from matchwood.applications.join.verification.cpu_scratch import EXACT, How, Scratch
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


class Corpus(NamedTuple):
    """Both sides."""

    elements: Elements
    left: Records
    right: Records
    left_lists: Lists
    right_lists: Lists
    index: Index
    nearest: np.ndarray  # float64: how similar each element can be to another; jaccard only
    left_kinds: np.ndarray  # int32: records of one kind have score 1; empty where nobody asks
    right_kinds: np.ndarray


class Places(NamedTuple):
    """Which records are probed, in which order, against which."""

    rows: np.ndarray  # int32: the left row of each item
    lows: np.ndarray  # int32: right positions that are admitted ...
    highs: np.ndarray  # int32: ... up to this one
    right_rows: np.ndarray  # int32: the right row of each position
    chunks: np.ndarray  # int64: where chunks of items begin


class Raw(NamedTuple):
    """Pairs as they come: in no order."""

    left: np.ndarray  # int32
    right: np.ndarray  # int32
    weight: np.ndarray  # int64


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


@inlined
def size_of(records: Records, row: int) -> int:
    return records.starts[row + 1] - records.starts[row]


@inlined
def members_of(records: Records, row: int) -> Any:
    return records.elements[records.starts[row] : records.starts[row + 1]]


@kernel
def count_postings(team: Team, corpus: Corpus, places: Places, rule: Rule, costs: Any) -> None:
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
    """The filters between gathering and verification."""
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
    """The filters, then verification.  Not expanded: few pairs come here, and compiling costs."""
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
    places: Places,
    item: int,
    rule: Rule,
    how: How,
    space: Scratch,
    work: Members,
) -> int:
    """All pairs of one left record.  -1: done; else how many candidates were dealt with."""
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
def take_chunk(places: Places, words: Any, state: Any) -> bool:
    """The next chunk for this member; False when none is left."""
    chunks = places.chunks.size - 1
    taken = atomic_add(words, CURSOR, 1)
    if taken >= chunks:
        return False
    # the last chunks have the largest records: they come first, so that all end together
    state[ITEM] = places.chunks[chunks - 1 - taken]
    state[END] = places.chunks[chunks - taken]
    state[SKIP] = 0
    return True


@inlined
def begin(team: Team, places: Places, before: int) -> None:
    """Announce the work: all items, of which calls before this one have done some."""
    expect(team, places.rows.size)
    if team.rank == 0:
        advance(team, before)


@inlined
def item_at_work(team: Team, places: Places, words: Any, state: Any) -> int:
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
    places: Places,
    rule: Rule,
    how: How,
    scratch: Scratch,
    work: Members,
    words: Any,
    before: int,
) -> None:
    """Probe all items, or go on where the call before ended."""
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

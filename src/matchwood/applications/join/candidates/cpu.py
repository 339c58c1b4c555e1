"""Candidates from tokens: lists of whole records with utilities, the index of prefixes, bounds.

An element of c tokens gives each of them the utility 1/c, so that the similarity of two elements
is at most the sum over their common tokens of the smaller utility.  An element is also a token
itself: two different elements are never more similar than `nearest` says, so all
tokens of e together give at most that, and e as a token gives the rest, 1 - nearest.  Whole
elements are rare, which makes prefixes short.

A record's list has each of its distinct tokens once, ascending, with the utilities of the elements
that have it (descending, since shorter elements come first), their total, and what the tokens after
it can still give.  Utilities are 32-bit floats, always rounded up: a bound made of them is never
too small.

The records of a pair that counts share a token that lies in both prefixes.  Proof: take the record
whose prefix ends first in the order of tokens.  A shared token in it also lies in the other's
prefix; without one, all that they share lies after it, and that is too little.

After a shared token, later ones add at most what is left in either record.  For the joint filter, a
token that at most m elements share adds the m largest utilities of both sides, compared in order,
the smaller one of each two.

Edit similarities: the utilities of chunks are the left record's own, so all tokens of the other
side are in the index, and only what is left in the left record bounds the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join.collecting.cpu import transpose
from matchwood.engines.cpu import (
    Team,
    crew,
    device,
    inlined,
    interrupted,
    kernel,
    stopping,
)

BASIC, POSITIONAL, JOINT = 0, 1, 2
UP = 1.0 + 2.0**-22  # a float32 of UP times x is never below x
LEAST = 2.0**-20  # the least utility: a sum of 0 means that nothing was shared
SLACK = 1e-7  # bounds below their threshold by no more than this are kept
VISITS_PER_TOKEN = 64  # elements visited for each token of an element, at most
GOOD = 0.25  # bounds at or below this are not improved
GROUP = np.int64(1) << 32  # a key is group * GROUP + size


# Token lists


class TokenLists(NamedTuple):
    """Tokens of the records of one side, in the user's order of records."""

    starts: np.ndarray  # int64[n + 1]: room of a record, one place for each of its occurrences
    ends: np.ndarray  # int64[n]: where its distinct tokens end
    tokens: np.ndarray  # int32: ascending
    totals: np.ndarray  # float32: utilities of the token, added up
    rests: np.ndarray  # float32: utility left in the record after this token
    firsts: np.ndarray  # int32: where the token's utilities begin, counted from starts
    utilities: np.ndarray  # float32: of each occurrence, descending within a token


class Index(NamedTuple):
    """Where tokens occur: for each token the records that have it in their prefix."""

    starts: np.ndarray  # int64[tokens + 1]
    positions: np.ndarray  # int32: ascending within a token
    totals: np.ndarray  # float32: the token's total utility there
    rests: np.ndarray  # float32: what is left after it there


class Holders(NamedTuple):
    """Which elements have a token, tokens in the order in which records list them."""

    starts: np.ndarray  # int64[tokens + 1]
    elements: np.ndarray  # int32: ascending within a token
    whole: np.ndarray  # int8[tokens]: 1 where the token is an element itself


class Weights(NamedTuple):
    """Upper bounds of what the tokens of elements add to a matching."""

    counts: np.ndarray  # int64: tokens of each element, without the element itself
    utilities: np.ndarray  # float32: of each of its tokens
    alone: np.ndarray  # float32: of the element as a token
    most: np.ndarray  # float64: its tokens give no more than this in all
    hidden: np.ndarray  # float64: what it gives without any token


@kernel
def _append_tokens(
    team: Team,
    holders: Holders,
    record_starts: Any,
    record_holders: Any,
    weights: Weights,
    lists: TokenLists,
    owners: Any,
    used: Any,
) -> None:
    """Token by token: append it to every record of every element that has it.

    used[r]: occurrences written so far; ends[r]: where the next distinct token goes.
    """
    for t in range(holders.starts.size - 1):
        if interrupted(team, t):
            return
        for i in range(holders.starts[t], holders.starts[t + 1]):
            e = holders.elements[i]
            owner, utility = e, weights.utilities[e]
            if holders.whole[t] != 0:
                owner, utility = ~e, weights.alone[e]
            for j in range(record_starts[e], record_starts[e + 1]):
                r = record_holders[j]
                start, end = lists.starts[r], lists.ends[r]
                if end == start or lists.tokens[end - 1] != t:
                    lists.tokens[end] = t
                    lists.firsts[end] = used[r]
                    lists.ends[r] = end + 1
                lists.utilities[start + used[r]] = utility
                owners[start + used[r]] = owner
                used[r] += 1


@kernel
def _add_up(
    team: Team,
    record_starts: Any,
    elements: Any,
    weights: Weights,
    lists: TokenLists,
    owners: Any,
    open_tokens: Any,
) -> None:
    """Totals, and rests from the end: what the tokens after this one can still give.

    The open tokens of an element give their utilities, but no more than `most` in all: that is
    how similar it can be to any other.  Its own token gives what is missing to 1.
    """
    for r in range(lists.ends.size):
        if interrupted(team, r):
            return
        start, end = lists.starts[r], lists.ends[r]
        size = lists.starts[r + 1] - start
        left = 0.0
        for i in range(record_starts[r], record_starts[r + 1]):
            left += weights.hidden[elements[i]]
            open_tokens[elements[i]] = 0
        for i in range(end - 1, start - 1, -1):
            lists.rests[i] = left * UP
            last = lists.firsts[i + 1] if i + 1 < end else size
            total = 0.0
            for j in range(start + lists.firsts[i], start + last):
                utility, e = np.float64(lists.utilities[j]), owners[j]
                total += utility
                if e < 0:
                    left += utility
                else:
                    most = weights.most[e]
                    before = min(most, open_tokens[e] * utility)
                    open_tokens[e] += 1
                    left += min(most, open_tokens[e] * utility) - before
            lists.totals[i] = total * UP


def rounded_up(values: np.ndarray) -> np.ndarray:
    return (values * UP).astype(np.float32)


def jaccard_weights(counts: np.ndarray, nearest: np.ndarray) -> Weights:
    """Each token of c gives 1/c, all of them at most `nearest`; the element itself the rest."""
    each = rounded_up(1.0 / np.maximum(counts, 1))
    most = nearest * UP
    alone = np.maximum(1.0 - nearest, LEAST)
    return Weights(counts, each, rounded_up(alone), most, np.zeros(counts.size))


def chunk_weights(counts: np.ndarray, lengths: np.ndarray) -> Weights:
    """Weights for edit similarities: c missing chunks cost at least c / (|r| + all chunks of r).

    With c chunks missing the distance is at least c and at least the difference of lengths, so
    the similarity is at most |r| / (|r| + c); that is concave in c, and lies above its chord.
    """
    each = 1.0 / (lengths + counts)
    return plain_weights(counts, rounded_up(each), 1.0 - counts * each)


def plain_weights(counts: np.ndarray, utilities: np.ndarray, hidden: np.ndarray) -> Weights:
    nothing = np.zeros(counts.size, np.float32)
    return Weights(counts, utilities, nothing, np.full(counts.size, np.inf), hidden)


def with_whole_elements(
    starts: np.ndarray, elements: np.ndarray, occurrences: np.ndarray
) -> Holders:
    """Tokens, and each element as a token of its own, all by rising frequency.

    An element is no more frequent than its tokens, and precedes them.
    """
    grams, m = starts.size - 1, occurrences.size
    owner = np.repeat(np.arange(grams), np.diff(starts))
    frequency = np.bincount(owner, occurrences[elements], grams).astype(np.int64)
    order = np.argsort(np.concatenate((occurrences, frequency)), kind="stable")
    whole = order < m
    lengths = np.where(whole, 1, np.diff(starts)[np.maximum(order - m, 0)] if grams else 1)
    out_starts = np.zeros(order.size + 1, np.int64)
    np.cumsum(lengths, out=out_starts[1:])
    source = np.where(whole, order, m + starts[np.maximum(order - m, 0)])
    at = np.repeat(source - out_starts[:-1], lengths) + np.arange(out_starts[-1])
    both = np.concatenate((np.arange(m, dtype=np.int32), elements))
    return Holders(out_starts, both[at], whole.astype(np.int8))


def lists_of(
    starts: np.ndarray, elements: np.ndarray, holders: Holders, weights: Weights
) -> TokenLists:
    """The lists of all records of one side."""
    n, m = starts.size - 1, weights.counts.size
    record_starts = np.zeros(m + 1, np.int64)
    np.cumsum(np.bincount(elements, minlength=m), out=record_starts[1:])
    record_holders = np.empty(elements.size, np.int32)
    one = crew(1, work=2 * elements.size)
    one.run(transpose, starts, elements, record_starts, np.zeros(m, np.int32), record_holders)
    occurrences = np.zeros(elements.size + 1, np.int64)
    each = weights.counts + (1 if holders.whole.any() else 0)
    np.cumsum(each[elements], out=occurrences[1:])
    room = occurrences[starts]
    size = int(room[-1])
    lists = TokenLists(room, room[:-1].copy(), *(np.empty(size, kind) for kind in "iffif"))
    owners = np.empty(size, np.int32)
    one = crew(1, work=4 * size)
    one.run(
        _append_tokens, holders, record_starts, record_holders, weights, lists, owners,
        np.zeros(n, np.int32),
    )  # fmt: skip
    one.run(_add_up, starts, elements, weights, lists, owners, np.zeros(m, np.int32))
    return lists


# How similar each element can be to any other element: a bound, found from its rarest tokens.
#
# An element that shares none of the first i tokens of e (rarest first) shares at most the others,
# so its similarity is at most (tokens left) / (tokens of e).  One found with s shared tokens shares
# at most s and all that are left.  Tokens are taken until nothing is gained any more, or until too
# many elements were found.
#
# Elements of records that are not equal cannot weigh more than these bounds.  That is the nearest
# neighbour filter of SilkMoth, worked out once for a dictionary instead of for each pair.


@device
def _best_of(met: Any, count: int, shared: Any, counts: Any, mine: int, left: int) -> float:
    """The largest similarity that any element found so far can have."""
    best = 0.0
    for i in range(count):
        other = counts[met[i]]
        most = min(shared[met[i]] + left, min(mine, other))
        best = max(best, most / (mine + other - most))
    return best


@kernel
def _bound_nearest(
    team: Team,
    starts: Any,
    tokens: Any,
    holder_starts: Any,
    holders: Any,
    counts: Any,
    shared: Any,
    met: Any,
    nearest: Any,
) -> None:
    for e in range(counts.size):
        if interrupted(team, e):
            return
        mine = counts[e]
        count = 0
        visits = np.int64(0)
        left = mine
        for i in range(starts[e], starts[e + 1]):
            token = tokens[i]
            a, b = holder_starts[token], holder_starts[token + 1]
            visits += b - a
            if visits > VISITS_PER_TOKEN * mine or left <= GOOD * mine:
                break
            for j in range(a, b):
                other = holders[j]
                if other == e:
                    continue
                if shared[other] == 0:
                    met[count] = other
                    count += 1
                shared[other] += 1
            left -= 1
        best = _best_of(met, count, shared, counts, mine, left)
        nearest[e] = max(best, left / mine if mine > 0 else 0.0)
        for i in range(count):
            shared[met[i]] = 0


def nearest(tokens: Any) -> np.ndarray:
    """A bound for each element, float64; at most 1."""
    counts = np.diff(tokens.starts)
    found = np.empty(counts.size)
    shared, met = np.zeros(counts.size, np.int32), np.empty(counts.size, np.int32)
    crew(1, work=4 * tokens.tokens.size).run(
        _bound_nearest, *tokens[:4], counts, shared, met, found
    )
    return np.minimum(found, 1.0)


# The index


@device
def prefix_end(lists: TokenLists, row: int, whole: float, least: float) -> int:
    """End of the prefix: what is left after it cannot reach `least`.  `whole` is left at the start.

    A record whose list ends with enough left has no prefix; then this is the list's end.
    """
    at, end = lists.starts[row], lists.ends[row]
    left = whole
    while at < end and left >= least - SLACK:
        left = lists.rests[at]
        at += 1
    return at


@kernel
def _count_postings(
    team: Team, lists: TokenLists, rows: Any, sizes: Any, least: float, ends: Any, counts: Any
) -> None:
    for p in range(rows.size):
        if interrupted(team, p):
            return
        row = rows[p]
        end = lists.ends[row]
        if least > 0.0:
            end = prefix_end(lists, row, float(sizes[p]), least * sizes[p])
        ends[p] = end
        for i in range(lists.starts[row], end):
            counts[lists.tokens[i]] += 1


@kernel
def _fill_postings(
    team: Team, lists: TokenLists, rows: Any, ends: Any, fill: Any, index: Index
) -> None:
    for p in range(rows.size):
        if interrupted(team, p):
            return
        row = rows[p]
        for i in range(lists.starts[row], ends[p]):
            t = lists.tokens[i]
            at = fill[t]
            fill[t] = at + 1
            index.positions[at] = p
            index.totals[at] = lists.totals[i]
            index.rests[at] = lists.rests[i]


def index_of(
    lists: TokenLists, rows: np.ndarray, sizes: np.ndarray, tokens: int, least: float
) -> Index:
    """The index of the records in the order `rows`.

    What a record has left after its prefix is less than `least` times its size; 0 takes all.
    """
    ends = np.empty(rows.size, np.int64)
    counts = np.zeros(tokens, np.int64)
    one = crew(1, work=2 * lists.tokens.size)
    one.run(_count_postings, lists, rows, sizes, least, ends, counts)
    starts = np.zeros(tokens + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    size = int(starts[-1])
    index = Index(starts, np.empty(size, np.int32), np.empty(size, "f"), np.empty(size, "f"))
    one.run(_fill_postings, lists, rows, ends, starts[:-1].copy(), index)
    return index


# From what was collected


class Order:
    """Records by (group, size, row), without those that are empty or in no group."""

    def __init__(self, sizes: np.ndarray, groups: np.ndarray | None) -> None:
        belongs = np.zeros(sizes.size, np.int64) if groups is None else groups
        keys = belongs * GROUP + sizes
        rows = np.argsort(keys, kind="stable")
        rows = rows[(sizes[rows] > 0) & (belongs[rows] >= 0)]
        self.rows = rows.astype(np.int32)
        self.sizes = sizes[rows]
        self.groups = belongs[rows]
        self.keys = keys[rows]


def order_of(prepared: Any, side: int, groups: tuple[np.ndarray, ...] | None) -> Order:
    side %= len(prepared.records)
    if groups is not None:
        return Order(prepared.sizes[side], groups[side])
    return prepared.keep(("order", side), lambda: Order(prepared.sizes[side], None))  # type: ignore[no-any-return]


def lists_of_side(prepared: Any, side: int, chunks: bool) -> TokenLists:
    """Token lists of a side: chunks for the left of the edit similarities, else grams."""
    side %= len(prepared.records)
    return prepared.keep(("lists", side, chunks), lambda: _make_lists(prepared, side, chunks))


def _make_lists(prepared: Any, side: int, chunks: bool) -> TokenLists:
    records, tokens = prepared.records[side], prepared.tokens
    counts = np.diff(tokens.starts)
    if chunks:
        lengths = np.diff(prepared.elements.text_starts)
        weights = chunk_weights(np.diff(tokens.chunk_starts), lengths)
        holders = _holders(tokens.chunk_holder_starts, tokens.chunk_holders)
    elif prepared.similarity == "jaccard":
        weights = jaccard_weights(counts, nearest_of(prepared))
        holders = prepared.keep("holders", lambda: _whole_holders(prepared))
    else:  # equal or grams of edits: how many elements have a token is all that counts
        weights = plain_weights(counts, np.ones(counts.size, np.float32), np.zeros(counts.size))
        holders = _holders(tokens.holder_starts, tokens.holders)
    return lists_of(records.starts, records.elements, holders, weights)


def nearest_of(prepared: Any) -> np.ndarray:
    """How similar each element can be to any other."""
    if prepared.similarity != "jaccard":
        return np.zeros(len(prepared.values))
    return prepared.keep("nearest", lambda: nearest(prepared.tokens))


def _holders(starts: np.ndarray, elements: np.ndarray) -> Holders:
    return Holders(starts, elements, np.zeros(starts.size - 1, np.int8))


def _whole_holders(prepared: Any) -> Holders:
    tokens = prepared.tokens
    occurrences = np.zeros(len(prepared.values), np.int64)
    for records in prepared.records:
        occurrences += np.bincount(records.elements, minlength=occurrences.size)
    return with_whole_elements(tokens.holder_starts, tokens.holders, occurrences)


def index_of_side(
    prepared: Any, lists: TokenLists, order: Order, least: float, keep: bool, near: float
) -> Index:
    """The index of the right side; that of the last threshold is kept.

    One made for a threshold lower by up to `near` is used too: it has longer prefixes.
    """
    tokens = prepared.tokens.holder_starts.size - 1
    tokens += len(prepared.values) if prepared.similarity == "jaccard" else 0

    def make() -> Index:
        return index_of(lists, order.rows, order.sizes, tokens, least)

    if not keep:
        return make()
    return prepared.keep_last("index", lambda of: least - near <= of <= least, least, make)  # type: ignore[no-any-return]


# Gathering


class Rule(NamedTuple):
    """The criteria of a pair, and how candidates are found."""

    share: float  # d / (1 + d), d = delta - 1e-9: what a pair needs of the sum of its sizes
    prefix: float  # what the left record needs at least, for each of its elements
    level: int  # BASIC, POSITIONAL, JOINT
    edit: int  # 1: chunks on the left, grams on the right
    itself: int  # 1: a join with itself, in which the left row is the smaller one
    unequal: int  # 1: no pairs of score 1
    exchanged: int  # 1: what is probed stands on the right of pairs


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

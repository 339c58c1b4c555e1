"""Tokens of whole records with their utilities, and the index of their prefixes.

An element of c tokens gives each of them the utility 1/c, so that the similarity of two elements
is at most the sum over their common tokens of the smaller utility.  An element is also a token
itself: two different elements are never more similar than `nearest` says (cpu_nearest.py), so all
tokens of e together give at most that, and e as a token gives the rest, 1 - nearest.  Whole
elements are rare, which makes prefixes short.

A record's list has each of its distinct tokens once, ascending, with the utilities of the elements
that have it (descending, since shorter elements come first), their total, and what the tokens after
it can still give.

Utilities are kept as 32-bit floats, always rounded up: a bound made of them is never too small.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel

UP = 1.0 + 2.0**-22  # a float32 of UP times x is never below x
LEAST = 2.0**-20  # no utility is 0: a sum of 0 says that nothing was shared
SLACK = 1e-7  # bounds below their threshold by no more than this are kept


class Lists(NamedTuple):
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
    """What the tokens of elements give to a matching, at most."""

    counts: np.ndarray  # int64: tokens of each element, without the element itself
    utilities: np.ndarray  # float32: of each of its tokens
    alone: np.ndarray  # float32: of the element as a token
    most: np.ndarray  # float64: its tokens give no more than this in all
    hidden: np.ndarray  # float64: what it gives without any token


@kernel
def _element_records(
    team: Team, starts: Any, elements: Any, holder_starts: Any, fill: Any, holders: Any
) -> None:
    """holders: the records of each element, ascending."""
    for r in range(starts.size - 1):
        if interrupted(team, r):
            return
        for i in range(starts[r], starts[r + 1]):
            e = elements[i]
            holders[holder_starts[e] + fill[e]] = r
            fill[e] += 1


@kernel
def _append_tokens(
    team: Team,
    holders: Holders,
    record_starts: Any,
    record_holders: Any,
    weights: Weights,
    lists: Lists,
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
    lists: Lists,
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
    """Of the edit similarities.  c missing chunks of r cost at least c / (|r| + all its chunks).

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

    An element is no more frequent than its tokens, and comes before them.
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


def lists_of(starts: np.ndarray, elements: np.ndarray, holders: Holders, weights: Weights) -> Lists:
    """The lists of all records of one side."""
    n, m = starts.size - 1, weights.counts.size
    record_starts = np.zeros(m + 1, np.int64)
    np.cumsum(np.bincount(elements, minlength=m), out=record_starts[1:])
    record_holders = np.empty(elements.size, np.int32)
    one = crew(1, work=2 * elements.size)
    one.run(
        _element_records, starts, elements, record_starts, np.zeros(m, np.int32), record_holders
    )
    occurrences = np.zeros(elements.size + 1, np.int64)
    each = weights.counts + (1 if holders.whole.any() else 0)
    np.cumsum(each[elements], out=occurrences[1:])
    room = occurrences[starts]
    size = int(room[-1])
    lists = Lists(room, room[:-1].copy(), *(np.empty(size, kind) for kind in "iffif"))
    owners = np.empty(size, np.int32)
    one = crew(1, work=4 * size)
    one.run(
        _append_tokens, holders, record_starts, record_holders, weights, lists, owners,
        np.zeros(n, np.int32),
    )  # fmt: skip
    one.run(_add_up, starts, elements, weights, lists, owners, np.zeros(m, np.int32))
    return lists


# The index


@device
def prefix_end(lists: Lists, row: int, whole: float, least: float) -> int:
    """End of the prefix: what is left after it cannot reach `least`.  It may be the list's end.

    A record whose tokens all go without that has no prefix; `whole` is its utility at the start.
    """
    at, end = lists.starts[row], lists.ends[row]
    left = whole
    while at < end and left >= least - SLACK:
        left = lists.rests[at]
        at += 1
    return at


@kernel
def _count_postings(
    team: Team, lists: Lists, rows: Any, sizes: Any, least: float, ends: Any, counts: Any
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
def _fill_postings(team: Team, lists: Lists, rows: Any, ends: Any, fill: Any, index: Index) -> None:
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
    lists: Lists, rows: np.ndarray, sizes: np.ndarray, tokens: int, least: float
) -> tuple[Index, np.ndarray]:
    """The index of the records in the order `rows`, and where their prefixes end.

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
    return index, ends

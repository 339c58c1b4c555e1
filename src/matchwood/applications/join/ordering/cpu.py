"""Pairs in order on a team: into buckets by the leading bits of their keys, then bucket by bucket.

    count    each member counts the pairs of its share in each bucket
    move     each member writes its share to the buckets, as keys and weights
    finish   a member takes a bucket, sorts it in its cache, and writes rows and scores

The memory of a bucket is read and written twice in all, and no step is serial.  The arrays of the
answer are the second buffer of the sort.  So the sort needs 16 bytes a pair beside the pairs given,
which are freed part by part while they are moved.

Pairs that crowd into few buckets would leave most members without work.  Then all keys are sorted
together by `radix_sort`, whose passes divide any keys evenly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join import together
from matchwood.applications.join.similarity.cpu import ONE
from matchwood.engines.cpu import (
    Team,
    crew,
    device,
    interrupted,
    kernel,
    next_chunk,
    share,
    stopping,
)
from matchwood.engines.cpu.hints import prefetch_write, trailing_zeros
from matchwood.primitives.sort import radix_sort

BUCKET_BITS = 10  # 1024 buckets; the lines being written stay in a second-level cache
# Up to this number of pairs are sorted without buckets: 512 KB with the second buffer.  One thread
# took 0.56 ms for 16384 random ones, and 0.82 ms by buckets (Xeon).
CACHED_PAIRS = 1 << 14
CROWDED_PAIRS = 1 << 17  # pairs of a bucket; one member sorts this many in 2 ms
DIGIT_BITS = 8  # bits sorted by a pass inside a bucket
DIGITS = 1 << DIGIT_BITS
AHEAD = 8  # elements from a write to the line that is fetched
BLOCK = 1 << 16  # pairs between two checks of the stop word
WORK_PER_PAIR = 8  # steps, for the choice of the number of threads
INSERTED_PAIRS = 24  # sorted by insertion


class Keys(NamedTuple):
    """How keys are made and divided."""

    shift: int  # bits of the right row
    bucket: int  # bits below those that name the bucket


class Answer(NamedTuple):
    """The result.  Until a bucket is done, `left` and `right` are the second buffer of its sort."""

    left: np.ndarray  # int64
    right: np.ndarray  # int64
    score: np.ndarray  # float64; empty where no scores are wanted


@device
def _key(left: Any, right: Any, shift: int) -> Any:
    return (np.uint64(left) << np.uint64(shift)) | np.uint64(right)


@kernel
def _count(team: Team, left: Any, right: Any, how: Keys, counts: Any) -> None:
    """Add the pairs of each member's share to its counts."""
    mine, shift = counts[team.me], np.uint64(how.bucket)
    lo, hi = share(team, left.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        rows, others = left[start : min(start + BLOCK, hi)], right[start : min(start + BLOCK, hi)]
        for i in range(rows.size):
            mine[_key(rows[i], others[i], how.shift) >> shift] += 1


@kernel
def _move(
    team: Team, left: Any, right: Any, weight: Any, how: Keys, places: Any, keys: Any, weights: Any
) -> None:
    """Write each member's share to its places, which advance with each pair."""
    mine, shift = places[team.me], np.uint64(how.bucket)
    lo, hi = share(team, left.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        end = min(start + BLOCK, hi)
        rows, others, heavy = left[start:end], right[start:end], weight[start:end]
        for i in range(rows.size):
            key = _key(rows[i], others[i], how.shift)
            bucket = key >> shift
            place = np.uint64(mine[bucket])
            mine[bucket] = place + np.uint64(1)
            keys[place] = key
            weights[place] = heavy[i]
            prefetch_write(keys, place + np.uint64(AHEAD))
            prefetch_write(weights, place + np.uint64(AHEAD))


@device
def _insert(keys: Any, weights: Any) -> None:
    for i in range(1, keys.size):
        key, weight = keys[i], weights[i]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at], weights[at] = keys[at - 1], weights[at - 1]
            at -= 1
        keys[at], weights[at] = key, weight


@device
def _pass(
    team: Team, keys: Any, weights: Any, shift: Any, counts: Any, to_keys: Any, to_weights: Any
) -> None:
    """One stable pass by the digit at `shift`."""
    counts[:] = 0
    last = np.uint64(DIGITS - 1)
    for i in range(keys.size):
        counts[(keys[i] >> shift) & last] += 1
    before = np.int64(0)
    for digit in range(DIGITS):
        here = counts[digit]
        counts[digit] = before
        before += here
    for i in range(keys.size):
        if interrupted(team, i):
            return
        key = keys[i]
        digit = (key >> shift) & last
        place = np.uint64(counts[digit])
        counts[digit] = place + np.uint64(1)
        to_keys[place] = key
        to_weights[place] = weights[i]


@device
def _sort(
    team: Team, keys: Any, weights: Any, other_keys: Any, other_weights: Any, counts: Any
) -> bool:
    """Sort by key.  True: the result is in the second pair of arrays."""
    if keys.size <= INSERTED_PAIRS:
        _insert(keys, weights)
        return False
    differing = np.uint64(0)
    for i in range(keys.size):
        differing |= keys[i] ^ keys[0]
    there = False
    while differing != 0 and not stopping(team):
        shift = trailing_zeros(differing)
        differing &= ~(np.uint64(DIGITS - 1) << shift)
        if there:
            _pass(team, other_keys, other_weights, shift, counts, keys, weights)
        else:
            _pass(team, keys, weights, shift, counts, other_keys, other_weights)
        there = not there
    return there


@device
def _write(
    keys: Any, weights: Any, shift: int, sizes: Any, others: Any, scored: bool, answer: Answer
) -> None:
    """Rows and scores of sorted pairs.  `keys` and `weights` may be the arrays of the answer."""
    left, right, score = answer.left, answer.right, answer.score
    by = np.uint64(shift)
    last = (np.uint64(1) << by) - np.uint64(1)
    for i in range(keys.size):
        key, weight = keys[i], weights[i]
        row, other = key >> by, key & last
        left[i] = row
        right[i] = other
        if scored:
            whole = (sizes[row] + others[other]) * ONE - weight
            score[i] = np.float64(weight) / np.float64(whole)


@kernel
def _finish(
    team: Team,
    starts: Any,
    keys: Any,
    weights: Any,
    shift: int,
    sorts: bool,
    sizes: Any,
    others: Any,
    all_counts: Any,
    answer: Answer,
) -> None:
    """Sort each bucket (unless `sorts` is False), then write its rows and scores."""
    counts = all_counts[team.me]
    scored = answer.score.size > 0
    while True:
        bucket = next_chunk(team, starts.size - 1, 1)
        if bucket < 0:
            return
        lo, hi = starts[bucket], starts[bucket + 1]
        if lo == hi:
            continue
        left, right, score = answer.left[lo:hi], answer.right[lo:hi], answer.score[lo:hi]
        room = left.view(np.uint64)
        there = sorts and _sort(team, keys[lo:hi], weights[lo:hi], room, right, counts)
        part = Answer(left, right, score)
        if there:
            _write(room, right, shift, sizes, others, scored, part)
        else:
            _write(keys[lo:hi], weights[lo:hi], shift, sizes, others, scored, part)


def in_order(
    parts: list[Any], sizes: tuple[np.ndarray, ...], scored: bool, threads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """left, right and score of all pairs, by (left, right).  `parts` is empty afterwards.

    `sizes`: elements of each record, for both sides.
    """
    size = sum(part.left.size for part in parts)
    rows, columns = sizes[0].size, sizes[1].size
    shift = shift_of(columns)
    team = crew(threads, work=WORK_PER_PAIR * size)
    bits = shift + max(rows - 1, 1).bit_length()
    sorts = True
    if size <= CACHED_PAIRS:
        keys, weights = _together(parts, shift)
        starts = np.array([0, size])
    else:
        keys, weights = np.empty(size, np.uint64), np.empty(size, np.int64)
        how = Keys(shift, max(bits - BUCKET_BITS, 0))
        starts = _into_buckets(team, parts, how, bits, keys, weights)
        if team.size > 1 and np.diff(starts).max() > max(size // team.size, CROWDED_PAIRS):
            keys, weights = radix_sort(keys, weights, threads=threads)
            starts = np.append(np.arange(0, size, CACHED_PAIRS), size)
            sorts = False
    score = np.empty(size if scored else 0)
    answer = Answer(np.empty(size, np.int64), np.empty(size, np.int64), score)
    counts = np.empty((team.size, DIGITS), np.int64)
    team.run(_finish, starts, keys, weights, shift, sorts, *sizes, counts, answer)
    return answer.left, answer.right, score if scored else None


def shift_of(columns: int) -> int:
    """The number of bits of a key for the right row, of `columns` rows."""
    return max(columns - 1, 1).bit_length()


def _together(parts: list[Any], shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys and weights of few pairs."""
    left, right, weight = together(parts)
    parts.clear()
    return (left.astype(np.uint64) << np.uint64(shift)) | right.astype(np.uint64), weight


def _into_buckets(
    team: Any, parts: list[Any], how: Keys, bits: int, keys: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Where the buckets start in `keys` and `weights`, which are filled."""
    buckets = 1 << (bits - how.bucket)
    counts = np.zeros((team.size, buckets), np.int64)
    for part in parts:
        team.run(_count, part.left, part.right, how, counts)
    starts = np.zeros(buckets + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    places = np.cumsum(counts, axis=0) - counts + starts[:-1]
    while parts:
        part = parts.pop(0)
        team.run(_move, part.left, part.right, part.weight, how, places, keys, weights)
    return starts

"""Numbers for elements, grams and tokens.

All texts lie in one array of code points.  A gram is a window of q of them.  Three code points
of 21 bits fit in a word, so grams of three are their own keys; a longer gram is the pair (number of
all but its last code point, that code point).  Distinct keys are found by a hash table and numbered
by sorting, so numbers follow the text.

The k-th repeat of a gram within an element is a token of its own: token = base[gram] + k.  Then
tokens are numbered by (frequency, text), and put into elements in ascending order without sorting:
token by token, each is appended to the elements that have it.

One member does this work: it is linear in the text of the distinct elements, which is little.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel
from matchwood.primitives.hashing.cpu import mix64

PAD = 0x110000  # one more than the last code point, so no text has it
POINT_BITS = 21  # bits of a code point, PAD included
PACKED = 3  # code points that fit in a word
SHORT = 24  # elements; shorter records are sorted by insertion
EMPTY = np.int32(-1)
Lists = tuple[np.ndarray, np.ndarray]  # where each begins, and all of them
NO_CHUNKS = (np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32))


class Grams(NamedTuple):
    """The windows of all elements: gram g lies in element of[...] by starts."""

    starts: np.ndarray  # int64[m + 1]: element e has the grams starts[e] to starts[e + 1]
    gram_ids: np.ndarray  # int32: which gram, numbered by text
    text_starts: np.ndarray  # int64[m + 1]
    text: np.ndarray  # uint32: padded where the similarity pads


# Records


@device
def _sift(ids: Any, at: int, size: int) -> None:
    """Heap order below `at`: no child is larger."""
    value = ids[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and ids[child + 1] > ids[child]:
            child += 1
        if ids[child] <= value:
            break
        ids[at] = ids[child]
        at = child
    ids[at] = value


@device
def sort_ids(ids: Any) -> None:
    """Ascending, in place."""
    size = ids.size
    if size <= SHORT:
        for i in range(1, size):
            value = ids[i]
            j = i
            while j > 0 and ids[j - 1] > value:
                ids[j] = ids[j - 1]
                j -= 1
            ids[j] = value
        return
    for at in range(size // 2 - 1, -1, -1):
        _sift(ids, at, size)
    for last in range(size - 1, 0, -1):
        value = ids[last]
        ids[last] = ids[0]
        ids[0] = value
        _sift(ids, 0, last)


@kernel
def _arrange(
    team: Team, starts: Any, numbers: Any, ids: Any, out_starts: Any, out: Any, occurrences: Any
) -> None:
    """Distinct ids of each record, ascending.  ids[-1] stands for an empty element."""
    filled = np.int64(0)
    out_starts[0] = 0
    for r in range(starts.size - 1):
        if interrupted(team, r):
            return
        first = filled
        for i in range(starts[r], starts[r + 1]):
            number = numbers[i]
            if number >= 0:
                out[filled] = ids[number]
                filled += 1
        sort_ids(out[first:filled])
        kept = first
        for i in range(first, filled):
            if i == first or out[i] != out[kept - 1]:
                out[kept] = out[i]
                occurrences[out[i]] += 1
                kept += 1
        filled = kept
        out_starts[r + 1] = filled


def arrange(
    starts: np.ndarray, numbers: np.ndarray, ids: np.ndarray, occurrences: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """starts and elements of the records; `occurrences` counts the records of each element."""
    out_starts = np.empty(starts.size, np.int64)
    out = np.empty(numbers.size, np.int32)
    crew(1, work=numbers.size).run(
        _arrange, starts, numbers, ids.astype(np.int32), out_starts, out, occurrences
    )
    return out_starts, out[: out_starts[-1]].copy()


# Grams


@kernel
def _pad(team: Team, starts: Any, text: Any, out_starts: Any, out: Any) -> None:
    for e in range(starts.size - 1):
        if interrupted(team, e):
            return
        length = starts[e + 1] - starts[e]
        room = out[out_starts[e] : out_starts[e + 1]]
        part = text[starts[e] : starts[e + 1]]
        for i in range(part.size):
            room[i] = part[i]
        for i in range(length, room.size):
            room[i] = PAD


@kernel
def _first_keys(
    team: Team, text_starts: Any, text: Any, starts: Any, width: int, keys: Any
) -> None:
    """The first `width` code points of each window, packed."""
    for e in range(starts.size - 1):
        if interrupted(team, e):
            return
        part = text[text_starts[e] : text_starts[e + 1]]
        room = keys[starts[e] : starts[e + 1]]
        for i in range(room.size):
            key = np.uint64(0)
            for j in range(width):
                key = (key << np.uint64(POINT_BITS)) | np.uint64(part[i + j])
            room[i] = key


@kernel
def _longer_keys(
    team: Team, text_starts: Any, text: Any, starts: Any, width: int, gram_ids: Any, keys: Any
) -> None:
    """Windows of width + 1 code points: the number of the first `width`, and the next one."""
    for e in range(starts.size - 1):
        if interrupted(team, e):
            return
        part = text[text_starts[e] : text_starts[e + 1]]
        for i in range(starts[e + 1] - starts[e]):
            place = np.uint64(gram_ids[starts[e] + i])
            keys[starts[e] + i] = (place << np.uint64(POINT_BITS)) | np.uint64(part[i + width])


@kernel
def _number(team: Team, keys: Any, table: Any, ids: Any, distinct: Any, count: Any) -> None:
    """Numbers in the order of first appearance; `table` holds numbers, EMPTY where free."""
    mask = np.uint64(table.size - 1)
    found = 0
    for i in range(keys.size):
        if interrupted(team, i):
            return
        key = keys[i]
        slot = mix64(key) & mask
        while True:
            number = table[slot]
            if number == EMPTY:
                table[slot] = found
                distinct[found] = key
                ids[i] = found
                found += 1
                break
            if distinct[number] == key:
                ids[i] = number
                break
            slot = (slot + np.uint64(1)) & mask
    count[0] = found


def places_of(keys: np.ndarray) -> np.ndarray:
    """The place of each key among the distinct keys in order."""
    size = 1 << max(4, int(2 * keys.size - 1).bit_length())
    table = np.full(size, EMPTY, np.int32)
    ids = np.empty(keys.size, np.int32)
    distinct = np.empty(keys.size, np.uint64)
    count = np.zeros(1, np.int64)
    crew(1, work=4 * keys.size).run(_number, keys, table, ids, distinct, count)
    order = np.argsort(distinct[: count[0]])
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    return place[ids]


def grams(texts: list[str], q: int, padded: bool) -> Grams:
    """All windows of q code points, of texts in the order of their ids."""
    # a copy that can be written to: kernels are compiled again for arrays that cannot
    text = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32).copy()
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = _offsets(lengths)
    if padded:
        padded_starts = _offsets(-(-lengths // q) * q)
        room = np.empty(padded_starts[-1], np.uint32)
        crew(1, work=room.size).run(_pad, starts, text, padded_starts, room)
        starts, text = padded_starts, room
    gram_starts = _offsets(np.maximum(np.diff(starts) - q + 1, 0))
    keys = np.empty(gram_starts[-1], np.uint64)
    width = min(q, PACKED)
    one = crew(1, work=3 * keys.size)
    one.run(_first_keys, starts, text, gram_starts, width, keys)
    gram_ids = places_of(keys)
    while width < q:
        one.run(_longer_keys, starts, text, gram_starts, width, gram_ids, keys)
        gram_ids = places_of(keys)
        width += 1
    return Grams(gram_starts, gram_ids, starts, text)


def _offsets(lengths: np.ndarray) -> np.ndarray:
    starts = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


# Tokens


@kernel
def _count_repeats(
    team: Team,
    starts: Any,
    gram_ids: Any,
    stride: int,
    stamp: Any,
    seen: Any,
    most: Any,
    repeats: Any,
) -> None:
    """repeats[i]: earlier occurrences of the gram within its element; most: the largest such + 1.

    With a stride, only every stride-th window counts.  The others get -1.
    """
    for e in range(starts.size - 1):
        if interrupted(team, e):
            return
        for i in range(starts[e], starts[e + 1]):
            if (i - starts[e]) % stride:
                repeats[i] = -1
                continue
            gram = gram_ids[i]
            if stamp[gram] != e:
                stamp[gram] = e
                seen[gram] = 0
            repeats[i] = seen[gram]
            seen[gram] += 1
            most[gram] = max(most[gram], seen[gram])


@kernel
def transpose(
    team: Team, starts: Any, lists: Any, holder_starts: Any, fill: Any, holders: Any
) -> None:
    """holders: which lists have each item, ascending.  `fill` is 0 for each item at the start."""
    for e in range(starts.size - 1):
        if interrupted(team, e):
            return
        for i in range(starts[e], starts[e + 1]):
            item = lists[i]
            holders[holder_starts[item] + fill[item]] = e
            fill[item] += 1


class Tokens(NamedTuple):
    """Tokens of elements, and elements of tokens."""

    starts: np.ndarray  # int64[m + 1]
    tokens: np.ndarray  # int32: ascending within an element
    holder_starts: np.ndarray  # int64[tokens + 1]
    holders: np.ndarray  # int32: elements that have the token, ascending
    chunk_starts: np.ndarray  # int64[m + 1]: the edit similarities only
    chunk_holder_starts: np.ndarray  # int64[tokens + 1]: as above, for tokens at every q-th place
    chunk_holders: np.ndarray


def _repeats(starts: np.ndarray, gram_ids: np.ndarray, stride: int, count: int) -> Any:
    stamp = np.full(count, -1, np.int32)
    seen = np.zeros(count, np.int32)
    most = np.zeros(count, np.int32)
    repeats = np.empty(gram_ids.size, np.int32)
    crew(1, work=2 * gram_ids.size).run(
        _count_repeats, starts, gram_ids, stride, stamp, seen, most, repeats
    )
    return repeats, most


def _holders_of(starts: np.ndarray, tokens: np.ndarray, count: int) -> Lists:
    """Where each of `count` tokens is in the lists `tokens` by `starts`."""
    holder_starts = _offsets(np.bincount(tokens, minlength=count))
    return holder_starts, _transposed(starts, tokens, holder_starts)


def _transposed(starts: np.ndarray, lists: np.ndarray, holder_starts: np.ndarray) -> np.ndarray:
    holders = np.empty(lists.size, np.int32)
    fill = np.zeros(holder_starts.size - 1, np.int32)
    crew(1, work=2 * lists.size).run(transpose, starts, lists, holder_starts, fill, holders)
    return holders


def tokens(found: Grams, occurrences: np.ndarray, stride: int) -> Tokens:
    """Tokens of all grams, numbered by rising frequency, then text.

    `stride` q also gives the chunks of the edit similarities; 0 gives none.
    """
    gram_ids, starts = found.gram_ids, found.starts
    count = int(gram_ids.max()) + 1 if gram_ids.size else 0
    repeats, most = _repeats(starts, gram_ids, 1, count)
    base = _offsets(most.astype(np.int64))
    provisional = base[gram_ids] + repeats
    holders = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    frequency = np.bincount(provisional, occurrences[holders], int(base[-1])).astype(np.int64)
    order = np.argsort(frequency, kind="stable")
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    token_holders = _holders_of(starts, place[provisional], order.size)
    in_order = _transposed(*token_holders, starts)
    chunk_starts, chunk_holders = NO_CHUNKS[0], NO_CHUNKS[1:]
    if stride:
        chunk_repeats, _ = _repeats(starts, gram_ids, stride, count)
        taken = chunk_repeats >= 0
        chunk_starts = _offsets(-(-np.diff(starts) // stride))
        chosen = place[base[gram_ids[taken]] + chunk_repeats[taken]]
        chunk_holders = _holders_of(chunk_starts, chosen, order.size)
    return Tokens(starts, in_order, *token_holders, chunk_starts, *chunk_holders)


def single(order: np.ndarray) -> Tokens:
    """One token for each element; `order` lists the elements by (frequency, place)."""
    count = order.size
    place = np.empty(count, np.int32)
    place[order] = np.arange(count, dtype=np.int32)
    each = np.arange(count + 1, dtype=np.int64)
    return Tokens(each, place, each, order.astype(np.int32), *NO_CHUNKS)

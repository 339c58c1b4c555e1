"""The host side of the join: what is probed against what, launches, and pairs taken away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.applications.join.candidates import cpu
from matchwood.applications.join.candidates.cpu import Raw as Raw
from matchwood.applications.join.candidates.cpu_collect import collect
from matchwood.applications.join.candidates.cpu_gather import BASIC, JOINT, POSITIONAL, WINDOW, Rule
from matchwood.applications.join.candidates.cpu_lists import (
    SLACK,
    Holders,
    Index,
    Lists,
    chunk_weights,
    index_of,
    jaccard_weights,
    lists_of,
    plain_weights,
    with_whole_elements,
)
from matchwood.applications.join.candidates.cpu_nearest import nearest
from matchwood.applications.join.candidates.cpu_plain import plain_lists
from matchwood.applications.join.candidates.cpu_small import SLOTS
from matchwood.applications.join.verification import apart, most_tokens, scratch
from matchwood.applications.join.verification.cpu import verify
from matchwood.applications.join.verification.cpu_pair import ACCEPTED
from matchwood.applications.join.verification.cpu_scratch import How
from matchwood.engines.cpu import counting, crew
from matchwood.engines.cpu.crew import INLINE_WORK
from matchwood.stopwatch import Stopwatch

LEVELS = {"basic": BASIC, "positional": POSITIONAL, "joint": JOINT}
TOLERANCE = 1e-9  # a pair counts when its similarity is at least delta minus this
ROOM = 1 << 17  # pairs of a member's buffer: 2 MB
WORTH_A_TEAM = 1 << 15  # pairs that a team collects; fewer are copied by the host
CHUNKS_PER_MEMBER = 64  # chunks of equal cost; the last one to end is late by one chunk at most
WORK_PER_POSTING = 8  # steps, for the choice of the number of threads
GROUP = np.int64(1) << 32  # a key is group * GROUP + size
NO_KINDS = (np.empty(0, np.int32), np.empty(0, np.int32))


def share_of(delta: float) -> float:
    """What a pair needs of the sum of its sizes."""
    least = max(delta - TOLERANCE, 0.0)
    return least / (1.0 + least)


class Task:
    """A join that is ready to run.

    `itself`: a collection with itself, each pair once.  `everyone`: each record of it is a left
    one, so that each pair is met twice.  `groups`: for each side a number for each record, records
    of different groups are no pairs, and those below 0 are in none; None: all are in one.  `near`:
    an index that is at hand will do if it was made for a threshold lower by no more than that.
    """

    def __init__(
        self,
        prepared: Any,
        delta: float,
        filters: str,
        *,
        groups: tuple[np.ndarray, ...] | None = None,
        everyone: bool = False,
        unequal: bool = False,
        near: float = 0.0,
    ) -> None:
        self.prepared = prepared
        self.itself = len(prepared.records) == 1
        self.once = self.itself and not everyone
        self.edit = prepared.similarity.startswith("edit")
        self.level = LEVELS[filters]
        self.unequal = unequal
        self.delta = delta
        self.grouped = groups is not None
        left, right = prepared.records[0], prepared.records[-1]
        left_lists, right_lists = _lists(prepared, 0, self.edit), _lists(prepared, -1, False)
        self.rule = self.rule_of(delta)
        order = _order(prepared, -1, groups)
        index = _index(prepared, right_lists, order, delta, self, groups is None, near)
        kinds = prepared.kinds() if unequal else NO_KINDS
        self.corpus = cpu.Corpus(
            prepared.elements, left, right, left_lists, right_lists, index, nearest_of(prepared),
            *kinds,
        )  # fmt: skip
        mine = order if self.itself else _order(prepared, 0, groups)
        if not self.grouped:
            key = (delta, self.once)
            self.all_places = prepared.keep_last(
                "places", key.__eq__, key, lambda: self._places(order, mine, delta)
            )
        else:
            self.all_places = self._places(order, mine, delta)
        self.places = self.all_places
        self.counts = np.zeros(cpu.COUNTS, np.int64)
        self.found = 0  # pairs that the host has taken, for a progress bar
        self.watch = Stopwatch()  # of the GPU engine

    def rule_of(self, delta: float) -> Rule:
        share = share_of(delta)
        prefix = 2 * share if self.once else max(delta - TOLERANCE, 0.0)
        return Rule(share, prefix, self.level, int(self.edit), int(self.itself), int(self.unequal))

    def _places(self, order: _Order, mine: _Order, delta: float) -> cpu.Places:
        least = max(delta - TOLERANCE, 0.0)
        with np.errstate(divide="ignore"):
            most = np.minimum(np.floor(mine.sizes / least * (1 + 1e-9)), GROUP - 1)
        highs = np.searchsorted(order.keys, mine.groups * GROUP + most.astype(np.int64), "right")
        if self.once:
            lows = np.arange(1, order.rows.size + 1)
        else:
            fewest = np.maximum(np.ceil(mine.sizes * least * (1 - 1e-9)), 1).astype(np.int64)
            lows = np.searchsorted(order.keys, mine.groups * GROUP + fewest, "left")
        return cpu.Places(
            mine.rows,
            lows.astype(np.int32),
            highs.astype(np.int32),
            order.rows,
            np.array([0, mine.rows.size]),
        )

    def costs(self, threads: int | None) -> np.ndarray:
        """Posting entries that each item reads."""
        costs = np.empty(self.places.rows.size, np.int64)
        team = crew(threads, work=4 * costs.size)
        team.run(cpu.count_postings, self.corpus, self.places, self.rule, costs)
        return costs

    def all_costs(self, threads: int | None) -> np.ndarray:
        """The costs of all items; those of the last delta are kept with what was prepared."""
        if self.grouped:
            return self.costs(threads)
        key = (self.delta, self.once, self.level)
        return self.prepared.keep_last("costs", key.__eq__, key, lambda: self.costs(threads))  # type: ignore[no-any-return]

    def evenly(self) -> np.ndarray:
        """Costs for one member, to whom it does not matter where the work is."""
        return np.ones(self.places.rows.size, np.int64)

    def part(self, first: int, last: int) -> None:
        """Only the items first to last of all are probed."""
        if (first, last) == (0, self.all_places.rows.size):
            self.places = self.all_places
        else:
            self.take(slice(first, last))

    def sample(self, every: int) -> None:
        """Only one item in `every` is probed."""
        self.take(slice(every // 2, None, every))

    def only(self, rows: np.ndarray) -> None:
        """Only these left rows are probed."""
        chosen = np.zeros(self.corpus.left.starts.size, bool)
        chosen[rows] = True
        self.take(np.flatnonzero(chosen[self.all_places.rows]))

    def take(self, kept: Any) -> None:
        """Only these items of all are probed."""
        whole = self.all_places
        self.places = whole._replace(
            rows=np.ascontiguousarray(whole.rows[kept]),
            lows=np.ascontiguousarray(whole.lows[kept]),
            highs=np.ascontiguousarray(whole.highs[kept]),
        )

    def raise_to(self, delta: float) -> None:
        """A higher threshold: what was prepared for the lower one still holds."""
        self.rule = self.rule_of(delta)

    def without_prefix(self, first: int, last: int) -> int:
        """How many items have no prefix, so that all records of fitting size are candidates."""
        if not self.edit:
            return 0
        lists, rows = self.corpus.left_lists, self.all_places.rows[first:last]
        sizes = self.prepared.sizes[0][rows]
        ends = lists.ends[rows]
        left = sizes.astype(np.float64)
        has = ends > lists.starts[rows]
        left[has] = lists.rests[ends[has] - 1]
        return int((left >= self.rule.prefix * sizes - SLACK).sum())

    def run(
        self, how: How, threads: int | None, costs: np.ndarray, room: int = ROOM
    ) -> Iterator[Raw]:
        """Pairs, as they are found.  Between two of them the threshold may be raised."""
        launch = Launch(self, how, threads, costs, room)
        while True:
            rule = self.rule
            launch.again(cpu.join_all, self.corpus, launch.places, rule, how)
            overflow = int(launch.work.state[:, cpu.OVERFLOW].sum())
            raw = launch.taken()
            if raw.left.size:
                yield self._with_more_room(raw, how) if overflow else raw
            if not launch.words[cpu.FULL]:
                break
            if self.rule is not rule:  # other candidates than before: the record starts again
                launch.work.state[:, cpu.SKIP] = 0
            else:
                launch.widen()
        self.counts += launch.work.counts.sum(axis=0)

    def _with_more_room(self, raw: Raw, how: How) -> Raw:
        """Verify the pairs that did not fit the scratch."""
        open_ = np.flatnonzero(raw.weight < 0)
        pairs = np.stack((raw.left[open_], raw.right[open_]), axis=1).astype(np.int64)
        corpus, share = self.corpus, self.rule.share
        verdicts, weights = verify(
            corpus.elements, corpus.left, corpus.right, pairs, share, how, threads=1
        )
        raw.weight[open_] = np.where(verdicts & ACCEPTED, weights, 0)
        np.add.at(self.counts, np.array(cpu.KINDS)[verdicts], 1)
        self.counts[cpu.VERIFIED] += open_.size
        kept = raw.weight > 0
        return Raw(*(array[kept] for array in raw))


class Launch:
    """A team with its buffers, which is started again until all items are done."""

    def __init__(
        self, task: Task, how: How, threads: int | None, costs: np.ndarray, room: int
    ) -> None:
        corpus = task.corpus
        self.team = crew(threads, work=_work(task, costs))
        self.task = task
        self.places = task.places._replace(chunks=cuts(costs, CHUNKS_PER_MEMBER * self.team.size))
        right = corpus.right.starts.size - 1
        most = max(1, *task.prepared.largest)
        self.work = _members(self.team.size, min(WINDOW, max(right, 1)), room, most)
        self.space = scratch(
            corpus.elements, corpus.left, corpus.right, how, self.team.size,
            tokens=_most_tokens(task.prepared), largest=task.prepared.largest,
        )  # fmt: skip
        self.words = np.zeros(cpu.WORDS, np.int64)
        self.done = 0
        self.edges = 0  # of the largest pair for which there was no room

    def again(self, kernel: Any, *args: Any) -> None:
        self.words[cpu.FULL] = 0
        with counting(self._found):
            self.team.run(kernel, *args, self.space, self.work, self.words, self.done)
        chunks = self.places.chunks
        taken = min(int(self.words[cpu.CURSOR]), chunks.size - 1)
        begun = int(chunks[-1] - chunks[chunks.size - 1 - taken])
        state = self.work.state
        self.done = begun - int((state[:, cpu.END] - state[:, cpu.ITEM]).sum())

    def widen(self) -> None:
        """Twice the room, up to ROOM, once the host has all pairs: fewer starts of the team."""
        room = self.work.left.shape[1]
        if room < ROOM:
            self._new_buffers(min(2 * room, ROOM))

    def taken(self) -> Raw:
        """What the members wrote: their buffers are free again.

        The full buffer of a member that is alone goes to the caller as it is.
        """
        work, filled = self.work, self.work.state[:, cpu.FILLED].copy()
        total = int(filled.sum())
        self.task.found += total
        work.state[:, cpu.FILLED] = work.state[:, cpu.OVERFLOW] = 0
        if filled.size == 1:
            raw = Raw(work.left[0, :total], work.right[0, :total], work.weight[0, :total])
            if 2 * total < work.left.shape[1]:
                return Raw(*(array.copy() for array in raw))
            self._new_buffers(work.left.shape[1])
            return raw
        if total < WORTH_A_TEAM:
            buffers = (work.left, work.right, work.weight)
            parts = [[row[:n] for row, n in zip(a, filled, strict=True)] for a in buffers]
            return Raw(*map(np.concatenate, parts))
        raw = _empty(total)
        self.team.run(collect, work, np.cumsum(filled) - filled, filled, raw)
        return raw

    def _new_buffers(self, room: int) -> None:
        made = _empty((self.work.left.shape[0], room))
        self.work = self.work._replace(left=made.left, right=made.right, weight=made.weight)

    def _found(self) -> int:
        """Pairs by now, for a progress bar; members go on writing meanwhile."""
        return self.task.found + int(self.work.state[:, cpu.FILLED].sum())


def _empty(shape: Any) -> Raw:
    return Raw(np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.int64))


def _work(task: Task, costs: np.ndarray) -> int:
    """Steps, for the number of threads.

    Few postings may still lead to much work, where records or texts are long.  Then a thread of its
    own does it, so that Ctrl-C is heard.
    """
    steps = WORK_PER_POSTING * int(costs.sum())
    left, right = task.prepared.largest
    long = costs.size * left * right + WORK_PER_POSTING * task.corpus.elements.text.size
    return max(steps, min(long, INLINE_WORK))


def _members(size: int, window: int, room: int, most: int) -> cpu.Members:
    return cpu.Members(
        np.zeros((size, cpu.STATE), np.int64),
        np.zeros((size, cpu.COUNTS), np.int64),
        np.zeros((size, window)),
        np.zeros((size, window)),
        np.empty((size, window), np.int32),
        np.zeros((size, SLOTS), np.uint64),
        np.empty((size, SLOTS), np.int64),
        np.empty((size, apart(most)), np.int32),
        np.empty((size, apart(most)), np.int32),
        *_empty((size, room)),
    )


def cuts(costs: np.ndarray, parts: int) -> np.ndarray:
    """Where at most `parts` parts of about equal cost begin; the last entry is the end."""
    ends = np.cumsum(costs)
    if not ends.size:
        return np.zeros(1, np.int64)
    targets = ends[-1] * np.arange(1, parts) // parts
    return np.unique(np.concatenate(([0], np.searchsorted(ends, targets), [ends.size])))


def shard_of(costs: np.ndarray, part: int, parts: int) -> tuple[int, int]:
    """The items of one of `parts` parts of balanced cost."""
    ends = np.cumsum(costs)
    total = int(ends[-1]) if ends.size else 0
    first, last = np.searchsorted(ends, [total * part // parts, total * (part + 1) // parts])
    return int(first), int(last) if part + 1 < parts else ends.size


def _most_tokens(prepared: Any) -> int:
    """Tokens of the largest record of both sides."""
    records, elements = prepared.records, prepared.elements
    if prepared.similarity == "equal":
        return max(prepared.largest)
    return int(
        prepared.keep("most tokens", lambda: max(most_tokens(elements, side) for side in records))
    )


class _Order:
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


def _order(prepared: Any, side: int, groups: tuple[np.ndarray, ...] | None) -> _Order:
    side %= len(prepared.records)
    if groups is not None:
        return _Order(prepared.sizes[side], groups[side])
    return prepared.keep(("order", side), lambda: _Order(prepared.sizes[side], None))  # type: ignore[no-any-return]


def _lists(prepared: Any, side: int, chunks: bool) -> Lists:
    """Token lists of a side: chunks for the left of the edit similarities, else grams."""
    side %= len(prepared.records)
    return prepared.keep(("lists", side, chunks), lambda: _make_lists(prepared, side, chunks))


def _make_lists(prepared: Any, side: int, chunks: bool) -> Lists:
    records, tokens = prepared.records[side], prepared.tokens
    if prepared.similarity == "equal":
        return plain_lists(records, tokens.tokens)
    counts = np.diff(tokens.starts)
    if chunks:
        lengths = np.diff(prepared.elements.text_starts)
        weights = chunk_weights(np.diff(tokens.chunk_starts), lengths)
        holders = _holders(*holders_of(tokens.chunk_starts, tokens.chunks, tokens))
    elif prepared.similarity == "jaccard":
        weights = jaccard_weights(counts, nearest_of(prepared))
        holders = prepared.keep("holders", lambda: _whole_holders(prepared))
    else:  # how many elements have a token is all that counts
        weights = plain_weights(counts, np.ones(counts.size, np.float32), np.zeros(counts.size))
        holders = _holders(tokens.holder_starts, tokens.holders)
    return lists_of(records.starts, records.elements, holders, weights)


def nearest_of(prepared: Any) -> np.ndarray:
    """How similar each element can be to any other."""
    if prepared.similarity != "jaccard":
        return np.zeros(len(prepared.values))
    return prepared.keep("nearest", lambda: nearest(prepared.tokens, 1))


def _holders(starts: np.ndarray, elements: np.ndarray) -> Holders:
    return Holders(starts, elements, np.zeros(starts.size - 1, np.int8))


def _whole_holders(prepared: Any) -> Holders:
    tokens = prepared.tokens
    occurrences = np.zeros(len(prepared.values), np.int64)
    for records in prepared.records:
        occurrences += np.bincount(records.elements, minlength=occurrences.size)
    return with_whole_elements(tokens.holder_starts, tokens.holders, occurrences)


def holders_of(starts: np.ndarray, lists: np.ndarray, tokens: Any) -> tuple[np.ndarray, np.ndarray]:
    """The elements of each token, from the tokens of each element."""
    count = tokens.holder_starts.size - 1
    holder_starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(lists, minlength=count), out=holder_starts[1:])
    holders = np.repeat(np.arange(starts.size - 1, dtype=np.int32), np.diff(starts))
    return holder_starts, holders[np.argsort(lists, kind="stable")]


def _index(
    prepared: Any, lists: Lists, order: _Order, delta: float, task: Task, keep: bool, near: float
) -> Index:
    """The index of the right side; that of the last delta is kept.

    That of a lower delta has longer prefixes, and so all that is needed.
    """
    whole = task.edit or task.level == BASIC
    least = 0.0 if whole else max(delta - TOLERANCE, 0.0)
    tokens = prepared.tokens.holder_starts.size - 1
    tokens += len(prepared.values) if prepared.similarity == "jaccard" else 0

    def make() -> Index:
        return index_of(lists, order.rows, order.sizes, tokens, least)[0]

    if not keep:
        return make()
    return prepared.keep_last("index", lambda of: least - near <= of <= least, least, make)  # type: ignore[no-any-return]

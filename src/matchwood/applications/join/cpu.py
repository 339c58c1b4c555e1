"""The join on CPU threads: what is probed against what, launches, and the collection of pairs.

    blocks          the whole join, or the best partners of each left record
    above           pairs above a threshold that rises, for the best k of all
    Task            a join that is ready to run: both sides, the index, the order of probing
    Launch          a team with its buffers, which is started again until all items are done
    best_per_left   the best partners of each left record

The GPU engine has the same plan (`joined`) with kernels of its own.  Read on in probing/cpu.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from matchwood.applications.join import COUNTED, NO_PAIRS, STEP, Choice, Raw, together
from matchwood.applications.join.candidates import FILTERS
from matchwood.applications.join.candidates.cpu import (
    BASIC,
    GROUP,
    SLACK,
    Order,
    Rule,
    index_of_side,
    lists_of_side,
    nearest_of,
    order_of,
)
from matchwood.applications.join.probing import cpu as probing
from matchwood.applications.join.probing.cpu import Corpus, Job, Kept, Members, ProbeOrder
from matchwood.applications.join.verification import TOLERANCE, share_of
from matchwood.applications.join.verification.cpu import ACCEPTED
from matchwood.applications.join.verification.cpu.pairs import verifier_of, verify
from matchwood.applications.join.verification.cpu.rows import How, apart, how, most_tokens, scratch
from matchwood.engines.cpu import counting, crew
from matchwood.engines.cpu.crew import INLINE_WORK
from matchwood.stopwatch import Stopwatch

BLOCK = 1 << 22  # posting entries read for a block of `blocks`: it has no more pairs than that
ROUNDS = (0.8, 0.6, 0.45, 0.3, 0.2)  # thresholds that are tried for the best of each record
NAMES = {name: getattr(probing, name.upper()) for name in COUNTED}
LARGER, LARGER_OR_EQUAL = "larger", "larger or equal"
ROOM = 1 << 17  # pairs of a member's buffer: 2 MB
CHUNKS_PER_MEMBER = 64  # chunks of equal cost; the last one to end is late by one chunk at most
WORK_PER_POSTING = 8  # steps, for the choice of the number of threads


def blocks(prepared: Any, choice: Choice, whole: bool) -> Iterator[Raw]:
    """The pairs of a join, in parts.

    Unless `whole`, an empty part ends each block, and the content of a block depends on the data
    alone.
    """
    return joined(prepared, choice, whole, choice.threads != 1, all_pairs, best_per_left)


def joined(
    prepared: Any, choice: Choice, whole: bool, balances: bool, all_of: Any, best_of: Any
) -> Iterator[Raw]:
    """`blocks` of an engine: `all_of` yields all pairs of a task, `best_of` those of each record.

    `balances`: the costs of the items are needed even where there is one part only.
    """
    how = how_of_choice(prepared, choice)
    needed = balances or choice.shard[1] > 1 or not whole
    choice.stats["without_prefix"] = 0
    watch = Stopwatch()
    for make in passes_of(prepared, choice):
        task = make()
        watch.lap("index")
        costs = task.all_costs(choice.threads) if needed else task.evenly()
        first, last = shard_of(costs, *choice.shard)
        steps = (
            np.array([first, last]) if whole else first + cuts(costs[first:last], parts_of(costs))
        )
        choice.stats["without_prefix"] += task.without_prefix(first, last)
        for a, b in zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True):
            task.part(a, b)
            if choice.per_left is None:
                yield from all_of(task, how, choice, costs[a:b])
            else:
                yield from _best_in_rounds(task, how, choice, best_of)
            if not whole:
                yield NO_PAIRS
        watch.lap("join")
        count(choice, task)
    choice.stats.setdefault("seconds", {}).update({**watch.seconds, **task.watch.seconds})


def _best_in_rounds(task: Task, how: How, choice: Choice, best_of: Any) -> Iterator[Raw]:
    """The best partners of the records of `task`, first those that are found easily.

    A high threshold has few candidates.  A record with enough partners above it is done.
    """
    rows = task.places.rows
    for delta in ROUNDS:
        if delta <= choice.delta or not rows.size:
            continue
        easy = task_of(task.prepared, choice, delta)
        easy.only(rows)
        pairs = together(list(best_of(easy, how, choice)))
        count(choice, easy)
        enough = np.bincount(pairs.left, minlength=task.corpus.left.starts.size)
        enough = enough >= (choice.per_left or 1)
        done = enough[pairs.left]
        if done.any():  # an empty part would end the block
            yield Raw(*(array[done] for array in pairs))
        rows = rows[~enough[rows]]
    if rows.size:
        task.only(rows)
        yield from best_of(task, how, choice)


def refuse(prepared: Any, choice: Choice) -> None:
    """Raise EngineUnavailable for what an engine has not; this one has everything."""


def above(prepared: Any, choice: Choice, delta: float, raise_to: Any, sample: Any) -> Iterator[Raw]:
    """Pairs of at least `delta`, for the best k: of all left records, or of a sample.

    `raise_to()` is called after each part for a new, higher delta.  `sample(task)` takes some of
    the left records; None takes all.
    """
    how = how_of_choice(prepared, choice)
    for make in passes_of(prepared, choice, delta, near=STEP):
        task = make()
        if sample is not None:
            sample(task)
        costs = task.evenly() if choice.threads == 1 else task.costs(choice.threads)
        room = max(min(4 * (choice.k or 1), 1 << 16), task.corpus.right.starts.size)
        task.raise_to(delta)
        for raw in task.run(how, choice.threads, costs, room):
            yield raw
            higher = raise_to()
            if higher > delta:
                delta = higher
                task.raise_to(higher)
        count(choice, task)


def passes_of(
    prepared: Any, choice: Choice, delta: float | None = None, near: float = 0.0
) -> list[Callable[[], Task]]:
    """What makes the tasks of a join, to be run one after the other.

    By edit similarities two tables are joined in two: left records with those that are no smaller,
    then right records with larger ones.  A record needs more of a larger partner than of a smaller
    one, so its prefix is shorter, or there is one at all (as in a join of a table with itself).
    """
    one = partial(task_of, prepared, choice, delta, near)
    edit = prepared.similarity.startswith("edit")
    if not edit or len(prepared.records) == 1 or choice.per_left is not None:
        return [one]
    groups = None if choice.groups is None else choice.groups[::-1]
    exchanged = partial(task_of, prepared.exchanged(), replace(choice, groups=groups), delta, near)
    return [partial(one, LARGER_OR_EQUAL), partial(exchanged, LARGER)]


def task_of(
    prepared: Any,
    choice: Choice,
    delta: float | None = None,
    near: float = 0.0,
    against: str | None = None,
) -> Task:
    return Task(
        prepared,
        choice.delta if delta is None else delta,
        choice.filters,
        groups=choice.groups,
        everyone=choice.per_left is not None,
        unequal=choice.exclude_equal,
        near=near,
        against=against,
    )


def how_of_choice(prepared: Any, choice: Choice) -> Any:
    exact = choice.scores or choice.k is not None or choice.per_left is not None
    exact = exact or choice.exclude_equal  # a GPU recognises equal records by their weight
    return how(choice.caller, prepared.similarity, choice.verify, choice.mode, exact)


def parts_of(costs: np.ndarray) -> int:
    return int(costs.sum()) // BLOCK + 1


def count(choice: Choice, task: Task) -> None:
    for name, place in NAMES.items():
        choice.stats[name] = choice.stats.get(name, 0) + int(task.counts[place])


# A join that is ready to run


class Task:
    """A join that is ready to run.

    `itself`: a collection with itself, each pair once.  `everyone`: each record of it is a left
    one, so that each pair is found twice.  `groups`: for each side the group of each record; only
    records of one group form pairs, those below 0 none; None: all are in one.  `near`: an index
    kept from before is used if its threshold is lower by no more than this.  `against`: only right
    records that are larger, or larger or equal, in size; with LARGER both sides are exchanged.
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
        against: str | None = None,
    ) -> None:
        self.prepared = prepared
        self.against = against
        self.first_row = prepared.sizes[1].size if against == LARGER else 0  # left rows of the user
        self.itself = len(prepared.records) == 1
        self.once = self.itself and not everyone
        self.edit = prepared.similarity.startswith("edit")
        self.level = FILTERS.index(filters)
        self.unequal = unequal
        self.delta = delta
        self.grouped = groups is not None
        left, right = prepared.records[0], prepared.records[-1]
        left_lists = lists_of_side(prepared, 0, self.edit)
        right_lists = lists_of_side(prepared, -1, False)
        self.rule = self.rule_of(delta)
        order = order_of(prepared, -1, groups)
        least = 0.0 if self.edit or self.level == BASIC else max(delta - TOLERANCE, 0.0)
        index = index_of_side(prepared, right_lists, order, least, groups is None, near)
        nobody = np.empty(0, np.int32)
        kinds = prepared.kinds() if unequal else (nobody, nobody)
        self.corpus = Corpus(
            prepared.elements, left, right, left_lists, right_lists, index, nearest_of(prepared),
            *kinds,
        )  # fmt: skip
        mine = order if self.itself else order_of(prepared, 0, groups)
        if not self.grouped:
            key = (delta, self.once, against)
            self.all_places = prepared.keep_last(
                "places", key.__eq__, key, lambda: self._places(order, mine, delta)
            )
        else:
            self.all_places = self._places(order, mine, delta)
        self.places = self.all_places
        self.counts = np.zeros(probing.COUNTS, np.int64)
        self.found = 0  # pairs that the host has taken, for a progress bar
        self.watch = Stopwatch()  # of the GPU engine

    def rule_of(self, delta: float) -> Rule:
        share = share_of(delta)
        upwards = self.once or self.against is not None
        prefix = 2 * share if upwards else max(delta - TOLERANCE, 0.0)
        kinds = self.edit, self.itself, self.unequal, self.against == LARGER
        return Rule(share, prefix, self.level, *map(int, kinds))

    def _places(self, order: Order, mine: Order, delta: float) -> ProbeOrder:
        least = max(delta - TOLERANCE, 0.0)
        with np.errstate(divide="ignore"):
            most = np.minimum(np.floor(mine.sizes / least * (1 + 1e-9)), GROUP - 1)
        highs = np.searchsorted(order.keys, mine.groups * GROUP + most.astype(np.int64), "right")
        if self.once:
            lows = np.arange(1, order.rows.size + 1)
        elif self.against is not None:
            side = "left" if self.against == LARGER_OR_EQUAL else "right"
            lows = np.minimum(np.searchsorted(order.keys, mine.keys, side), highs)
        else:
            fewest = np.maximum(np.ceil(mine.sizes * least * (1 - 1e-9)), 1).astype(np.int64)
            lows = np.searchsorted(order.keys, mine.groups * GROUP + fewest, "left")
        return ProbeOrder(
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
        team.run(probing.count_postings, self.corpus, self.places, self.rule, costs)
        return costs

    def all_costs(self, threads: int | None) -> np.ndarray:
        """The costs of all items; those of the last delta are kept in `prepared`."""
        if self.grouped:
            return self.costs(threads)
        key = (self.delta, self.once, self.level, self.against)
        return self.prepared.keep_last("costs", key.__eq__, key, lambda: self.costs(threads))  # type: ignore[no-any-return]

    def evenly(self) -> np.ndarray:
        """Equal costs for all items, for a team of one, which need not balance."""
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
        self.places = taken_of(self.all_places, kept)

    def raise_to(self, delta: float) -> None:
        """Raise the threshold: what was prepared for the lower one still holds."""
        self.rule = self.rule_of(delta)

    def without_prefix(self, first: int, last: int) -> int:
        """The number of items without a prefix: all records of fitting size are candidates."""
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
        """Pairs, in parts as they are found.  Between two parts the threshold may be raised."""
        launch = Launch(self, how, threads, costs, room)
        while True:
            rule = self.rule
            launch.again(probing.join_all, Job(self.corpus, launch.places, rule, how))
            overflow = int(launch.work.state[:, probing.OVERFLOW].sum())
            raw = launch.taken()
            if raw.left.size:
                yield self._with_more_room(raw, how) if overflow else raw
            if not launch.words[probing.FULL]:
                break
            if self.rule is not rule:  # other candidates than before: the record starts again
                launch.work.state[:, probing.SKIP] = 0
            else:
                launch.widen()
        self.counts += launch.work.counts.sum(axis=0)

    def _with_more_room(self, raw: Raw, how: How) -> Raw:
        """Verify the pairs that did not fit the scratch."""
        open_ = np.flatnonzero(raw.weight < 0)
        pairs = np.stack((raw.left[open_], raw.right[open_]), axis=1).astype(np.int64)
        corpus, share = self.corpus, self.rule.share
        left, right = corpus.left, corpus.right
        if self.against == LARGER:
            left, right = right, left
        verdicts, weights = verify(corpus.elements, left, right, pairs, share, how, threads=1)
        raw.weight[open_] = np.where(verdicts & ACCEPTED, weights, 0)
        np.add.at(self.counts, np.array(probing.KINDS)[verdicts], 1)
        self.counts[probing.VERIFIED] += open_.size
        kept = raw.weight > 0
        return Raw(*(array[kept] for array in raw))


def taken_of(places: ProbeOrder, kept: Any) -> ProbeOrder:
    """Only these items."""
    return places._replace(
        rows=np.ascontiguousarray(places.rows[kept]),
        lows=np.ascontiguousarray(places.lows[kept]),
        highs=np.ascontiguousarray(places.highs[kept]),
    )


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
        self.work = _members(self.team.size, min(probing.WINDOW, max(right, 1)), room, most)
        self.verify_with(how, tokens=_most_tokens(task.prepared), largest=task.prepared.largest)
        self.words = np.zeros(probing.WORDS, np.int64)
        self.done = 0
        self.edges = 0  # of the largest pair for which there was no room

    def verify_with(self, how: How, **sizes: Any) -> None:
        """Give the verification arrays of these sizes."""
        sides = self.task.corpus.elements, self.task.corpus.left, self.task.corpus.right
        space = scratch(*sides, how, self.team.size, **sizes)
        self.verifier, self.kept = verifier_of(*sides, how, space)

    def again(self, kernel: Any, *args: Any) -> None:
        self.words[probing.FULL] = 0
        with counting(self._found):
            self.team.run(kernel, *args, self.verifier, self.work, self.words, self.done)
        chunks = self.places.chunks
        taken = min(int(self.words[probing.CURSOR]), chunks.size - 1)
        begun = int(chunks[-1] - chunks[chunks.size - 1 - taken])
        state = self.work.state
        self.done = begun - int((state[:, probing.END] - state[:, probing.ITEM]).sum())

    def widen(self) -> None:
        """Double the buffers, up to ROOM, once they are empty: fewer starts of the team."""
        room = self.work.left.shape[1]
        if room < ROOM:
            self._new_buffers(min(2 * room, ROOM))

    def taken(self) -> Raw:
        """The pairs that the members wrote; empties their buffers."""
        work, filled = self.work, self.work.state[:, probing.FILLED].tolist()
        self.task.found += sum(filled)
        work.state[:, probing.FILLED] = work.state[:, probing.OVERFLOW] = 0
        buffers = (work.left, work.right, work.weight)
        parts = [[row[:n] for row, n in zip(a, filled, strict=True)] for a in buffers]
        return Raw(*map(np.concatenate, parts))

    def _new_buffers(self, room: int) -> None:
        made = _empty((self.work.left.shape[0], room))
        self.work = self.work._replace(left=made.left, right=made.right, weight=made.weight)

    def _found(self) -> int:
        """The number of pairs so far, for a progress bar, while members go on writing."""
        return self.task.found + int(self.work.state[:, probing.FILLED].sum())


def _empty(shape: Any) -> Raw:
    return Raw(np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.int64))


def _work(task: Task, costs: np.ndarray) -> int:
    """Work steps, for the choice of the number of threads.

    Few postings may still mean much work, where records or texts are long.  Then at least one
    separate thread is used, so that Ctrl-C takes effect.
    """
    steps = WORK_PER_POSTING * int(costs.sum())
    left, right = task.prepared.largest
    long = costs.size * left * right + WORK_PER_POSTING * task.corpus.elements.text.size
    return max(steps, min(long, INLINE_WORK))


def _members(size: int, window: int, room: int, most: int) -> Members:
    return Members(
        np.zeros((size, probing.STATE), np.int64),
        np.zeros((size, probing.COUNTS), np.int64),
        np.zeros((size, window)),
        np.zeros((size, window)),
        np.empty((size, window), np.int32),
        np.zeros((size, probing.SLOTS), np.uint64),
        np.empty((size, probing.SLOTS), np.int64),
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


# The best partners of each left record


def all_pairs(task: Task, how: How, choice: Choice, costs: np.ndarray) -> Iterator[Raw]:
    return task.run(how, choice.threads, costs)


def best_per_left(task: Task, how: How, choice: Choice) -> Iterator[Raw]:
    """The best partners of each left record, as they are found."""
    costs = task.costs(choice.threads)
    launch = Launch(task, how, choice.threads, costs, max(ROOM, _most(task, choice)))
    places = task.places
    while True:
        again: list[int] = []
        for raw in _launched(task, how, choice, launch):
            fits = raw.weight >= 0
            again += raw.left[~fits].tolist()
            if fits.any():
                yield Raw(*(array[fits] for array in raw))
        if not again:
            break
        # records with a pair of very many edges: one member, with room for them
        chosen = np.flatnonzero(np.isin(places.rows, again))
        task.places = taken_of(places, chosen)
        edges = launch.edges
        launch = Launch(task, how, 1, task.evenly(), max(ROOM, _most(task, choice)))
        launch.verify_with(how, edges=edges)
    task.places = places


def _most(task: Task, choice: Choice) -> int:
    """The most partners that a record can have."""
    return max(1, min(choice.per_left or 1, task.corpus.right.starts.size - 1))


def _launched(task: Task, how: How, choice: Choice, launch: Launch) -> Iterator[Raw]:
    """The pairs of each launch, until all items are done."""
    most = _most(task, choice)
    room = launch.team.size, apart(most)
    kept = Kept(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64), most)
    while True:
        launch.again(probing.join_best, Job(task.corpus, launch.places, task.rule, how), kept)
        launch.edges = max(launch.edges, int(launch.work.state[:, probing.OVERFLOW].max()))
        raw = launch.taken()
        if raw.left.size:
            yield raw
        if not launch.words[probing.FULL]:
            break
    task.counts += launch.work.counts.sum(axis=0)

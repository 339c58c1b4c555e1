"""The join on CPU threads: the whole of it, its best pairs, the best for each left record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.applications.join.candidates import cpu as probing
from matchwood.applications.join.candidates.cpu_run import Raw, Task, cuts, shard_of
from matchwood.applications.join.choice import Choice
from matchwood.applications.join.top import STEP
from matchwood.applications.join.top.cpu import best_per_left
from matchwood.applications.join.verification import how as how_of
from matchwood.stopwatch import Stopwatch

BLOCK = 1 << 22  # entries of posting lists behind a block of `blocks`: no more pairs than that
ROUNDS = (0.8, 0.6, 0.45, 0.3, 0.2)  # thresholds that are tried for the best of each record
NAMES = {
    "generated": probing.GENERATED,
    "refined": probing.REFINED,
    "verified": probing.VERIFIED,
    "accepted_by_bound": probing.ACCEPTED_BY_BOUND,
    "rejected_by_bound": probing.REJECTED_BY_BOUND,
    "solved_exactly": probing.SOLVED_EXACTLY,
}


def blocks(prepared: Any, choice: Choice, whole: bool) -> Iterator[Raw]:
    """The pairs of a join, in parts.

    `whole`: in parts as they come.  Else an empty part ends each block, and what is in a block
    depends on the data alone.
    """
    watch = Stopwatch()
    task = task_of(prepared, choice)
    watch.lap("index")
    how = how_of_choice(prepared, choice)
    alone = choice.threads == 1 and choice.shard[1] == 1 and whole
    costs = task.evenly() if alone else task.all_costs(choice.threads)
    first, last = shard_of(costs, *choice.shard)
    steps = np.array([first, last]) if whole else first + cuts(costs[first:last], parts_of(costs))
    choice.stats["without_prefix"] = task.without_prefix(first, last)
    for a, b in zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True):
        task.part(a, b)
        if choice.per_left is None:
            yield from task.run(how, choice.threads, costs[a:b])
        else:
            yield from _best_in_rounds(prepared, task, how, choice)
        if not whole:
            yield BREAK
    watch.lap("join")
    count(choice, task)
    choice.stats.setdefault("seconds", {}).update(watch.seconds)


def _best_in_rounds(prepared: Any, task: Task, how: Any, choice: Choice) -> Iterator[Raw]:
    """The best partners of the records of `task`, first those that are found easily.

    A high threshold has few candidates.  A record with enough partners above it is done.
    """
    rows = task.places.rows
    for delta in ROUNDS:
        if delta <= choice.delta or not rows.size:
            continue
        easy = task_of(prepared, choice, delta)
        easy.only(rows)
        found = list(best_per_left(easy, how, choice, easy.costs(choice.threads)))
        count(choice, easy)
        left = np.concatenate([np.empty(0, np.int32), *(raw.left for raw in found)])
        enough = np.bincount(left, minlength=prepared.records[0].starts.size)
        enough = enough >= (choice.per_left or 1)
        for raw in found:
            yield Raw(*(array[enough[raw.left]] for array in raw))
        rows = rows[~enough[rows]]
    if rows.size:
        task.only(rows)
        yield from best_per_left(task, how, choice, task.costs(choice.threads))


BREAK = Raw(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))


def above(prepared: Any, choice: Choice, delta: float, raise_to: Any, sample: Any) -> Iterator[Raw]:
    """Pairs of at least `delta`, for the best k: of all left records, or of a sample.

    `raise_to()` is asked after each part for a new, higher delta.  `sample(task)` takes some of the
    left records; None takes all.
    """
    task = task_of(prepared, choice, delta, near=STEP)
    if sample is not None:
        sample(task)
    how = how_of_choice(prepared, choice)
    costs = task.evenly() if choice.threads == 1 else task.costs(choice.threads)
    room = max(min(4 * (choice.k or 1), 1 << 16), task.corpus.right.starts.size)
    for raw in task.run(how, choice.threads, costs, room):
        yield raw
        higher = raise_to()
        if higher > delta:
            delta = higher
            task.raise_to(higher)
    count(choice, task)


def task_of(prepared: Any, choice: Choice, delta: float | None = None, near: float = 0.0) -> Task:
    return Task(
        prepared,
        choice.delta if delta is None else delta,
        choice.filters,
        groups=choice.groups,
        everyone=choice.per_left is not None,
        unequal=choice.exclude_equal,
        near=near,
    )


def how_of_choice(prepared: Any, choice: Choice) -> Any:
    exact = choice.scores or choice.k is not None or choice.per_left is not None
    exact = exact or choice.exclude_equal  # a GPU tells equal records by their weight
    return how_of(choice.caller, prepared.similarity, choice.verify, choice.mode, exact)


def parts_of(costs: np.ndarray) -> int:
    return int(costs.sum()) // BLOCK + 1


def count(choice: Choice, task: Task) -> None:
    for name, place in NAMES.items():
        choice.stats[name] = choice.stats.get(name, 0) + int(task.counts[place])

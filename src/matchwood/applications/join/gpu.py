"""The join on the GPU.  The kernels and their host loops: candidates/gpu.py, verification/gpu.py.

Jaccard similarity of grams, or equality of elements, with certified verification.  Other choices
are refused: nothing is done on another engine without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.applications.join.candidates import gpu
from matchwood.applications.join.candidates.cpu_run import Raw, Task, cuts, shard_of
from matchwood.applications.join.choice import Choice
from matchwood.applications.join.cpu import BREAK, ROUNDS, count, how_of_choice, parts_of, task_of
from matchwood.applications.join.result import by_score
from matchwood.applications.join.top import STEP
from matchwood.errors import EngineUnavailable
from matchwood.stopwatch import Stopwatch

SIMILARITIES = ("jaccard", "equal")


def blocks(prepared: Any, choice: Choice, whole: bool) -> Iterator[Raw]:
    """The pairs of a join, in parts; the same parts as those of the CPU engine."""
    _refuse(prepared, choice)
    watch = Stopwatch()
    task = task_of(prepared, choice)
    watch.lap("index")
    how = how_of_choice(prepared, choice)
    steps = np.array([0, task.places.rows.size])
    if choice.shard[1] > 1 or not whole:  # parts of balanced cost, as on the CPU
        costs = task.all_costs(choice.threads)
        first, last = shard_of(costs, *choice.shard)
        steps = np.array([first, last])
        if not whole:
            steps = first + cuts(costs[first:last], parts_of(costs))
    choice.stats["without_prefix"] = 0
    for a, b in zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True):
        task.part(a, b)
        if choice.per_left is None:
            yield from gpu.run(task, how)
        else:
            yield from _best_in_rounds(prepared, task, how, choice)
        if not whole:
            yield BREAK
    watch.lap("join")
    count(choice, task)
    choice.stats.setdefault("seconds", {}).update({**watch.seconds, **task.watch.seconds})


def above(prepared: Any, choice: Choice, delta: float, raise_to: Any, sample: Any) -> Iterator[Raw]:
    """Pairs of at least `delta`, for the best k: of all left records, or of a sample."""
    _refuse(prepared, choice)
    task = task_of(prepared, choice, delta, near=STEP)
    if sample is not None:
        sample(task)
    yield from gpu.run(task, how_of_choice(prepared, choice))
    count(choice, task)


def _best_in_rounds(prepared: Any, task: Task, how: Any, choice: Choice) -> Iterator[Raw]:
    """The best partners of the records of `task`: those with enough of them at a high threshold
    are done first, and cheaply."""
    rows = task.places.rows
    for delta in (*(d for d in ROUNDS if d > choice.delta), choice.delta):
        if not rows.size:
            return
        easy = task_of(prepared, choice, delta)
        easy.only(rows)
        found = _best_of(list(gpu.run(easy, how)), prepared, choice)
        count(choice, easy)
        enough = np.bincount(found.left, minlength=prepared.records[0].starts.size)
        done = enough >= ((choice.per_left or 1) if delta > choice.delta else 0)
        yield Raw(*(array[done[found.left]] for array in found))
        rows = rows[~done[rows]]


def _best_of(raws: list[Raw], prepared: Any, choice: Choice) -> Raw:
    """The first `per_left` pairs of each left record, by score and then by row."""
    empty = BREAK
    left, right, weight = (np.concatenate([empty[i], *(raw[i] for raw in raws)]) for i in range(3))
    sizes = prepared.sizes
    order = by_score(weight, sizes[0][left] + sizes[1][right], left, right)
    order = order[np.argsort(left[order], kind="stable")]
    starts = np.searchsorted(left[order], left[order], "left")
    kept = order[np.arange(order.size) - starts < (choice.per_left or 1)]
    return Raw(left[kept], right[kept], weight[kept])


def _refuse(prepared: Any, choice: Choice) -> None:
    if prepared.similarity not in SIMILARITIES:
        raise EngineUnavailable(
            f"{choice.caller}: the GPU engine has the similarities 'jaccard' and 'equal', got "
            f"{prepared.similarity!r}; use engine='cpu'"
        )
    if choice.verify != "certified":
        raise EngineUnavailable(
            f"{choice.caller}: the GPU engine has verify='certified', got {choice.verify!r}; "
            "use engine='cpu'"
        )

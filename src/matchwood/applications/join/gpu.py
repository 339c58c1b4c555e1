"""The join on the GPU: a block finds the candidates of a record, a warp verifies a pair.

Jaccard similarity of grams, or equality of elements, with certified verification.  Other choices
are refused, never computed silently on another engine.

The arrays of a collection are copied to the device once and stay.  Left records are processed in
parts whose pairs fit the memory; only pairs are copied back.  The kernels: gpu.cu.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.join import STEP, Choice, Raw, together
from matchwood.applications.join.cpu import (
    NAMES,
    Task,
    count,
    how_of_choice,
    joined,
    task_of,
)
from matchwood.applications.join.result import by_left
from matchwood.applications.join.similarity.cpu import JACCARD
from matchwood.engines import gpu
from matchwood.errors import EngineUnavailable

SOURCE = gpu.Source(__package__, "gpu.cu", ("gather", "verify"))
BLOCK, WARP, COUNTS = SOURCE.constants("BLOCK", "WARP", "COUNTS")
SIMILARITIES = ("jaccard", "equal")
FIRST_ROOM = 1 << 22  # pairs, before anything is known: 64 MB
SHARE_OF_MEMORY = 4  # at most a quarter of the free memory holds pairs
PAIR_BYTES = 4 + 4 + 8
MOST_BYTES = 1 << 32  # that warps work in; fewer warps run at once where pairs are large
RULE = np.dtype(
    [("share", "f8"), ("prefix", "f8")]
    + [(name, "i4") for name in ("itself", "once", "unequal", "scores", "fuzzy", "filler")]
)  # struct Rule of gpu.cu


def blocks(prepared: Any, choice: Choice, whole: bool) -> Iterator[Raw]:
    """The pairs of a join, in parts; the same parts as those of the CPU engine."""
    refuse(prepared, choice)
    return joined(prepared, choice, whole, False, _all_pairs, _best_per_left)


def _all_pairs(task: Task, how: Any, choice: Choice, costs: Any) -> Iterator[Raw]:
    return run(task, how)


def above(prepared: Any, choice: Choice, delta: float, raise_to: Any, sample: Any) -> Iterator[Raw]:
    """Pairs of at least `delta`, for the best k: of all left records, or of a sample."""
    refuse(prepared, choice)
    task = task_of(prepared, choice, delta, near=STEP)
    if sample is not None:
        sample(task)
    yield from run(task, how_of_choice(prepared, choice))
    count(choice, task)


def _best_per_left(task: Task, how: Any, choice: Choice) -> Iterator[Raw]:
    """The first `per_left` pairs of each left record, by score and then by row."""
    left, right, weight = together(list(run(task, how)))
    sizes = task.prepared.sizes
    order = by_left(left, right, weight, sizes[0][left] + sizes[1][right])
    starts = np.searchsorted(left[order], left[order], "left")
    kept = order[np.arange(order.size) - starts < (choice.per_left or 1)]
    yield Raw(left[kept], right[kept], weight[kept])


def refuse(prepared: Any, choice: Choice) -> None:
    """Raise EngineUnavailable for what the GPU engine has not."""
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


# Candidates, part by part


def run(task: Any, how: Any) -> Iterator[Raw]:
    """The pairs of a task, part by part; the same pairs and weights as `Task.run` yields.

    Where every record is a left one, the record that was probed is on the left.
    """
    cupy = engines.cupy()
    resident = task.prepared.keep("gpu", Resident)
    corpus = corpus_of(resident, task.corpus, task.places)
    rule = rule_of(task, how)
    known = task.prepared.keep("gpu room", dict)
    waiting = [(0, int(task.places.rows.size))]
    while waiting:
        first, last = waiting.pop()
        if first == last:
            continue
        task.watch.go_on()
        room = _room(known.get((task.rule.share, first, last), FIRST_ROOM))
        counts = cupy.zeros(COUNTS, np.uint64)
        pairs = tuple(
            gpu.empty(room, kind, "fuzzy_join") for kind in (np.int32, np.int32, np.int64)
        )
        wanted = _gather(corpus, rule, (first, last), pairs, counts)
        task.watch.lap("gather")
        if wanted > room:
            known[task.rule.share, first, last] = wanted
            if wanted > _room(wanted):  # it will not fit: two halves
                middle = (first + last) // 2
                if middle == first:
                    gpu.reserve(wanted * PAIR_BYTES, "fuzzy_join")
                waiting += [(first, middle), (middle, last)]
            else:
                waiting.append((first, last))
            continue
        found = tuple(array[:wanted] for array in pairs)
        verify(corpus, rule, found, cupy.flatnonzero(found[2] < 0), task.prepared.largest, counts)
        kept = cupy.flatnonzero(found[2] > 0)
        counted = counts.get()
        task.watch.lap("verify")
        for name, place in NAMES.items():
            task.counts[place] += int(counted[SOURCE.constant(name.upper())])
        yield Raw(*(array[kept].get() for array in found))


def _room(wanted: int) -> int:
    """The number of pairs to make room for: `wanted`, or as many as the memory's share holds."""
    return max(1, min(wanted, gpu.free_bytes() // SHARE_OF_MEMORY // PAIR_BYTES))


def _gather(corpus: Any, rule: Any, items: tuple[int, int], pairs: Any, counts: Any) -> int:
    """Write the filtered candidates of the items.  Returns the number of places they need."""
    cupy = engines.cupy()
    kernel = SOURCE.kernels().gather
    cursor, used = cupy.zeros(1, np.int32), cupy.zeros(1, np.uint64)
    blocks = min(items[1] - items[0], kernel.resident(BLOCK))
    kernel(
        None,
        (corpus.words, rule, *items, cursor, *pairs, used, pairs[0].size, counts),
        block=BLOCK,
        grid=blocks,
    )
    return int(used[0])


# Verification


def verify(
    corpus: Any,
    rule: Any,
    pairs: tuple[Any, Any, Any],
    which: Any,
    most: tuple[int, int],
    counts: Any,
) -> None:
    """Write the weights of the pairs (left, right, weight) at the places `which`.

    `most`: elements of the largest record on either side.
    """
    if which.size == 0:
        return
    larger, pairs_room = max(most), most[0] * most[1]
    # as `lay_out` in gpu.cu has it: 8-byte numbers, then 4-byte ones
    stride = pairs_room + 5 * larger + 3 + (5 * larger + 3 + 1) // 2 + 1
    kernel = SOURCE.kernels().verify
    warps = min(int(which.size), kernel.resident(BLOCK) * (BLOCK // WARP))
    warps = max(1, min(warps, MOST_BYTES // (8 * stride)))
    blocks = -(-warps * WARP // BLOCK)
    slab = gpu.empty(blocks * (BLOCK // WARP) * stride, np.int64, "fuzzy_join")
    kernel(
        None,
        (corpus.words, rule, which, which.size, *pairs, slab, stride, pairs_room, larger, counts),
        block=BLOCK,
        grid=blocks,
    )
    engines.cupy().cuda.get_current_stream().synchronize()  # the slab goes back to the pool


# The arrays, copied once for a collection; their addresses for kernels


class Corpus(NamedTuple):
    """`words` are the addresses, in the order of struct Corpus; `arrays` keeps them alive."""

    words: Any
    arrays: tuple[Any, ...]


class Resident:
    """GPU copies of host arrays; what is copied once stays as long as the host array is in use."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[np.ndarray, Any]] = {}
        self._used: set[int] = set()

    def copy(self, array: np.ndarray) -> Any:
        """The array on the GPU."""
        key = id(array)
        if key not in self._copies or self._copies[key][0] is not array:
            self._copies[key] = array, engines.cupy().asarray(np.ascontiguousarray(array))
        self._used.add(key)
        return self._copies[key][1]

    def forget_unused(self) -> None:
        """Drop arrays not used since the last call: the index of another delta."""
        self._copies = {key: self._copies[key] for key in self._used}
        self._used = set()


def corpus_of(resident: Resident, corpus: Any, places: Any) -> Corpus:
    """Both sides, lists, index and places, as struct Corpus has them."""
    arrays = (
        *corpus.elements[:2], *corpus.left, *corpus.right, *corpus.left_lists, *corpus.right_lists,
        *corpus.index, corpus.nearest, places.rows, places.lows, places.highs, places.right_rows,
    )  # fmt: skip
    copies = [resident.copy(array) for array in arrays]
    cupy = engines.cupy()
    sizes = np.diff(corpus.right.starts)[places.right_rows].astype(np.int32)
    copies.append(cupy.asarray(sizes))
    resident.forget_unused()
    addresses = np.array([array.data.ptr for array in copies], np.uint64)
    return Corpus(cupy.asarray(addresses), tuple(copies))


def rule_of(task: Task, how: Any) -> Any:
    """struct Rule, as bytes on the GPU."""
    made = np.zeros(1, RULE)
    rule = task.rule
    made["share"], made["prefix"] = rule.share, rule.prefix
    made["itself"], made["once"], made["unequal"] = rule.itself, task.once, rule.unequal
    made["scores"], made["fuzzy"] = how.scores, how.similarity == JACCARD
    return engines.cupy().asarray(made.view(np.uint8))

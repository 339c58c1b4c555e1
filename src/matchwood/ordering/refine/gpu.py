"""Refinement on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.ordering.gap import table
from matchwood.ordering.permutation import sorted_places
from matchwood.primitives.transpose.gpu import expand_rows

SOURCE = gpu.Source(__package__, "gpu.cu", ("evaluate<I>", "choose<I>", "complete<I>"))
BLOCK, WARP, AROUND, ROUNDS = SOURCE.constants("BLOCK", "WARP", "AROUND", "ROUNDS")
START, LEFT, ROUND, KEPT, STOP, WORDS = SOURCE.constants(
    "START", "LEFT", "ROUND", "KEPT", "STOP", "WORDS"
)
PAIRS = 1 << 22  # pairs of a launch; Ctrl-C takes effect between launches
WINDOW = 1 << 15  # swaps that are tried together
CYCLES = 100_000_000  # clock cycles of a launch, some 50 ms, for the same reason
CALLER = "refine_order"


def refine(
    view: Any, place: Any, chosen: Any, metric: str, median: bool, limit: int | None, *,
    threads: int | None = None,
) -> tuple[Any, int, int, int]:  # fmt: skip
    """Memory: 28 bytes for each entry, most of it the sort's, and 16 for each pair."""
    if chosen.size == 0:
        return place, 0, 0, 1
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    with gpu.guard(CALLER, view.nnz * (24 + kind.itemsize)):
        rows = expand_rows(view.indptr, view.nnz)
        near = sorted_places(CALLER, n, rows, place[view.indices])
        del rows
    logs = cupy.asarray(table()) if metric == "log_gap" else None
    state = _pairs(cupy, view, chosen, median)
    order = (view.indptr, view.indices, place, near)
    proposed = kept = done = 0
    while limit is None or done < limit:
        done += 1
        if median:
            state.vertex[place] = cupy.arange(n, dtype=kind)
        first, second = _desires(cupy, n, chosen, order, logs, state)
        if first.size == 0:
            break
        proposed += int(first.size)
        kept += _completed(cupy, n, first, second, order, logs)
    return place, proposed, kept, done


def _pairs(cupy: Any, view: Any, chosen: Any, median: bool) -> Any:
    """All pairs of a chosen vertex and a partner, one after the other."""
    n, kind = view.n, view.indptr.dtype
    counts = (view.indptr[chosen + 1] - view.indptr[chosen]).astype(np.int64)
    counts += AROUND if median else 0
    starts = cupy.cumsum(counts) - counts
    items = int(counts.sum())
    with gpu.guard(CALLER, items * (8 + 2 * kind.itemsize)):
        marks = cupy.zeros(items, kind)
        marks[starts[1:]] = 1
        return SimpleNamespace(
            starts=starts,
            items=items,
            owner=cupy.cumsum(marks, dtype=kind),
            gain=cupy.empty(items, np.int64),
            vertex=cupy.empty(n, kind) if median else None,
        )


def _desires(
    cupy: Any, n: int, chosen: Any, order: tuple[Any, ...], logs: Any, state: Any
) -> tuple[Any, Any]:
    """The swaps that chosen vertices ask for, in their order."""
    k = SOURCE.kernels("evaluate", "choose", I=chosen.dtype)
    best = cupy.zeros(chosen.size, np.uint64)
    partner = cupy.full(chosen.size, n, chosen.dtype)
    pairs = (chosen, state.starts, state.owner, state.vertex)
    for first in range(0, state.items, PAIRS):
        last = min(first + PAIRS, state.items)
        k.evaluate(
            (last - first) * WARP, (n, first, last, *pairs, *order, logs, state.gain, best),
            block=BLOCK,
        )  # fmt: skip
        cupy.cuda.get_current_stream().synchronize()
    k.choose(state.items, (n, state.items, *pairs, *order, state.gain, best, partner))
    here = cupy.flatnonzero(partner < n)
    return chosen[here], partner[here]


def _completed(
    cupy: Any, n: int, first: Any, second: Any, order: tuple[Any, ...], logs: Any
) -> int:
    """Do the swaps that still gain; returns their number."""
    k = SOURCE.kernels("complete", I=first.dtype).complete
    swaps = int(first.size)
    with gpu.guard(CALLER, 16 * n + swaps):
        claims = cupy.full(2 * n, np.iinfo(np.uint64).max, np.uint64)
        done = cupy.zeros(swaps, np.uint8)
        words = cupy.zeros(WORDS, np.uint64)
        words[LEFT], words[ROUND] = min(WINDOW, swaps), 1
        while True:
            k(
                min(WINDOW, swaps) * WARP,
                (n, swaps, WINDOW, first, second, *order, logs, claims, done, CYCLES, words),
                block=BLOCK,
                cooperative=True,
            )
            found = words.get()
            if int(found[START]) >= swaps:
                return int(found[KEPT])
            words[STOP] = 0
            if int(found[ROUND]) > ROUNDS // 2:
                words[ROUND] = 1
                claims.fill(np.iinfo(np.uint64).max)

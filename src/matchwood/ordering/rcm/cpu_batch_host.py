"""The batch methods from outside: their arrays, and what was counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.rcm.batch.cpu import SLOT, order_batch
from matchwood.ordering.rcm.batch_basic.cpu import order_batch_basic
from matchwood.ordering.rcm.cpu_batch_work import PARENT_WEIGHT, ROW, Tuning
from matchwood.ordering.rcm.cpu_board import (
    COUNTERS,
    COUNTS,
    FILLED,
    GENERATED,
    IN_DISCOVER,
    IN_STALL,
    LINE,
    SHARED,
    STAGES,
)
from matchwood.ordering.rcm.cpu_sort import scattered
from matchwood.ordering.rcm.serial.cpu import CODE, END, LEVELS, PLACED, WHOLE
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]


def order(run: Any, start: int, queue: Array, at: int, limit: int, basic: bool) -> None:
    """Host side of both methods; `run` is cpu.Run."""
    team, n = run.team, run.n
    keys, other, bins = run.sorting(team.size)
    tuning: Tuning = run.tuning
    slots = 1 if basic else tuning.slots
    most = tuning.batches(n, int(run.indices.size)) + (n if basic else 0)
    counts = np.zeros((team.size, COUNTS), np.uint64)
    counts[0, GENERATED] = 1  # the one that holds the start
    shared = np.zeros(SHARED, np.uint64)
    board = scattered((most * LINE,), np.uint64)
    claim = np.empty(n, run.unsigned)
    lists = scattered((team.size, slots, tuning.room), run.unsigned)
    ends = scattered((team.size, slots, tuning.parents()), np.uint64)
    wide = np.empty(n, run.unsigned)
    begin = (run.indptr, run.indices, run.unsigned(start), queue, np.uint64(at))
    shift, loads = np.uint64(run.shift), np.zeros(16 * team.size, np.uint64)
    sizes = tuning.sizes(team.size, n, int(run.indices.size), run.longest)
    first = sizes[ROW] or run.indptr[start + 1] - run.indptr[start]
    loads[0] = PARENT_WEIGHT + np.uint64(first)
    if basic:
        team.run(
            order_batch_basic, *begin, shift, sizes, claim, board, lists, ends,
            wide, keys, other, bins, shared, loads, counts, run.stats, run.delays,
        )  # fmt: skip
    else:
        team.run(
            order_batch, *begin, np.uint64(limit), shift, sizes, claim, board, lists, ends,
            wide, np.empty(tuning.parents(), np.uint64), keys, other, bins,
            np.zeros((team.size, slots, SLOT), np.uint64), shared, loads, counts,
            run.stats, run.delays, run.reverse,
        )  # fmt: skip
    end = int(shared[FILLED])
    run.reversed = run.reverse and not basic and end == n
    if end < n:
        run.mark[queue[at:end]] = PLACED
    run.facts[END], run.facts[CODE] = end, WHOLE
    if run.stats:
        _report(run, start, counts)


def _report(run: Any, start: int, counts: Array) -> None:
    """Counters of all members; shares of time; levels, which batches know nothing of."""
    from matchwood import csr

    total = counts.sum(axis=0)
    for k, name in enumerate(COUNTERS):
        run.counters[name] = run.counters.get(name, 0) + int(total[k])
    spent = total[IN_DISCOVER : IN_STALL + 1].astype(float)
    for name, share in zip(STAGES, spent / max(1.0, spent.sum()), strict=True):
        run.counters[name] = float(share)
    G = csr.as_graph((run.indptr, run.view.indices), "reverse_cuthill_mckee", index_dtype=run.kind)
    run.facts[LEVELS] = bfs(G, start, threads=run.team.size).rounds + 1

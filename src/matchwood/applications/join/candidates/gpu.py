"""The join on the GPU: a block finds the candidates of a record, a warp verifies a pair.

Everything that a collection needs is copied once and stays.  The left records go through in parts
whose pairs fit the memory; only pairs come back.  The kernels: gpu.cu and ../verification/gpu.cu.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.join.candidates import cpu
from matchwood.applications.join.candidates.cpu_run import Raw
from matchwood.applications.join.gpu_corpus import Resident, corpus_of, rule_of
from matchwood.applications.join.similarity.cpu_phi import JACCARD
from matchwood.applications.join.verification.gpu import verify
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("gather",))
BLOCK, COUNTS = SOURCE.constants("BLOCK", "COUNTS")
FIRST_ROOM = 1 << 22  # pairs, before anything is known: 64 MB
SHARE_OF_MEMORY = 4  # one part in so many of the free memory may hold pairs
PAIR_BYTES = 4 + 4 + 8
# what a kernel counts, and where the CPU engine counts it
COUNTED = {
    "GENERATED": cpu.GENERATED,
    "REFINED": cpu.REFINED,
    "VERIFIED": cpu.VERIFIED,
    "ACCEPTED_BY_BOUND": cpu.ACCEPTED_BY_BOUND,
    "REJECTED_BY_BOUND": cpu.REJECTED_BY_BOUND,
    "SOLVED_EXACTLY": cpu.SOLVED_EXACTLY,
}


def run(task: Any, how: Any) -> Iterator[Raw]:
    """The pairs of a task, part by part; the same pairs and weights as `Task.run` yields.

    Where every record is a left one, the record that was probed is on the left.
    """
    for left, right, weight in pairs_on_device(task, how):
        yield Raw(left.get(), right.get(), weight.get())


def pairs_on_device(task: Any, how: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The same as GPU arrays."""
    cupy = engines.cupy()
    resident = task.prepared.keep("gpu", Resident)
    corpus = corpus_of(resident, task.corpus, task.places)
    rule = rule_of(task.rule, task.once, how, how.similarity == JACCARD)
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
        for name, place in COUNTED.items():
            task.counts[place] += int(counted[SOURCE.constant(name)])
        yield tuple(array[kept] for array in found)


def _room(wanted: int) -> int:
    """Pairs to make room for: those wanted, or as many as a part of the memory holds."""
    return max(1, min(wanted, gpu.free_bytes() // SHARE_OF_MEMORY // PAIR_BYTES))


def _gather(corpus: Any, rule: Any, items: tuple[int, int], pairs: Any, counts: Any) -> int:
    """Candidates of the items, filtered.  How many places they want."""
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

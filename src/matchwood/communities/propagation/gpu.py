"""Label propagation on the GPU.  Kernels: gpu.cu; the rule: reference.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.communities.propagation.reference import SPLIT_ROUNDS, Plan
from matchwood.communities.subrounds.gpu import (
    BLOCK,
    COUNTS,
    Turns,
    blocks_of,
    count_type,
    turns_of,
)
from matchwood.communities.weights import Level
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__, "gpu.cu", ("split_round<I,C>", "careful_round<I,C>"), types={"C": COUNTS}
)
CALLER = "label_propagation"


def propagate(level: Level, plan: Plan, threads: int | None = None) -> tuple[Any, int]:
    """See reference.propagate.  A launch for each round, between which Ctrl-C takes effect."""
    cupy = engines.cupy()
    n, kind = level.n, level.indices.dtype
    labels = cupy.arange(n, dtype=kind)
    if level.indices.size == 0 or plan.max_rounds == 0:
        return labels, 0
    k = SOURCE.kernels(I=kind, C=count_type(level))
    turns = turns_of(level, plan.seed, CALLER)
    size = None if plan.gamma == 0 else cupy.ones(n, np.int32)
    state = (labels, size, cupy.ones(n, np.uint8), labels.copy(), float(plan.gamma))
    first, gate = gpu.empty(n, np.uint8, CALLER), cupy.zeros(2, np.uint32)
    moved = gpu.Flag(1, np.uint64)
    for number in range(plan.max_rounds):
        moved.clear()
        if number < SPLIT_ROUNDS:
            turns.deal(number)
            _split(k.split_round, turns, state, (gate, moved))
        else:
            if number == SPLIT_ROUNDS:
                turns = turns_of(level, plan.seed, CALLER, parts=1)
                turns.deal(number)
            _careful(k.careful_round, turns, state, first, (gate, moved))
        moved.fetch()
        if moved.read() <= plan.enough(n):
            return labels, number + 1
    return labels, plan.max_rounds


def _split(kernel: Any, turns: Turns, state: Any, words: Any) -> None:
    level = turns.level
    blocks = blocks_of(kernel, level, turns.parts)
    kernel(
        None,
        (
            level.indptr, level.indices, level.data, turns.parts, turns.order, turns.begins,
            *state, *turns.hubs, *words,
        ),
        block=BLOCK,
        grid=blocks,
        cooperative=True,
    )  # fmt: skip


def _careful(kernel: Any, turns: Turns, state: Any, first: Any, words: Any) -> None:
    level = turns.level
    blocks = blocks_of(kernel, level, 1)
    kernel(
        None,
        (
            level.indptr, level.indices, level.data, turns.order, turns.begins,
            *state, first, *turns.hubs, *words,
        ),
        block=BLOCK,
        grid=blocks,
        cooperative=True,
    )  # fmt: skip

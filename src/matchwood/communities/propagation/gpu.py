"""Label propagation on the GPU.  Kernels: gpu.cu; the rule: reference.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.communities.propagation.reference import SPLIT_ROUNDS, Plan
from matchwood.communities.subrounds.gpu import (
    BLOCK,
    COUNTS,
    Turns,
    blocks_of,
    count_type,
    rows_of,
    turns_of,
)
from matchwood.communities.weights import Level
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__, "gpu.cu", ("split_round<I,C>", "careful_round<I,C>"), types={"C": COUNTS}
)
CALLER = "label_propagation"


class Heaviest(NamedTuple):
    labels: Any
    size: Any
    active: Any
    target: Any
    gamma: float


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
    rule = Heaviest(labels, size, cupy.ones(n, np.uint8), labels.copy(), float(plan.gamma))
    first, gate = gpu.empty(n, np.uint8, CALLER), cupy.zeros(2, np.uint32)
    moved = gpu.Flag(1, np.uint64)
    for number in range(plan.max_rounds):
        moved.clear()
        if number < SPLIT_ROUNDS:
            turns.deal(number)
            _launch(k.split_round, turns, (turns.parts,), (rule,), gate, moved)
        else:
            if number == SPLIT_ROUNDS:
                turns = turns_of(level, plan.seed, CALLER, parts=1)
                turns.deal(number)
            _launch(k.careful_round, turns, (), (rule, first), gate, moved)
        moved.fetch()
        if moved.read() <= plan.enough(n):
            return labels, number + 1
    return labels, plan.max_rounds


def _launch(kernel: Any, turns: Turns, parts: Any, rule: Any, gate: Any, moved: Any) -> None:
    blocks = blocks_of(kernel, turns.level, turns.parts)
    where = (*parts, turns.order, turns.begins)
    arguments = (rows_of(turns.level), *where, *rule, turns.hubs, gate, moved)
    kernel(None, arguments, block=BLOCK, grid=blocks, cooperative=True)

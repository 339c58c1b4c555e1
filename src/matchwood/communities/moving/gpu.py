"""Moving vertices between communities on the GPU.  Kernels: gpu.cu, gpu_refine.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.communities.gpu_subrounds import BLOCK, blocks_of, turns_of
from matchwood.communities.moving.plan import REFINEMENT, Limit, Plan
from matchwood.communities.weights import Level

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("start_moving<I>", "move_round<I>", "join_inside<I>", "flatten_parts<I>"),
)
REFINE = gpu.Source(__package__, "gpu_refine.cu", ("start_parts<I>", "join_parts<I>"))
WARP = SOURCE.constant("WARP")
CALLER = "communities"


def move(level: Level, labels: Any, plan: Plan, limit: Limit, threads: int | None = None) -> int:
    """See reference.move.  A launch for each round, between which Ctrl-C is heard."""
    n, kind = level.n, level.indices.dtype
    if level.indices.size == 0 or limit.rounds == 0:
        return 0
    k = SOURCE.kernels(I=kind)
    turns = turns_of(level, plan.seed, CALLER)
    blocks = blocks_of(k.move_round, level, turns.parts)
    space = gpu.workspace(
        CALLER,
        volume=(n, np.int64),
        size=(n, np.int32),
        active=(n, np.uint8),
        target=(n, kind),
        gate=(2, np.uint32),
    )
    moved = gpu.Flag(1, np.uint64)
    for array in (space.volume, space.size, space.gate):
        array.data.memset_async(0, array.nbytes)
    state = (labels, level.strength, space.volume, space.size, space.active, space.target)
    k.start_moving(n, (n, *state))
    for number in range(limit.rounds):
        turns.deal(number)
        moved.clear()
        k.move_round(
            None,
            (
                level.indptr, level.indices, level.data, turns.parts, turns.order, turns.begins,
                *state, float(plan.resolution), float(level.total), *turns.hubs, space.gate, moved,
            ),
            block=BLOCK,
            grid=blocks,
            cooperative=True,
        )  # fmt: skip
        moved.fetch()
        if moved.read() <= limit.enough(level.tied):
            return number + 1
    return limit.rounds


def refine(level: Level, labels: Any, plan: Plan, threads: int | None = None) -> Any:
    """See reference.refine."""
    n, kind = level.n, level.indices.dtype
    part = gpu.empty(n, kind, CALLER)
    if level.indices.size == 0:
        part[...] = engines.cupy().arange(n, dtype=kind)
        return part
    k = REFINE.kernels(I=kind)
    turns = turns_of(level, plan.seed, CALLER)
    blocks = blocks_of(k.join_parts, level, turns.parts)
    space = gpu.workspace(
        CALLER,
        inside=(n, np.int64),
        volume=(n, np.int64),
        size=(n, np.int32),
        outward=(n, np.int64),
        whole=(n, np.int64),
        target=(n, kind),
        before=(n, np.int64),
        gate=(2, np.uint32),
    )
    for array in (space.whole, space.gate):
        array.data.memset_async(0, array.nbytes)
    rows = (level.indptr, level.indices, level.data)
    state = (
        labels, level.strength, space.inside, part, space.volume, space.size, space.outward,
        space.whole, space.target,
    )  # fmt: skip
    k.start_parts(n * WARP, (n, *rows, *state))
    turns.deal(REFINEMENT)
    scale = plan.resolution / float(level.total) if level.total else 0.0
    k.join_parts(
        None,
        (
            *rows, turns.parts, turns.order, turns.begins, *state, space.before, scale,
            turns.start, REFINEMENT, *turns.hubs, space.gate,
        ),
        block=BLOCK,
        grid=blocks,
        cooperative=True,
    )  # fmt: skip
    return part


def split(level: Level, labels: Any, threads: int | None = None) -> tuple[int, Any]:
    """See reference.split."""
    cupy = engines.cupy()
    n, kind = level.n, level.indices.dtype
    k = SOURCE.kernels(I=kind)
    with gpu.guard(CALLER, 4 * n * kind.itemsize):
        parent = cupy.arange(n, dtype=kind)
        k.join_inside(n * WARP, (n, level.indptr, level.indices, labels, parent))
        k.flatten_parts(n, (n, parent))
        is_root = parent == cupy.arange(n, dtype=kind)
        number = cupy.cumsum(is_root, dtype=kind) - 1
        return int(is_root.sum()), number[parent].astype(kind, copy=False)

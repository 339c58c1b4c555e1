"""Moving vertices between communities on the GPU.  Kernels: gpu.cu; the rule: reference.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.communities.louvain_leiden.reference import REFINEMENT, Limit, Plan
from matchwood.communities.subrounds import SMALL_VERTICES, subrounds_of
from matchwood.communities.subrounds.gpu import (
    BLOCK,
    CLASSES,
    COUNTS,
    MEDIUM_ROW,
    blocks_of,
    count_type,
    turns_of,
)
from matchwood.communities.weights import Level
from matchwood.engines import gpu
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.reference import mix64_number

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "start_moving<I>", "move_round<I,C>", "move_rounds<I,C>", "move_small<I,C>",
        "join_inside<I>", "flatten_parts<I>", "start_parts<I>", "join_parts<I,C>",
    ),
    types={"C": COUNTS},
)  # fmt: skip
WARP, SMALL_BLOCK, WARP_SLOTS = SOURCE.constants("WARP", "SMALL_BLOCK", "WARP_SLOTS")
ONE_BLOCK_SIZE = 1 << 18  # entries and vertices that one block moves; with more, many are faster
ROUNDS_PER_LAUNCH = 32
ENTRIES_PER_LAUNCH = 1 << 31  # half a second or so; Ctrl-C takes effect between launches
CALLER = "communities"


def move(level: Level, labels: Any, plan: Plan, limit: Limit, threads: int | None = None) -> int:
    """See reference.move.  Ctrl-C takes effect between launches."""
    n, kind = level.n, level.indices.dtype
    if level.indices.size == 0 or limit.rounds == 0:
        return 0
    space = gpu.workspace(
        CALLER,
        volume=(n, np.int64),
        size=(n, np.int32),
        active=(n, np.uint8),
        target=(n, kind),
        gate=(2, np.uint32),
    )
    for array in (space.volume, space.size, space.gate):
        array.data.memset_async(0, array.nbytes)
    state = (labels, level.strength, space.volume, space.size, space.active, space.target)
    SOURCE.kernels("start_moving", I=kind).start_moving(n, (n, *state))
    rule = (*state, float(plan.resolution), float(level.total))
    moving = _move_with_hubs if level.longest > MEDIUM_ROW else _move_alike
    return moving(level, plan, limit, rule, space.gate)


def _move_with_hubs(level: Level, plan: Plan, limit: Limit, rule: Any, gate: Any) -> int:
    """Move with a launch for each round."""
    k = SOURCE.kernels("move_round", I=level.indices.dtype, C=count_type(level))
    turns = turns_of(level, plan.seed, CALLER)
    blocks = blocks_of(k.move_round, level, turns.parts)
    moved = gpu.Flag(1, np.uint64)
    for number in range(limit.rounds):
        turns.deal(number)
        moved.clear()
        k.move_round(
            None,
            (
                level.indptr, level.indices, level.data, turns.parts, turns.order, turns.begins,
                *rule, *turns.hubs, gate, moved,
            ),
            block=BLOCK,
            grid=blocks,
            cooperative=True,
        )  # fmt: skip
        moved.fetch()
        if moved.read() <= limit.enough(level.tied):
            return number + 1
    return limit.rounds


def _move_alike(level: Level, plan: Plan, limit: Limit, rule: Any, gate: Any) -> int:
    """Move with several rounds in a launch, where no row is too long for a block."""
    kind, count = level.indices.dtype, np.dtype(count_type(level))
    parts, enough = subrounds_of(level.n), limit.enough(level.tied)
    pairs, entries = parts * CLASSES, level.n + int(level.indices.size)
    shared = (2 * pairs + 1) * kind.itemsize + 4 * pairs
    most = min(max(ENTRIES_PER_LAUNCH // entries, 1), ROUNDS_PER_LAUNCH, limit.rounds)
    moved = gpu.Flag(most + 1, np.uint64)  # a word more, so that there are always several
    is_small = level.n < SMALL_VERTICES and entries <= ONE_BLOCK_SIZE
    name = "move_small" if is_small else "move_rounds"
    kernel = getattr(SOURCE.kernels(name, I=kind, C=count), name)
    if is_small:
        shared += WARP_SLOTS * (SMALL_BLOCK // WARP) * (kind.itemsize + count.itemsize)
        block, blocks, words = SMALL_BLOCK, 1, [moved]
    else:
        block, blocks, words = BLOCK, blocks_of(kernel, level, parts, shared), [gate, moved]
    counts = engines.cupy().zeros(pairs, kind)
    order = gpu.empty(level.n, kind, CALLER)
    rows = (level.n, level.indptr, level.indices, level.data)
    first = 0
    while first < limit.rounds:
        rounds = min(most, limit.rounds - first)
        moved.clear()
        how = (parts, mix64_number(plan.seed + GOLDEN), first, rounds, enough)
        kernel(
            None, (*rows, *how, order, counts, *rule, *words),
            block=block, grid=blocks, shared_mem=shared, cooperative=not is_small,
        )  # fmt: skip
        moved.fetch()
        found = moved.read()
        for r in range(rounds):
            first += 1
            if found[r] <= enough:
                return first
    return limit.rounds


def refine(level: Level, labels: Any, plan: Plan, threads: int | None = None) -> Any:
    """See reference.refine."""
    n, kind = level.n, level.indices.dtype
    part = gpu.empty(n, kind, CALLER)
    if level.indices.size == 0:
        part[...] = engines.cupy().arange(n, dtype=kind)
        return part
    k = SOURCE.kernels("start_parts", "join_parts", I=kind, C=count_type(level))
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
    k = SOURCE.kernels("join_inside", "flatten_parts", I=kind)
    with gpu.guard(CALLER, 4 * n * kind.itemsize):
        parent = cupy.arange(n, dtype=kind)
        k.join_inside(n * WARP, (n, level.indptr, level.indices, labels, parent))
        k.flatten_parts(n, (n, parent))
        is_root = parent == cupy.arange(n, dtype=kind)
        number = cupy.cumsum(is_root, dtype=kind) - 1
        return int(is_root.sum()), number[parent].astype(kind, copy=False)

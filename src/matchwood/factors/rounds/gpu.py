"""[0,n]-factors on the GPU.  Kernel: gpu.cu; the idea and the paper: __init__.py.

All rounds are one launch: the blocks of the grid wait for each other between the halves of a round.
A launch from Python takes longer than a late round of a graph with millions of vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.factors.result import FactorArrays, Plan
from matchwood.primitives.row_reduce.gpu import Tiles

PLACES = (1, 2, 4, 8)  # neighbours of a vertex that a kernel has room for
ROUNDS_PER_LAUNCH = 64  # rounds of a launch at most; Ctrl-C takes effect between launches
TILE_SIZE = 2048  # rows and entries; 1024 was slower by a fifth: bench/factors/factor_gpu.py

Keep = Callable[[str, Callable[[], Any]], Any] | None

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "rounds1 = rounds<I,V,1,false,T>",
        "rounds2 = rounds<I,W,2,false,T>",
        "rounds4 = rounds<I,V,4,false,T>",
        "rounds8 = rounds<I,V,8,false,T>",
        "rounds1_by_hash = rounds<I,V,1,true,T>",
        "rounds2_by_hash = rounds<I,V,2,true,T>",
        "rounds4_by_hash = rounds<I,V,4,true,T>",
        "rounds8_by_hash = rounds<I,V,8,true,T>",
    ),
    # The types that the compile test builds.  T: the size of the tiles.  V is W in one type only,
    # since these kernels take long to compile.
    types={"T": (str(TILE_SIZE),), "V": (np.float64,)},
)

BLOCK = SOURCE.constant("PROPOSAL_BLOCK")
# What a launch does, and the words that it leaves for the host.
BEGIN, PROPOSE, CONFIRM, SETTLE = SOURCE.constants("BEGIN", "PROPOSE", "CONFIRM", "SETTLE")
STOP, ROUNDS, IDLE, WORDS = SOURCE.constants("STOP", "ROUNDS", "IDLE", "WORDS")


class Rounds:
    """The arrays of one factor on the GPU, and its rounds."""

    def __init__(self, view: Any, plan: Plan, tiles: Tiles) -> None:
        if plan.n > PLACES[-1]:
            raise ValueError(
                f"degree_factor: n must be at most {PLACES[-1]} on the GPU, got {plan.n}; "
                "use engine='cpu' for more"
            )
        self.view, self.plan, self.tiles = view, plan, tiles
        rows, kind, values = view.n, view.indices.dtype, view.data.dtype
        places = min(places for places in PLACES if places >= plan.n)
        words = -(-rows // 32)
        needs = rows * plan.n * (kind.itemsize + values.itemsize) + rows + 8 * words
        gpu.reserve(needs + tiles.count * values.itemsize, "degree_factor")
        self.neighbours = gpu.empty((rows, plan.n), kind, "degree_factor")
        self.weights = gpu.empty((rows, plan.n), values, "degree_factor")
        space = gpu.workspace(
            "degree_factor",
            state=(words, np.uint64),
            confirmed=(rows, np.uint8),
            common=(tiles.count, values),
        )
        scratch = tiles.scratch(24 * places)  # bytes of the best of a chunk, at most
        partials = chunks_done = None
        if scratch is not None:
            partials, chunks_done = scratch.partials, scratch.chunks_done
            chunks_done.data.memset_async(0, chunks_done.nbytes)
        # a first round without charges reads no states, so that nothing needs to be prepared for it
        self.fresh = not plan.charged(0)
        # rounds in a row that confirm nothing; -1: any number
        self.most_idle = plan.period if plan.directed and plan.limit < 0 else -1
        self.flag = gpu.Flag(WORDS)
        name = f"rounds{places}" + ("_by_hash" if plan.by_hash else "")
        types = {"I": kind, "W": values, "V": values, "T": str(tiles.size)}
        self._kernel = getattr(SOURCE.kernels(name, **types), name)
        self._arrays = (
            rows, tiles.count, tiles.indptr, view.indices, view.data, tiles.row, tiles.entry,
            partials, chunks_done, space.state, space.confirmed, space.common,
            self.neighbours, self.weights,
        )  # fmt: skip
        work = max(tiles.count, -(-rows // BLOCK))
        self._grid = min(work, self._kernel.resident(BLOCK))

    def launch(
        self, steps: int, k: int = 0, last: int = 0, *, idle: int = 0, fresh: bool | None = None
    ) -> None:
        """Start `steps` for the rounds k to last - 1."""
        plan = self.plan
        rule = (plan.n, plan.period, plan.uncharged, plan.barrier, plan.seed, plan.directed)
        which = (self.fresh if fresh is None else fresh, steps, k, last, idle, self.most_idle)
        args = (*self._arrays, *rule, *which, self.flag)
        self._kernel(None, args, block=BLOCK, grid=self._grid, cooperative=True)


def find(view: Any, plan: Plan, *, keep: Keep = None, threads: int | None = None) -> FactorArrays:
    """See matchwood.factors.degree_factor.  `keep` remembers the tiles of a prepared Graph."""
    if view.n == 0:
        return _empty(view, plan)

    def make() -> Tiles:
        return Tiles(view.indptr, TILE_SIZE)

    kind = "directed" if plan.directed else "undirected"
    tiles = make() if keep is None else keep(f"factors, {kind} tiles", make)
    rounds = Rounds(view, plan, tiles)
    k = idle = 0
    steps = PROPOSE | CONFIRM
    if not rounds.fresh or plan.limit == 0:
        steps |= BEGIN
    while True:
        last = k + ROUNDS_PER_LAUNCH if plan.limit < 0 else min(k + ROUNDS_PER_LAUNCH, plan.limit)
        settle = SETTLE if last == plan.limit else 0  # else the kernel does so when it stops
        rounds.launch(steps | settle, k, last, idle=idle)
        rounds.flag.fetch()
        words = rounds.flag.read()
        stopped, k, idle = bool(words[STOP]), int(words[ROUNDS]), int(words[IDLE])
        if stopped or k == plan.limit or idle == rounds.most_idle:
            return FactorArrays(rounds.neighbours, rounds.weights, k, stopped)
        steps = PROPOSE | CONFIRM


def _empty(view: Any, plan: Plan) -> FactorArrays:
    """No vertices: the first round without charges finds nothing to propose."""
    cupy = engines.cupy()
    maximal = plan.limit < 0 or plan.limit > plan.uncharged
    neighbours = cupy.empty((0, plan.n), view.indices.dtype)
    weights = cupy.empty((0, plan.n), view.data.dtype)
    return FactorArrays(neighbours, weights, plan.uncharged + 1 if maximal else plan.limit, maximal)

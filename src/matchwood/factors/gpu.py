"""[0,n]-factors on the GPU.  Kernels: gpu.cu; the rule and the paper: __init__.py.

Rounds are launched in batches.  A round that finds the factor maximal says so in a flag on the
device, and the launches after it return at once; the host looks at the flags after each batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.factors.result import Found, Plan
from matchwood.primitives.hashing import round_number
from matchwood.primitives.row_reduce.gpu import Tiles

SLOTS = (1, 2, 4, 8)  # neighbours that a kernel keeps; by hash 2 at least
BATCH = 8  # rounds between two looks of the host; as in gpu.cu
TILE = 2048  # rows and entries of a tile; 1024 was slower by a fifth: bench/factors/factor_gpu.py

Keep = Callable[[str, Callable[[], Any]], Any] | None

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "begin<I>",
        "propose1 = propose<I,V,1,false,T>",
        "propose2 = propose<I,W,2,false,T>",
        "propose4 = propose<I,V,4,false,T>",
        "propose8 = propose<I,V,8,false,T>",
        "propose2_by_hash = propose<I,V,2,true,T>",
        "propose4_by_hash = propose<I,V,4,true,T>",
        "propose8_by_hash = propose<I,V,8,true,T>",
        "confirm1 = confirm<I,1>",
        "confirm2 = confirm<I,2>",
        "confirm4 = confirm<I,4>",
        "confirm8 = confirm<I,8>",
        "settle<I,W>",
    ),
    # What the compile test builds.  T: the size of the tiles.  V is W again, in one type, since
    # these take long to compile.
    types={"T": ("2048",), "V": (np.float64,)},
)


class Rounds:
    """The arrays of one factor on the GPU, and its rounds one by one."""

    def __init__(self, view: Any, plan: Plan, tiles: Tiles) -> None:
        if plan.n > SLOTS[-1]:
            raise ValueError(
                f"factor: n must be at most {SLOTS[-1]} on the GPU, got {plan.n}; "
                "use engine='cpu' for more"
            )
        self.view, self.plan = view, plan
        rows, kind, values = view.n, view.indices.dtype, view.data.dtype
        least = max(plan.n, 2) if plan.by_hash else plan.n
        self.slots = min(slots for slots in SLOTS if slots >= least)
        self._words = -(-rows // 32)
        needs = rows * plan.n * (kind.itemsize + values.itemsize) + rows + 8 * self._words
        gpu.reserve(needs, "factor")
        self.neighbours = gpu.empty((rows, plan.n), kind, "factor")
        self.weights = gpu.empty((rows, plan.n), values, "factor")
        self._space = gpu.workspace(
            "factor", state=(self._words, np.uint64), confirmed=(rows, np.uint8)
        )
        ties = "_by_hash" if plan.by_hash else ""
        names = (f"propose{self.slots}{ties}", f"confirm{self.slots}")
        types = {"I": kind, "W": values, "V": values, "T": str(tiles.size)}
        self._kernels = SOURCE.kernels("begin", "settle", *names, **types)
        self._propose, self._confirm = (getattr(self._kernels, name) for name in names)
        self.tiles = tiles
        self._accumulator = 24 * self.slots + 24  # bytes, at most
        self._scratch = self.tiles.scratch(self._accumulator)
        self.flag = gpu.Flag(2 + 2 * BATCH)

    def begin(self) -> None:
        """All vertices have room, and their charges for round 0."""
        rows, space = self.view.n, self._space
        charge = self._charge(0)
        self._kernels.begin(32 * self._words, (rows, *charge, space.state, space.confirmed))

    def propose(self, k: int, settled: bool | None = None) -> None:
        """The first half of round k: one pass over the matrix."""
        space, plan = self._space, self.plan
        args = (
            self.view.data, space.state, space.confirmed, self.neighbours, self.weights,
            plan.seed, plan.n, plan.charged(k), k > 0 if settled is None else settled,
            self.flag, k % BATCH,
        )  # fmt: skip
        indices = self.view.indices
        self.tiles.launch(self._propose, self._accumulator, indices, args, self._scratch)

    def confirm(self, k: int) -> None:
        """The second half of round k, and the charges of the next."""
        space, plan = self._space, self.plan
        self._confirm(
            32 * self._words,
            (
                self.view.n, plan.n, self.neighbours, space.confirmed, space.state,
                plan.charged(k), *self._charge(k + 1), k, plan.directed, self.flag, k % BATCH,
            ),
        )  # fmt: skip

    def settle(self) -> None:
        """Sort the confirmed neighbours, clear the rest."""
        plan = self.plan
        self._kernels.settle(
            self.view.n,
            (
                self.view.n, plan.n, plan.seed, plan.by_hash,
                self._space.confirmed, self.neighbours, self.weights,
            ),
        )  # fmt: skip

    def _charge(self, k: int) -> tuple[bool, int, int]:
        plan = self.plan
        return plan.charged(k), round_number(plan.seed, k), plan.barrier


def parallel(view: Any, plan: Plan, *, keep: Keep = None, threads: int | None = None) -> Found:
    """See matchwood.factors.factor.  `keep` remembers the tiles of a prepared Graph."""
    if view.n == 0:
        return _empty(view, plan)

    def make() -> Tiles:
        return Tiles(view.indptr, TILE)

    kind = "directed" if plan.directed else "undirected"
    tiles = make() if keep is None else keep(f"factors, {kind} tiles", make)
    rounds = Rounds(view, plan, tiles)
    rounds.begin()
    counts_idle = plan.directed and plan.limit < 0
    k = idle = 0
    stopped = False
    while not stopped and k != plan.limit and not (counts_idle and idle == plan.m):
        # `idle` may end the search after any round, so that no round too many may be launched
        last = k + (1 if counts_idle else BATCH)
        last = last if plan.limit < 0 else min(last, plan.limit)
        rounds.flag.clear()
        for number in range(k, last):
            rounds.propose(number)
            rounds.confirm(number)
        rounds.flag.fetch()
        words = rounds.flag.read()
        stopped = bool(words[0])
        idle = 0 if words[2 + BATCH + k % BATCH] else idle + 1
        k = int(words[1]) if stopped else last
    rounds.settle()
    return Found(rounds.neighbours, rounds.weights, k, stopped)


def greedy(view: Any, plan: Plan, *, keep: Keep = None, threads: int | None = None) -> Found:
    """See matchwood.factors.factor: rounds without charges until maximal give the greedy factor."""
    found = parallel(view, plan._replace(limit=-1, m=1, k_m=0), keep=keep)
    return found._replace(rounds=0, maximal=True)


def _empty(view: Any, plan: Plan) -> Found:
    """No vertices: the first round without charges finds nothing to propose."""
    cupy = engines.cupy()
    maximal = plan.limit < 0 or plan.limit > plan.k_m
    neighbours = cupy.empty((0, plan.n), view.indices.dtype)
    weights = cupy.empty((0, plan.n), view.data.dtype)
    return Found(neighbours, weights, plan.k_m + 1 if maximal else plan.limit, maximal)

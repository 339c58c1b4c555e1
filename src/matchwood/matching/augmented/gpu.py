"""Rounds of short augmentations on the GPU.  Kernels: gpu.cu; the definition: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.matching.augmented import LIMIT, two_factors
from matchwood.matching.methods import EngineMatching, load
from matchwood.primitives.extremes import extremes
from matchwood.primitives.wide_sums import total

WIDTHS = (2, 8)  # lanes for a row in the first round
EACH = 4  # entries per lane, on average
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "own_weights<I,W>", "prepare<I,W>",
        *(f"scan_rows{width} = scan_rows<I,W,{width}>" for width in WIDTHS),
        "scan_listed<I,W>", "choose<I>", "evaluate_by_warps<I,W>", "evaluate_by_blocks<I,W>",
        "claim<I>", "rank_ties<I>", "decide<I>", "make<I,W>", "list_changed<I>",
        "wake_by_warps<I,W>", "wake_by_blocks<I,W>", "add_weights<I,W>",
    ),
)  # fmt: skip

QUEUED, SHORT_ONES, CANDIDATES, CONTROL_WORDS = SOURCE.constants(
    "QUEUED", "SHORT_ONES", "CANDIDATES", "CONTROL_WORDS"
)
WORD_ARRAYS, END_ARRAYS = SOURCE.constants("WORD_ARRAYS", "END_ARRAYS")
SUMS = 512  # blocks that add up the weight
LISTED = 1024  # blocks at most for the units of a list, whose length the host does not know


def match(
    view: Any, seed: int, by_hash: bool, threads: int | None = None, rounds: int = LIMIT
) -> EngineMatching:
    found = load("auto", "gpu").match(view, seed, by_hash)
    n, kind, weight = view.n, view.indices.dtype, view.data.dtype
    if view.nnz == 0:
        return EngineMatching(found.mate, 0.0, 0)
    space = gpu.workspace(
        "weighted_matching",
        own=(n, weight),
        words=(WORD_ARRAYS * n, np.int64),
        ends=(END_ARRAYS * n, kind),
        control=(CONTROL_WORDS, np.uint64),
        factors=(2, np.float64),
        sums=(SUMS, np.float64),
    )
    k = SOURCE.kernels(I=kind, W=weight)
    made = _Rounds(k, view, found.mate, space, (seed, by_hash)).run(rounds)
    k.add_weights(None, (n, space.own, space.sums), grid=SUMS)
    return EngineMatching(found.mate, total(space.sums.get()) / 2, made)


class _Rounds:
    def __init__(self, k: Any, view: Any, mate: Any, space: Any, ties: tuple[int, bool]) -> None:
        self.k, self.view, self.mate, self.space, self.ties = k, view, mate, space, ties
        self.n = view.n
        self.rows = (view.n, view.indptr, view.indices, view.data)
        self.state = (space.words, space.ends, space.control)
        self.grid = min(LISTED, -(-view.n // 64))

    def clear(self, first: int, after: int) -> None:
        """Set the words first to after - 1 of `control` to 0."""
        part = self.space.control[first:after]
        part.data.memset_async(0, part.nbytes)

    def run(self, most: int) -> int:
        """Run rounds until no unit gains, `most` at the most; returns their number."""
        made = 0
        self.scan()
        self.choose(True)
        while int(self.space.control[CANDIDATES]) > 0:
            self.exchange()
            made += 1
            if made == most:
                break
            self.wake()
            self.choose(False)
        return made

    def scan(self) -> None:
        k, space, n = self.k, self.space, self.n
        k.own_weights(n, (*self.rows, self.mate, space.own))
        heaviest = float(extremes(space.own)[1])
        space.factors.set(np.array(two_factors(max(0.0, heaviest))))
        k.prepare(n, (n, space.own, space.factors, self.mate, space.words, space.ends))
        self.clear(QUEUED, CONTROL_WORDS)
        width = next((w for w in WIDTHS if self.view.nnz <= EACH * w * n), WIDTHS[-1])
        arguments = (*self.rows, *self.ties, space.factors, self.mate, *self.state)
        getattr(k, f"scan_rows{width}")(n * width, arguments)
        k.scan_listed(None, arguments, grid=self.grid)

    def choose(self, everybody: bool) -> None:
        k, space, n = self.k, self.space, self.n
        self.clear(SHORT_ONES, CONTROL_WORDS)
        k.choose(
            n if everybody else None,
            (n, self.view.indptr, self.mate, everybody, *self.state),
            grid=None if everybody else self.grid,
        )
        arguments = (*self.rows, *self.ties, space.factors, self.mate, *self.state)
        k.evaluate_by_warps(None, arguments, grid=self.grid)
        k.evaluate_by_blocks(None, arguments, grid=self.grid)

    def exchange(self) -> None:
        k, space, n, grid = self.k, self.space, self.n, self.grid
        k.claim(None, (n, *self.state), grid=grid)
        k.rank_ties(None, (n, *self.ties, *self.state), grid=grid)
        k.decide(None, (n, *self.ties, *self.state), grid=grid)
        k.make(
            None, (*self.rows, space.factors, self.mate, space.own, *self.state), grid=grid
        )  # fmt: skip

    def wake(self) -> None:
        k, space, n, grid = self.k, self.space, self.n, self.grid
        self.clear(QUEUED, CANDIDATES)  # the queue and both lists
        k.list_changed(None, (n, self.view.indptr, self.mate, *self.state), grid=grid)
        arguments = (*self.rows, space.factors, self.mate, *self.state)
        k.wake_by_warps(None, arguments, grid=grid)
        k.wake_by_blocks(None, arguments, grid=grid)

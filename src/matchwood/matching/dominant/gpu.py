"""Locally dominant matching on the GPU.  Kernels: gpu.cu; the rule: matching/weighted.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.matching.gpu import finish_matching
from matchwood.matching.methods import EngineMatching

WIDTHS = (2, 8)  # lanes per row
ENTRIES_PER_LANE = 4  # entries per lane, on average
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "point_at_nobody<I>",
        *(f"match_rounds{width} = match_rounds<I,W,{width}>" for width in WIDTHS),
    ),
)

BLOCK = SOURCE.constant("BLOCK")
GIANT_ROW = SOURCE.constant("GIANT_ROW")
SIZE, ROUNDS, LEFT, CONTROL_WORDS = SOURCE.constants("SIZE", "ROUNDS", "LEFT", "CONTROL_WORDS")

ROUNDS_PER_LAUNCH = 8192  # some 50 ms; Ctrl-C works between launches


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    n, nnz, kind, weight = view.n, view.nnz, view.indices.dtype, view.data.dtype
    mate = gpu.empty(n, kind, "weighted_matching")
    if n == 0 or nnz == 0:
        mate.data.memset_async(0xFF, mate.nbytes)
        return EngineMatching(mate, 0.0, 0)
    k = SOURCE.kernels(I=kind, W=weight)
    space = gpu.workspace(
        "weighted_matching",
        queue=(n, kind),
        matched=(n, kind),
        giants=(nnz // GIANT_ROW + 1, kind),
        control=(CONTROL_WORDS, np.uint64),
        barrier=(2, np.uint32),
    )
    words = np.zeros(CONTROL_WORDS, np.uint64)
    words[SIZE] = n
    space.barrier.data.memset_async(0, space.barrier.nbytes)
    k.point_at_nobody(n, (n, mate))
    width = next((width for width in WIDTHS if nnz <= ENTRIES_PER_LANE * width * n), WIDTHS[-1])
    match_rounds = getattr(k, f"match_rounds{width}")
    arguments = (
        n, view.indptr, view.indices, view.data, seed, by_hash,
        mate, space.queue, space.matched, space.giants, space.control, space.barrier,
    )  # fmt: skip
    while words[SIZE]:
        words[LEFT] = ROUNDS_PER_LAUNCH
        space.control.set(words)
        match_rounds(n * width, arguments, block=BLOCK, cooperative=True)
        words = space.control.get()
    return EngineMatching(mate, finish_matching(view, mate), int(words[ROUNDS]))

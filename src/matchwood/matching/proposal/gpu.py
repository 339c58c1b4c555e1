"""Maximal matching on the GPU.  Kernels: gpu.cu; the rule and the paper: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.errors import EngineUnavailable
from matchwood.matching.proposal import Preference, preference

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "match_random = match<I,float,false,false>",
        "match_ordered = match<I,float,false,true>",
        "match_heavy = match<I,W,true,false>",
        "weigh<I,W>",
    ),
)

BLOCK = SOURCE.constant("BLOCK")
ROUNDS_PER_LAUNCH = 256  # Ctrl-C works between launches; 10 to 25 rounds are usual
WEIGH_BLOCK = 256  # threads


def match(
    view: Any,
    method: str,
    seed: int,
    threshold: int,
    prefer: str = "random",
    *,
    threads: int | None = None,
) -> tuple[Any, float, list[int]]:
    if method == "serial":
        raise EngineUnavailable(
            "maximal_matching: method='serial' visits one vertex after the other and runs on the "
            "CPU only; use method='proposal', or engine='cpu'"
        )
    n, kind = view.n, view.indices.dtype
    mate = gpu.empty(n, kind, "maximal_matching")
    if n == 0:
        return mate, 0.0, []
    ordered = None
    if prefer != "random":
        kernel = SOURCE.kernels("match_ordered", I=kind).match_ordered
        ordered = preference(view, prefer, seed)
    elif view.data is None:
        kernel = SOURCE.kernels("match_random", I=kind).match_random
    else:
        kernels = SOURCE.kernels("match_heavy", "weigh", I=kind, W=view.data.dtype)
        kernel = kernels.match_heavy
    matched = _rounds(kernel, view, seed, threshold, mate, ordered)
    if view.data is None:
        return mate, float(matched[-1] // 2 if matched else 0), matched
    blocks = -(-n // WEIGH_BLOCK)
    sums = gpu.empty(blocks, np.float64, "maximal_matching")
    rows = (view.indptr, view.indices, view.data)
    kernels.weigh(n, (n, *rows, mate, sums), block=WEIGH_BLOCK)
    return mate, float(sums.sum().item()) / 2, matched


def _rounds(
    kernel: Any, view: Any, seed: int, threshold: int, mate: Any, ordered: Preference | None = None
) -> list[int]:
    """Fill `mate`; returns the number of vertices matched after each round."""
    n, kind = view.n, view.indices.dtype
    tiles = -(-n // BLOCK)
    blocks = min(tiles, kernel.resident(BLOCK))
    room = BLOCK * -(-tiles // blocks)
    space = gpu.workspace(
        "maximal_matching",
        target=(n, kind),
        state=(n, np.uint8),
        live=(blocks * room, kind),
        sizes=(blocks, kind),
        # control words, barrier, got, left: one array, so that one copy to the host is enough
        words=(4 + 2 * ROUNDS_PER_LAUNCH, np.int64),
    )
    words = space.words
    control, barrier_words = words[:3], words[3:4].view(np.uint32)
    counts = words[4:].view(np.uint64)
    got, left = counts[:ROUNDS_PER_LAUNCH], counts[ROUNDS_PER_LAUNCH:]
    position, order = ordered or (None, None)
    host = np.zeros(words.size, np.int64)
    host[1] = 1
    matched: list[int] = []
    total = 0
    while True:
        words.set(host)
        kernel(
            None,
            (
                n, view.indptr, view.indices, view.data, position, order, seed, threshold,
                ROUNDS_PER_LAUNCH, room, mate, space.target, space.state, space.live, space.sizes,
                control, got, left, barrier_words,
            ),
            block=BLOCK,
            grid=blocks,
            cooperative=True,
        )  # fmt: skip
        host = words.get()
        for count in host[4 : 4 + int(host[0]) - len(matched)].tolist():
            total += count
            matched.append(total)
        if host[2]:
            # vertices without neighbours take no part; if there are no others, no round counts
            return matched if total else []
        host[3:] = 0

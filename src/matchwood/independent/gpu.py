"""Maximal independent sets on the GPU.  Kernels: gpu.cu.  The rule: __init__.py, order.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.independent.order import start_of

SOURCE = gpu.Source(
    __package__, "gpu.cu", ("by_degree = greedy<I,false>", "by_index = greedy<I,true>", "sample<I>")
)

BLOCK, WARP = SOURCE.constants("BLOCK", "WARP")
LONG, PIECE, WORDS = SOURCE.constants("LONG", "PIECE", "WORDS")
ROUND_LEFT, ROUND_WORDS = SOURCE.constants("ROUND_LEFT", "ROUND_WORDS")

CYCLES_PER_LAUNCH = 100_000_000  # device clock, some 50 ms; Ctrl-C takes effect between launches
ROUNDS_PER_LAUNCH = 128  # rounds of sampling, for the same reason; most graphs need less than 30
CALLER = "maximal_independent_set"


def choose(view: Any, method: str, seed: int, *, threads: int | None = None) -> tuple[Any, int]:
    n = view.n
    status = gpu.empty(n, np.uint8, CALLER)
    rounds = 0
    if n > 0:
        find = _sample if method == "luby_sampling" else _greedy
        rounds = find(view, method, seed, status)
    return status.view(np.bool_), rounds


def _shares(kernel: Any, n: int) -> tuple[int, int, int, int]:
    """Blocks, warps, vertices of a tile, and of a warp at most."""
    most = kernel.resident(BLOCK) * (BLOCK // WARP)
    tile = min(WARP, -(-n // most))
    tiles = -(-n // tile)
    blocks = -(-min(tiles, most) // (BLOCK // WARP))
    warps = blocks * (BLOCK // WARP)
    return blocks, warps, tile, tile * -(-tiles // warps)


def _greedy(view: Any, method: str, seed: int, status: Any) -> int:
    n, kind = view.n, view.indices.dtype
    name = "by_index" if method == "lexicographic" else "by_degree"
    kernel = getattr(SOURCE.kernels(name, I=kind), name)
    blocks, warps, tile, room = _shares(kernel, n)
    hubs = view.nnz // LONG  # at most
    room += -(-(view.nnz // PIECE + hubs) // warps)
    links = n if name == "by_index" else 0
    words = gpu.empty(WORDS, np.uint64, CALLER)
    space = gpu.empty(2 * warps * (room + 1) + 2 * hubs + links, kind, CALLER)
    again = False
    while True:
        words.data.memset_async(0, words.nbytes)
        kernel(
            None,
            (
                n, view.indptr, view.indices, start_of(seed), again, CYCLES_PER_LAUNCH, tile,
                room, hubs, status, space, words,
            ),
            block=BLOCK,
            grid=blocks,
            cooperative=True,
        )  # fmt: skip
        if words.get()[0] == 0:
            return 1
        again = True


def _sample(view: Any, method: str, seed: int, status: Any) -> int:
    n, kind = view.n, view.indices.dtype
    kernel = SOURCE.kernels("sample", I=kind).sample
    blocks, warps, tile, room = _shares(kernel, n)
    space = gpu.workspace(
        CALLER,
        words=(1 + ROUND_WORDS * ROUNDS_PER_LAUNCH, np.uint64),
        sizes=(warps, kind),
        live=(warps * room, kind),
        hub=(view.nnz // LONG, kind),
        degree=(n, kind),
    )
    gate, words = space.words[:1].view(np.uint32), space.words[1:]
    done = 0
    while True:
        space.words.data.memset_async(0, space.words.nbytes)
        kernel(
            None,
            (
                n, view.indptr, view.indices, seed, done, ROUNDS_PER_LAUNCH, tile, room,
                status, space.degree, space.hub, space.live, space.sizes, words, gate,
            ),
            block=BLOCK,
            grid=blocks,
            cooperative=True,
        )  # fmt: skip
        left = words.get()[ROUND_LEFT::ROUND_WORDS]
        if left[-1] == 0:
            return done + int(np.count_nonzero(left)) + 1
        done += ROUNDS_PER_LAUNCH

"""Suitor matching on the GPU.  Kernels: gpu.cu; the rule and the paper: matching/weighted.py.

Where many weights are equal, gpu_chains.py first matches vertices along chains of equal weights.
Graphs whose words no cache holds go by lists, gpu_lists.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.matching.methods import Found
from matchwood.matching.suitor import gpu_lists
from matchwood.matching.suitor.gpu_chains import match_ahead
from matchwood.matching.suitor.gpu_lists import SUM_BLOCKS, WIDTHS
from matchwood.primitives.wide_sums import total

ENTRIES_PER_LANE = 4  # entries per lane, on average
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "list_giants<I>",
        "add_offers<I,W>",
        *(
            f"make_proposals{width}{'_far' if far else ''} = make_proposals<I,W,{width},{far:d}>"
            for width in WIDTHS
            for far in (False, True)
        ),
    ),
)

BLOCK = SOURCE.constant("BLOCK")
GIANT_ROW = SOURCE.constant("GIANT_ROW")

CACHED_BYTES = 32 << 20  # of the offers of all vertices; more do not stay in the caches of a device
SAMPLED_PAIRS = (
    1024  # pairs of neighbouring entries, compared to estimate how many weights are equal
)


def many_ties(data: Any) -> bool:
    """Whether more than a tenth of neighbouring entries weigh the same, estimated from a sample."""
    step = max(1, data.size // SAMPLED_PAIRS)
    one, other = data[:-1:step], data[1::step]
    return 10 * int((one == other).sum()) > one.size


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> Found:
    n, nnz, kind, weight = view.n, view.nnz, view.indices.dtype, view.data.dtype
    mate = gpu.empty(n, kind, "weighted_matching")
    mate.data.memset_async(0xFF, mate.nbytes)
    if n == 0 or nnz == 0:
        return Found(mate, 0.0, 1)
    width = next((width for width in WIDTHS if nnz <= ENTRIES_PER_LANE * width * n), WIDTHS[-1])
    far = n * weight.itemsize > CACHED_BYTES
    chains = not by_hash and many_ties(view.data)  # ties by hash leave no long chains
    if far and not chains and gpu_lists.fits(view):
        return gpu_lists.match(view, (seed, by_hash), width, mate)
    name = f"make_proposals{width}{'_far' if far else ''}"
    k = SOURCE.kernels("list_giants", "add_offers", name, I=kind, W=weight)
    space = gpu.workspace(
        "weighted_matching",
        want=(n, weight),
        offer=(n, weight),
        giants=(nnz // GIANT_ROW + 1, kind),
        count=(1, np.uint64),
        sums=(SUM_BLOCKS, np.float64),
    )
    for array in (space.want, space.offer, space.count):
        array.data.memset_async(0, array.nbytes)
    if chains:
        match_ahead(view, mate, space.want, space.offer)
    k.list_giants(n, (n, view.indptr, space.giants, space.count))
    make_proposals = getattr(k, name)
    arguments = (
        n, view.indptr, view.indices, view.data, seed, by_hash,
        space.giants, space.count, mate, space.want, space.offer,
    )  # fmt: skip
    blocks = min(make_proposals.resident(BLOCK), -(-n * width // BLOCK))
    make_proposals(None, arguments, block=BLOCK, grid=blocks)
    k.add_offers(None, (n, space.offer, space.sums), grid=SUM_BLOCKS)
    return Found(mate, total(space.sums.get()) / 2, 1)

"""Edges of the greedy matching along chains of preferences.  Kernels and the idea: gpu_chains.cu.

Where weights are equal, or grow along paths, proposals displace each other one after the other, and
a path of k vertices takes k steps.  Here it takes O(log k) launches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.primitives.row_reduce import (
    trusted_strongest_neighbours as strongest_neighbours,
)

SOURCE = gpu.Source(__package__, "gpu_chains.cu", ("link_chains<I>", "jump<I>", "match_ahead<I,W>"))

JUMPS = SOURCE.constant("JUMPS")


def match_ahead(view: Any, mate: Any, want: Any, offer: Any) -> None:
    """Match the vertices that the chains decide, with ties by index; leave the others unchanged."""
    n = view.n
    first_two, weights = strongest_neighbours(view.indptr, view.indices, view.data, 2)
    words = gpu.workspace("weighted_matching", words=(n, np.uint64)).words
    k = SOURCE.kernels(I=mate.dtype, W=view.data.dtype)
    k.link_chains(n, (n, first_two, words))
    reached = 1
    while reached < n:  # n: the longest chain possible; threads at the end of theirs return at once
        k.jump(n, (n, words))
        reached *= JUMPS + 1
    k.match_ahead(n, (n, first_two, weights, words, mate, want, offer))

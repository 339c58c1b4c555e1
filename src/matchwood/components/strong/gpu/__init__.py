"""Strongly connected components on the GPU.  The rule and the papers: ../__init__.py.

Two launches, and one wait for the device: largest.cu finds the largest component and trivial ones,
propagation.cu the others, and numbers them.  Methods differ by two switches, `VARIANTS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines import gpu

LARGEST = gpu.Source(__package__, "largest.cu", ("find_largest<I>",))
PROPAGATION = gpu.Source(__package__, "propagation.cu", ("spread_values<I>",))

BLOCK = LARGEST.constant("BLOCK")
PART = PROPAGATION.constant("PART")
SEARCHED = LARGEST.constant("ROUNDS")
STAGE, PASS, TOTAL, FINISHED = PROPAGATION.constants("STAGE", "PASS", "TOTAL", "FINISHED")
CONTROL = 16  # words for each of the two kernels; more than either needs

ENTRIES_PER_THREAD = 8  # a small graph gets fewer threads
PASSES_PER_LAUNCH = 256  # at most; Ctrl-C takes effect between launches


class Variant(NamedTuple):
    """How a method uses the two kernels."""

    search: bool  # look for the largest component first
    single: bool  # one pivot for each set that remains; else every vertex is one


VARIANTS = {
    "auto": Variant(search=True, single=False),
    "multistep": Variant(search=True, single=False),
    "forward_backward": Variant(search=True, single=True),
    "propagation": Variant(search=False, single=False),
}


def label(
    view: Any, inward: Any, loops: bool, method: str, *, threads: int | None = None
) -> tuple[int, Any, int]:
    caller = "strongly_connected_components"
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    labels = gpu.empty(n, kind, caller)
    if n == 0:
        return 0, labels, 0
    parts = 2 * (n + nnz // PART)
    space = gpu.workspace(
        caller,
        control=(2 * CONTROL, np.uint64),
        mark=(n, np.uint8),
        component=(n, kind),
        into=(n, kind),
        outof=(n, kind),
        pivot=(n, kind),
        kind=(n, np.uint32),
        stamps=(2 * n, np.uint32),
        row_parts=(parts, kind),
        column_parts=(parts, kind),
    )
    space.control.data.memset_async(0, space.control.nbytes)
    first, second = space.control[:CONTROL], space.control[CONTROL:]
    arcs = (n, view.indptr, view.indices, inward.indptr, inward.indices)
    wanted = min(BLOCK * n, n + nnz // ENTRIES_PER_THREAD)  # threads; no more blocks than vertices
    find = LARGEST.kernels(I=kind).find_largest
    variant = VARIANTS[method]
    scratch = (space.into, space.outof, space.pivot)
    find(
        wanted,
        (n, nnz, *arcs[1:], variant.search, space.mark, space.component, *scratch, first),
        block=BLOCK,
        cooperative=True,
    )
    spread = PROPAGATION.kernels(I=kind).spread_values
    arguments = (
        *arcs, variant.single, PASSES_PER_LAUNCH, space.mark, space.component,
        space.into, space.outof, space.pivot, space.kind, space.stamps,
        space.row_parts, space.column_parts, labels, second,
    )  # fmt: skip
    while True:
        spread(wanted, arguments, block=BLOCK, cooperative=True)
        words = space.control.get()
        if words[CONTROL + STAGE] == FINISHED:
            return int(words[CONTROL + TOTAL]), labels, int(words[SEARCHED] + words[CONTROL + PASS])

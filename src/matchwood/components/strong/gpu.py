"""Strongly connected components on the GPU.  The rule and the papers: __init__.py.

Kernels: largest/gpu.cu, the largest component and trivial ones; propagation/gpu.cu, the others and
the numbering.  "multistep" does both; "propagation" only the second, with every vertex a pivot;
"forward_backward" both, with a pivot for each set that remains.  Two launches, and one wait for
the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu

LARGEST = gpu.Source(f"{__package__}.largest", "gpu.cu", ("find_largest<I>",))
SPREAD = gpu.Source(f"{__package__}.propagation", "gpu.cu", ("spread_values<I>",))

BLOCK = LARGEST.constant("BLOCK")
PART = SPREAD.constant("PART")
SEARCHED = LARGEST.constant("ROUNDS")
STAGE, PASS, TOTAL, FINISHED = SPREAD.constants("STAGE", "PASS", "TOTAL", "FINISHED")
CONTROL = 16  # words for each of the two kernels; more than either needs

ENTRIES_PER_THREAD = 8  # a small graph gets fewer threads
PASSES_PER_LAUNCH = 256  # at most; Ctrl-C takes effect between launches


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
    search = method != "propagation"
    scratch = (space.into, space.outof, space.pivot)
    find(
        wanted,
        (n, nnz, *arcs[1:], search, space.mark, space.component, *scratch, first),
        block=BLOCK,
        cooperative=True,
    )
    spread = SPREAD.kernels(I=kind).spread_values
    arguments = (
        *arcs, method == "forward_backward", PASSES_PER_LAUNCH, space.mark, space.component,
        space.into, space.outof, space.pivot, space.kind, space.stamps,
        space.row_parts, space.column_parts, labels, second,
    )  # fmt: skip
    while True:
        spread(wanted, arguments, block=BLOCK, cooperative=True)
        words = space.control.get()
        if words[CONTROL + STAGE] == FINISHED:
            return int(words[CONTROL + TOTAL]), labels, int(words[SEARCHED] + words[CONTROL + PASS])

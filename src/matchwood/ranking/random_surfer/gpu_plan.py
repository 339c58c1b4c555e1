"""Which warp adds up what, on the GPU; made once and kept by the graph.  Kernels: gpu.cu.

Where degrees differ much, most arcs come from few vertices.  If these lie scattered, each brings a
line of the cache for itself.  Then the vertices are renumbered by degree, so that what the hubs
give lies together and stays in the cache (R-MAT 22: an iteration in 0.80 ms instead of 1.00, H200).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.gate.graph import View
from matchwood.primitives.scan.gpu import scan_into

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "begin<W>",
        "pull<I,W>",
        "pull_rows1 = pull_rows<I,W,1,8,4096>",
        "pull_rows2 = pull_rows<I,W,2,4,2048>",
        "finish_hubs<I,W>",
        "end_iteration",
        "renumber<I>",
    ),
)
BLOCK, WARP, TILE = SOURCE.constants("BLOCK", "WARP", "TILE")
SPAN, LONG, MOST_ENTRIES, ROW_SHIFT = SOURCE.constants("SPAN", "LONG", "MOST_ENTRIES", "ROW_SHIFT")
EVEN = 1.2  # the longest of 32 rows, on average, in lengths of a row: then a lane has a row
CALLER = "pagerank"

LEAST_RENUMBERED, MOST_RENUMBERED = 1 << 20, 1 << 28  # entries; smaller graphs are in the cache
HUBS = 1 << 15  # vertices; what they give fills half of a multiprocessor's cache
HUB_PART = 0.25  # of all arcs, from hubs: less, and renumbering is not worth it
SAMPLES = 1 << 12  # groups of 32 neighbouring entries
SECTOR = 8  # vertices whose words are read together
SCATTERED = 20  # sectors that 32 neighbouring entries read on average: fewer, and the order is good


class Renumbered(NamedTuple):
    """The same rows, vertices by falling degree."""

    incoming: View
    perm: Any  # perm[new] = old
    place: Any  # place[old] = new

    def apply(self, problem: Any) -> Any:
        """The problem in the new numbers."""
        share, start = problem.share[self.perm], problem.start[self.perm]
        both = (problem.jump, problem.dangling)
        jump, dangling = (x if x is None else x[self.perm] for x in both)
        return problem._replace(
            incoming=self.incoming, share=share, start=start, jump=jump, dangling=dangling
        )


class Plan(NamedTuple):
    """What each warp adds up; `pull` and `finish_hubs` of gpu.cu say what the arrays mean.

    None where a lane has a row.
    """

    row: Any
    entry: Any
    size: Any
    hub: Any
    hub_begin: Any
    renumbered: Renumbered | None


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan | None:
    kind = "pattern" if problem.incoming.data is None else "weights"
    return graph.keep(f"surfer pieces, {kind}", lambda: _plan(graph, problem.incoming))


def _is_even(length: Any, nnz: int) -> bool:
    """Whether rows are short, and those that follow each other of about the same length."""
    cupy = engines.cupy()
    whole = length[: length.size // WARP * WARP].reshape(-1, WARP)
    if int(length.max()) > WARP or whole.size == 0:
        return False
    return int(cupy.sum(whole.max(axis=1), dtype=np.int64)) * WARP <= EVEN * nnz


def _renumbered(view: Any, degree: Any) -> Renumbered:
    """The rows in the order of falling degree, and each sorted."""
    cupy = engines.cupy()
    n, nnz, kind = view.n, view.nnz, view.indices.dtype
    perm = cupy.argsort(-degree, kind="stable").astype(kind)
    place = cupy.empty_like(perm)
    place[perm] = cupy.arange(n, dtype=kind)
    indptr = cupy.empty(n + 1, kind)
    scan_into(cupy.diff(view.indptr)[perm], indptr)
    keys = cupy.empty(nnz, np.uint64)
    k = SOURCE.kernels("renumber", I=kind)
    lanes = -(-(n + nnz) // TILE) * WARP
    k.renumber(lanes, (n, nnz, view.indptr, view.indices, perm, place, indptr, keys))
    keys.sort()
    return Renumbered(View(indptr, keys.astype(np.uint32).view(kind), None), perm, place)


def _scatters(view: Any, degree: Any) -> bool:
    """Whether few vertices give most, and neighbouring entries are of vertices far from each other.

    Asks some entries, the same in each call, and the degrees.
    """
    cupy = engines.cupy()
    if view.data is not None or view.indices.dtype != np.int32:
        return False
    if not LEAST_RENUMBERED <= view.nnz <= MOST_RENUMBERED or HUBS >= view.n:
        return False
    if gpu.free_bytes() < 40 * view.nnz:
        return False
    first = cupy.linspace(0, view.nnz - WARP, SAMPLES).astype(np.int64)
    asked = view.indices[first[:, None] + cupy.arange(WARP)] // SECTOR
    asked.sort(axis=1)
    sectors = SAMPLES + int(cupy.count_nonzero(asked[:, 1:] != asked[:, :-1]))
    if sectors < SCATTERED * SAMPLES:
        return False
    return int(cupy.partition(degree, view.n - HUBS)[-HUBS:].sum()) >= HUB_PART * view.nnz


def _plan(graph: Any, view: Any) -> Plan | None:
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    renumbered = None
    with gpu.guard(CALLER, 50 * n):
        length = cupy.diff(view.indptr)
        if view.data is None and _is_even(length, view.nnz):
            return None
        degree = cupy.diff(graph.indptr)
        if _scatters(view, degree):
            renumbered = _renumbered(view, degree)
            view = renumbered.incoming
            length = cupy.diff(view.indptr)
        is_long = length > LONG
        hub = cupy.flatnonzero(is_long).astype(kind)
        hub_begin, hub_entry, hub_size = _cut_hubs(view.indptr[hub], length[hub])
        row, rows = _cut_rows(length, is_long)
        entry = view.indptr[row]
        size = (rows.astype(np.int64) << ROW_SHIFT) + (view.indptr[row + rows] - entry)
        return Plan(
            cupy.concatenate([cupy.zeros(hub_entry.size, kind), row]),
            cupy.concatenate([hub_entry, entry]).astype(kind, copy=False),
            cupy.concatenate([hub_size, size]).astype(np.int32),
            hub,
            hub_begin,
            renumbered,
        )


def _cut_hubs(begin: Any, length: Any) -> tuple[Any, Any, Any]:
    """Long rows in pieces of MOST_ENTRIES: where those of each begin, their entries and sizes."""
    cupy, kind = engines.cupy(), begin.dtype
    pieces = -(-length // MOST_ENTRIES)
    first = cupy.zeros(length.size + 1, kind)
    first[1:] = cupy.cumsum(pieces)
    marks = cupy.zeros(int(first[-1]), kind)
    marks[first[1:-1]] = 1
    hub = cupy.cumsum(marks)
    before = (cupy.arange(marks.size) - first[hub]) * MOST_ENTRIES
    return first, begin[hub] + before, cupy.minimum(length[hub] - before, MOST_ENTRIES)


def _cut_rows(length: Any, is_long: Any) -> tuple[Any, Any]:
    """The other rows, cut where SPAN more entries and rows have been counted and around long ones.

    Returns the first row of each piece, and how many it has.
    """
    cupy, n, kind = engines.cupy(), length.size, length.dtype
    counted = cupy.where(is_long, 0, length).astype(np.int64) + 1
    window = (cupy.cumsum(counted) - counted) // SPAN
    cut = cupy.ones(n + 1, np.bool_)
    cut[1:-1] = (window[1:] != window[:-1]) | is_long[1:] | is_long[:-1]
    cuts = cupy.flatnonzero(cut).astype(kind)
    first, rows = cuts[:-1], cupy.diff(cuts)
    short = ~is_long[first]
    return first[short], rows[short]

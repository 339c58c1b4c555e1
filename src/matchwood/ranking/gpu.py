"""PageRank on the GPU.  Kernels: gpu.cu; the rule: __init__.py.

First a plan: which warp adds up what.  It is made once and kept by the graph.  Where degrees differ
much, most arcs lead from few vertices.  If these lie scattered, each takes a cache line of its own.
Then the vertices are renumbered by degree, so that what the hubs give lies together and stays in
the cache (R-MAT 22: an iteration in 0.80 ms instead of 1.00, H200).
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
SLOTS, SETS, CHANGES, SCORES = SOURCE.constants("SLOTS", "SETS", "CHANGES", "SCORES")
ERROR, ITERATIONS, DONE, WORDS = SOURCE.constants("ERROR", "ITERATIONS", "DONE", "WORDS")
LONGEST_ROW = 1.2  # a lane has a row where the longest of 32 rows is no longer than this many means
CALLER = "pagerank"
TURNS = 2 * SETS  # launches after which the same arrays are used again
SHORT_ROW = 8  # entries of a row on average, up to which a lane has two rows
LOOKS = 8  # iterations between two tests of whether it is done

LEAST_RENUMBERED, MOST_RENUMBERED = 1 << 20, 1 << 28  # entries; smaller graphs are in the cache
HUBS = 1 << 15  # vertices; what they give fills half of a multiprocessor's cache
HUB_PART = 0.25  # part of all arcs; where hubs have less, renumbering does not pay
SAMPLES = 1 << 12  # groups of 32 neighbouring entries
SECTOR = 8  # vertices whose words are read together
SCATTERED = 20  # sectors that 32 neighbouring entries read on average; with fewer the order is good


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
    """What each warp adds up: see `pull` and `finish_hubs` in gpu.cu.  None: a lane has a row."""

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
    return int(cupy.sum(whole.max(axis=1), dtype=np.int64)) * WARP <= LONGEST_ROW * nnz


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

    Decided by a sample of entries, the same in each call, and by the degrees.
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


def iterate(
    plan: Plan | None, problem: Any, *, threads: int | None = None
) -> tuple[Any, int, float]:
    cupy = engines.cupy()
    if plan is not None and plan.renumbered is not None:
        problem = plan.renumbered.apply(problem)
    view, dtype = problem.incoming, problem.dtype
    n = view.n
    pieces = 0 if plan is None else int(plan.size.size)
    with gpu.guard(CALLER, (3 * n + pieces) * 8):
        k = SOURCE.kernels(I=view.indices.dtype, W=dtype)
        scores = problem.start.copy()
        given = (cupy.empty(n, dtype), cupy.empty(n, dtype))
        sums = cupy.zeros(SETS * 2 * SLOTS, np.uint64)
        words = cupy.zeros(WORDS, np.float64)
        weights = None if view.data is None else view.data.astype(dtype, copy=False)
        limit = problem.tol
        rule = (problem.share, problem.jump, problem.dangling, problem.damping, 1.0 / n)
        hub_sums = None if plan is None else cupy.empty(int(plan.hub_begin[-1]))

        def turn(number: int, asked: int) -> list[Any]:
            """The kernels of an iteration: (kernel, blocks, arguments), checked once."""
            before = limit if number else 0.0  # nothing changes before the first iteration
            arcs, come = (view.indptr, view.indices), given[number % 2]
            this, go = (before, number % SETS, asked), (scores, given[1 - number % 2], sums)
            args: tuple[Any, ...]
            if plan is None:
                rows, kernel = (2, k.pull_rows2) if view.nnz <= SHORT_ROW * n else (1, k.pull_rows1)
                args = (n, *arcs, come, *rule, *this, words, *go)
                found: list[Any] = [(kernel, -(-n // rows), args)]
            else:
                cut = (pieces, plan.row, plan.entry, plan.size)
                args = (*cut, *arcs, weights, come, *rule, *this, words, *go, hub_sums)
                found = [(k.pull, pieces * WARP, args)]
            if plan is not None and plan.hub.size:
                args = (plan.hub.size, plan.hub, plan.hub_begin, hub_sums, *rule, *this, *go)
                found.append((k.finish_hubs, plan.hub.size * WARP, args))
            return [(kernel, -(-lanes // BLOCK), kernel.prepared(a)) for kernel, lanes, a in found]

        def end(number: int) -> None:
            """Finish the iteration before `number`: its change, and whether it was the last."""
            k.end_iteration(None, (limit, number % SETS, sums, words), block=WARP, grid=1)

        k.begin(n, (n, problem.share, scores, given[0], sums[-2 * SLOTS :]), block=BLOCK)
        # With tol=0 only the change of the last iteration is needed, and so the last two scores.
        most, asked = problem.most, CHANGES | SCORES if problem.tol > 0 else 0
        turns = [turn(TURNS + number, asked) for number in range(TURNS)]
        ends = {0: turn(0, asked), most - 2: turn(most - 2, asked | SCORES)}
        ends[most - 1] = turn(most - 1, CHANGES | SCORES)
        for iteration in range(most):
            for kernel, blocks, args in ends.get(iteration) or turns[iteration % TURNS]:
                kernel.launch(blocks, BLOCK, args)
            if problem.tol > 0 and iteration % LOOKS == LOOKS - 1:
                end(iteration + 1)
                if float(words[DONE]) != 0:
                    break
        end(most)
        found = words.get()
        if plan is not None and plan.renumbered is not None:
            scores = scores[plan.renumbered.place]
    return scores, int(found[ITERATIONS]), float(found[ERROR])

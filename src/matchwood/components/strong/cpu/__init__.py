"""Strongly connected components on a team.  The rule and the papers: ../__init__.py.

Read tarjan.py first: one search by one member, the quickest way for one thread.  With more, these
steps, a kernel each, so that a method compiles what it uses:

    largest.py            the component of a vertex of high degree, the giant one if there is one
    steps.py, `trim`      vertices with nothing left to them, or from them, one after the other
    multistep.py          many components at once by colours, if much is left
    forward_backward.py   sets to be searched side by side
    _finish               what is left, by one member; components numbered by their smallest vertex

"auto" does the first and the last.  What is known of a vertex: steps.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu.forward_backward import TASK_WORDS, find_by_tasks
from matchwood.components.strong.cpu.largest import BUFFER, FOUND, LARGEST_WORDS, find_largest
from matchwood.components.strong.cpu.multistep import COLOUR_WORDS, find_by_colours
from matchwood.components.strong.cpu.steps import OPEN, Arcs, arcs_of, trim
from matchwood.components.strong.cpu.tarjan import label_alone, tarjan
from matchwood.engines.cpu import barrier, crew, kernel, share
from matchwood.primitives.number.cpu import number_roots

Array = np.ndarray[Any, Any]

FEW_VERTICES = 100_000  # when no more are open, one member does the rest (multistep paper)
FEW_VERTICES_FOR_TWO = 1 << 62  # members: all, since colouring takes more than twice the work
SHARED_WORDS = max(LARGEST_WORDS, COLOUR_WORDS, TASK_WORDS)


@kernel
def _finish(
    team: Any, out: Arcs, mark: Array, low: Array, queue: Array, following: Array, parent: Array,
    labels: Array, sums: Array,
) -> None:  # fmt: skip
    """Find the components of open vertices, by one member; then number all components."""
    kind = low.dtype.type
    lo, hi = share(team, low.size)
    for v in range(lo, hi):
        low[v] = kind(0) if mark[v] == OPEN else kind(-1)
    if barrier(team):
        return
    if team.rank == 0:
        tarjan(team, out, low, following, queue, parent)
    if barrier(team):
        return
    number_roots(team, parent, labels, sums)


def label(
    view: Any, inward: Any, loops: bool, method: str, *, threads: int | None = None
) -> tuple[int, Array, int]:
    """How many components there are, the component of each vertex, and rounds."""
    n = view.n
    labels = np.empty(n, view.indptr.dtype)
    if n == 0:
        return 0, labels, 0
    if method == "tarjan":
        return label_alone(view)
    out, into = arcs_of(view), arcs_of(inward)
    unsigned = out.indices.dtype
    team = crew(threads, work=view.nnz + n)
    parent, queue, following = np.empty((3, n), unsigned)
    degrees = np.empty((2, n), unsigned)
    mark = np.empty(n, np.uint8)
    sums = np.zeros(team.size + 1, np.int64)
    shared = np.zeros(SHARED_WORDS, np.int64)
    team.run(
        find_largest, out, into, method == "auto", mark, queue, parent,
        np.empty((team.size, BUFFER), unsigned),
        np.empty(team.size, np.float64), np.empty(team.size, np.int64), sums, shared,
    )  # fmt: skip
    found = bool(shared[FOUND])
    if method == "auto" and not found:
        return label_alone(view)
    if method != "auto":
        listed, colour = np.empty((2, n), unsigned)
        team.run(trim, out, into, loops, not found, mark, parent, degrees, following)
        if method == "multistep":
            few = FEW_VERTICES_FOR_TWO if team.size <= 2 else FEW_VERTICES
            team.run(
                find_by_colours, into, few, mark, following, listed, colour, parent, sums, shared
            )
        else:
            team.run(
                find_by_tasks, out, into, mark, degrees, queue, following,
                listed, colour, parent, sums, shared,
            )  # fmt: skip
    rounds = int(sums[-1])
    team.run(_finish, out, mark, degrees[0], queue, following, parent, labels, sums)
    return int(sums[-1]), labels, 3 + rounds

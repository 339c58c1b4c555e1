"""Reading a graph out of the memory of its dictionaries: what cpu.py does, for reading.py.

Each function returns None where only plain Python can answer.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from matchwood.networkx_backend.memory.plain import Rows, changed, index_dtype, sources

SPARE_ENTRIES = 1000  # room beyond the guess
TRIES = 5  # readings of a graph that another thread keeps changing; then it is given up


def _kinds() -> Any:
    """As cpu.py wants them."""
    return np.array([id(dict), id(float), id(int), sys.version_info >= (3, 12)], np.int64)


def _call(kernel: Any, *arguments: Any) -> int:
    """Run a kernel; where it was interrupted and the handler raises nothing, once more."""
    from matchwood.networkx_backend.memory.cpu import INTERRUPTED

    while (code := int(kernel(*arguments))) == INTERRUPTED:
        pass
    return code


def quick_rows(adjacency: dict[Any, Any]) -> Rows | None:
    """The rows of an adjacency, nodes numbered in its order."""
    from matchwood.networkx_backend.memory import cpu

    if type(adjacency) is not dict:
        return None
    for _ in range(TRIES):
        code, found = _attempt(adjacency)
        if code != cpu.CHANGED:
            return found
    raise changed()


def _attempt(adjacency: dict[Any, Any]) -> tuple[int, Rows | None]:
    """The rows; or what kept them from being read."""
    from matchwood.networkx_backend.memory import cpu, cpu_numbers
    from matchwood.teams import crew

    nodes = list(adjacency)
    n = len(nodes)
    work, hashes, indptr = (np.empty(size, np.int64) for size in (n, n + 1, n + 1))
    source = cpu.Source(id(adjacency), id(nodes), _kinds(), work)
    numbered = _call(cpu.survey, source, hashes)
    if numbered < 0:
        return numbered, None
    # the hash of a small integer is the integer
    bound, kind = (n, index_dtype(n, 2 * int(hashes[n]))) if numbered else (0, np.int64)
    # memory that is not written to costs nothing, so the guess may be high
    neighbours = np.empty(2 * int(hashes[n]) + SPARE_ENTRIES, kind)
    nnz = _call(cpu.read_rows, source, bound, indptr, neighbours)
    if nnz > neighbours.size:
        neighbours = np.empty(nnz + SPARE_ENTRIES, np.int64)
        nnz = _call(cpu.read_rows, source, bound, indptr, neighbours)
    if nnz < 0 or nnz > neighbours.size:
        return (nnz if nnz < 0 else cpu.CHANGED), None
    neighbours, dtype = neighbours[:nnz], index_dtype(n, nnz)
    if numbered:
        indices = neighbours.astype(dtype)
    else:
        slots = np.full(1 << (2 * n).bit_length(), -1, dtype)
        if not cpu_numbers.enter(hashes[:n], slots):
            return cpu.OTHER_LAYOUT, None
        indices = np.empty(nnz, dtype)
        crew(work=4 * nnz).run(cpu_numbers.look_up, neighbours, hashes[:n], slots, indices)
        if nnz and indices.min() < 0:
            return cpu.OTHER_LAYOUT, None  # a neighbour that is no node: let plain Python say so
    return 0, Rows(nodes, bool(numbered), indptr.astype(dtype), indices)


def _fits(rows: Rows, adjacency: Any) -> bool:
    return type(adjacency) is dict and len(adjacency) == len(rows.nodes)


def quick_values(rows: Rows, adjacency: Any, directed: bool, name: Any) -> Any | None:
    """An attribute of every edge, 1 where it is missing."""
    from matchwood.networkx_backend.memory import cpu

    if not _fits(rows, adjacency) or type(name) is not str:
        return None
    m = rows.indices.size if directed else int((sources(rows) <= rows.indices).sum())
    found = np.empty(m, np.float64)
    name = sys.intern(name)
    before = _before(rows, adjacency, directed, m)
    code = _call(cpu.read_values, *before, id(name), hash(name), 1.0, found)
    return _unless_changed(code, found)


def quick_data(rows: Rows, adjacency: Any, directed: bool, count: int, chosen: Any) -> Any | None:
    """The dictionaries of some of the `count` edges."""
    from matchwood.networkx_backend.memory import cpu

    if not _fits(rows, adjacency):
        return None
    found = [None] * chosen.size
    before = _before(rows, adjacency, directed, count)
    code = _call(cpu.gather, *before, chosen, id(found))
    return _unless_changed(code, found)


def _before(rows: Rows, adjacency: Any, directed: bool, entries: int) -> tuple[Any, Any]:
    """What is known of a graph that was read before, for a kernel that compares it."""
    from matchwood.networkx_backend.memory import cpu

    work, cells = np.empty(len(rows.nodes), np.int64), np.empty(entries, np.int64)
    source = cpu.Source(id(adjacency), id(rows.nodes), _kinds(), work)
    return source, cpu.Known(rows.indptr, rows.indices, rows.numbered, not directed, cells)


def _unless_changed(code: int, found: Any) -> Any | None:
    from matchwood.networkx_backend.memory import cpu

    if code == cpu.CHANGED:
        raise changed()
    return found if code == 0 else None

"""Roots of a forest.  Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu, ranks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import integers

__all__ = ["forest_roots"]


def forest_roots(parent: Any, *, engine: str | None = None, threads: int | None = None) -> Any:
    """Find the root of every vertex of a forest that is given by parents.

    From v go to ``parent[v]``, to the parent of that, and so on.  The way ends at a root: a vertex
    that is its own parent, or whose parent is -1.

    Parameters
    ----------
    parent : (n,) array of integers, or a DistributedVector of them
        The parent of each vertex: a vertex, or -1.  It is not changed.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `parent` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    root : (n,) integer array, where `parent` lives
        The root of each vertex; a root is its own.  int32 where `parent` is, else int64.

    Raises
    ------
    TypeError, ValueError
        If `parent` holds no integers, or others than -1..n-1, or has a cycle.

    Notes
    -----
    Deterministic: a vertex has one root, so every engine, at any number of threads, returns the
    same array.  The parents of `bfs` are such a forest; its roots say which source is the nearest.
    So are elimination trees, whose roots have the parent -1.

    Pointer jumping [1]_: every vertex takes the parent of its parent, which halves the way to the
    root, so a way of d steps needs log2(d) rounds.  A GPU does that for all vertices at once.  On
    the CPU each vertex goes up once, and all that it has passed take the root that it finds.

    Work O(n) on the CPU, O(n log d) on the GPU; memory one array of n.

    References
    ----------
    .. [1] Y. Shiloach, U. Vishkin. An O(log n) parallel connectivity algorithm.
       J. Algorithms 3(1), 1982. doi:10.1016/0196-6774(82)90008-6

    Examples
    --------
    >>> import matchwood
    >>> matchwood.forest_roots([0, 0, 1, -1, 3, 2]).tolist()
    [0, 0, 0, 3, 3, 0]

    The nearest source of each vertex of a path:

    >>> search = matchwood.bfs(matchwood.generators.path(6), [0, 5])
    >>> matchwood.forest_roots(search.parent).tolist()
    [0, 0, 0, 5, 5, 5]

    A cycle has no root:

    >>> matchwood.forest_roots([1, 2, 1])
    Traceback (most recent call last):
    ValueError: forest_roots: parent must lead to roots, got a cycle above vertex 0
    """
    caller = "forest_roots"
    if is_distributed(parent):
        return engines.load(__name__, "ranks").roots(parent, engine, threads)
    home = engines.location(parent)
    chosen = engines.resolve(home, engine, caller, threads)
    given = forest(caller, parent)
    where = engines.home(chosen)
    found = engines.load(__name__, chosen).roots(engines.moved(given, where), threads=threads)
    return engines.moved(found, home)


def is_distributed(value: Any) -> bool:
    """Whether this is a DistributedVector."""
    # there is none unless the module is imported
    module = sys.modules.get("matchwood.engines.ranks.vectors")
    return module is not None and isinstance(value, module.DistributedVector)


def forest(caller: str, parent: Any) -> Any:
    """`parent` as a contiguous array of int32 or int64, whose numbers are -1 .. n - 1."""
    given = integers(caller, "parent", parent)
    kind = np.int32 if given.dtype == np.int32 else np.int64
    integers(caller, "parent", given, low=-1, high=given.size - 1)
    return engines.xp(given).ascontiguousarray(given, dtype=kind)


def has_cycle(caller: str, vertex: int) -> ValueError:
    """The error of all engines; `vertex` is the smallest from which no root is reached."""
    return ValueError(f"{caller}: parent must lead to roots, got a cycle above vertex {vertex}")

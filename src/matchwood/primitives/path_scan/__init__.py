"""Scans along paths that are known only by their neighbours, in both directions at once.

Every vertex lists up to two neighbours, and which of the two is "forward" is unknown.  See
`path_scan`.  Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.arguments import INDEX, one_of, plain, shown, vector

__all__ = ["Operation", "PathScan", "path_scan"]

VALUES = (*INDEX, "float32", "float64")
NAMES = ("add", "minimum", "maximum")
METHODS = ("auto", "doubling", "splitters")


class Operation(NamedTuple):
    """An associative operation of your own, for one engine or both.

    `function` takes two numbers; Numba compiles it on the CPU.  `cuda` is a C++ expression in `a`
    and `b` that means the same, ``"a * b"`` or ``"max(a, b)"``.
    """

    function: Callable[[Any, Any], Any] | None = None
    cuda: str | None = None


@dataclass(frozen=True, eq=False)
class PathScan:
    """What `path_scan` found; unpacks as ``ends, values``.

    Attributes
    ----------
    ends : (N, 2) integer array
        Where the path ends that starts at v through its neighbour 0, or 1.
    values : (N, 2) array
        The values on the way, from v to that end, both included, combined in this order.
    cycle : (N,) bool array
        Whether v is on a cycle (which was cut, see `path_scan`).
    """

    ends: Any
    values: Any
    cycle: Any
    neighbours: Any = field(repr=False)
    options: Any = field(default=None, repr=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.ends, self.values))

    @cached_property
    def distances(self) -> Any:
        """(N, 2): the number of steps to these ends.  A scan of its own, at the first call."""
        table = _table("path_scan", self.neighbours)
        xp = engines.cupy() if engines.location(table) == "gpu" else np
        ones = xp.ones(table.shape[0], table.dtype)
        return path_scan(table, ones, "add", **(self.options or {})).values - 1


def path_scan(
    neighbours: Any,
    values: Any,
    op: Any = "add",
    *,
    method: str = "auto",
    engine: str | None = None,
    threads: int | None = None,
) -> PathScan:
    """Scan along all paths of a two-neighbour table, in both directions at once.

    For vertex v and side s, let ``x_0 = v, x_1 = neighbours[v, s], x_2, ..., x_k`` be the walk that
    never turns back, until there is no next vertex (k = 0 where ``neighbours[v, s]`` is -1).  Then

        ends[v, s]   = x_k
        values[v, s] = values[x_0] op values[x_1] op ... op values[x_k]

    A cycle is first cut between its smallest vertex and the larger neighbour of that, and scanned
    as the path that remains; ``cycle[v]`` says so.

    Parameters
    ----------
    neighbours : (N, 2) int32 or int64 array
        -1 for none.  Symmetric: where v lists w, w lists v.  As in
        ``degree_factor(A, 2).neighbours``.
    values : (N,) int32, int64, float32 or float64 array
    op : {"add", "minimum", "maximum"}, callable, str or Operation
        Any associative operation; it need not be commutative.  A function of two numbers on the
        CPU, the text of a CUDA expression in `a` and `b` on the GPU, or an `Operation` with both.
        A function is compiled by Numba when first used.
    method : {"auto", "doubling", "splitters"}
        ``"doubling"``: every vertex knows the one 1, 2, 4, ... steps away, until all have reached
        an end; work O(N log of the longest path) [1]_.  ``"splitters"``: from sampled
        vertices, walks lead to the next sampled one; the short list of samples is scanned; second
        walks give every vertex its result; work O(N).  ``"auto"`` takes splitters.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `neighbours` lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    PathScan
        With `ends`, `values`, `cycle` and, when asked for, `distances`.

    Raises
    ------
    TypeError, ValueError
        If an array is of another type or shape; if the table is not symmetric, lists a vertex
        twice, or itself, or one out of range.  The message names the first such vertex.

    Notes
    -----
    Integers are the same bits for all methods and engines (sums modulo 2^32 or 2^64).  Sums of
    floating-point numbers are added in an order that depends on method and engine, but not on
    threads or on chance: the same call gives the same bits again, and any two differ by at most
    ``2 k eps`` times the sum of the absolute values on the way.  NaN is not ordered.

    Memory besides the result: doubling 6 links and 4 values a vertex; splitters 3 links, on the GPU
    8 links and 3 values.  The GPU takes up to 2^30 vertices.

    References
    ----------
    .. [1] C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph
       on GPUs. ICPP 2022, Algorithm 3. doi:10.1145/3545008.3545035

    Examples
    --------
    The path 2 - 0 - 1 and the cycle 3 - 4 - 5:

    >>> import numpy as np
    >>> from matchwood.primitives.path_scan import path_scan
    >>> table = np.array([[2, 1], [-1, 0], [0, -1], [4, 5], [3, 5], [4, 3]])
    >>> scan = path_scan(table, np.array([1, 10, 100, 1, 1, 1]))
    >>> scan.ends[:3].tolist(), scan.values[:3].tolist()
    ([[2, 1], [1, 2], [1, 2]], [[101, 11], [10, 111], [111, 100]])
    >>> scan.cycle.tolist()
    [False, False, False, True, True, True]
    >>> scan.ends[3:].tolist()  # cut between 3 and 5
    [[5, 3], [3, 5], [3, 5]]
    """
    caller = "path_scan"
    table = _table(caller, neighbours)
    where = engines.location(table)
    chosen = engines.resolve(where, engine, caller, threads)
    array = vector(caller, "values", values, VALUES)
    if array.shape != (table.shape[0],):
        raise ValueError(f"{caller}: values must have shape ({table.shape[0]},), got {array.shape}")
    if engines.location(array) != where:
        raise TypeError(f"{caller}: all arrays must live on one engine, got CPU and GPU arrays")
    one_of(caller, "method", method, METHODS)
    operation = _operation(caller, op, chosen)
    home = engines.home(chosen)
    run = engines.load(__name__, chosen).path_scan
    arrays = run(
        engines.moved(table, home),
        engines.moved(array, home),
        operation,
        method="splitters" if method == "auto" else method,
        threads=threads,
    )
    ends, reduced, cycle = (engines.moved(made, where) for made in arrays)
    options = {"method": method, "engine": engine, "threads": threads}
    kept = engines.frozen(table.copy())  # for `distances`
    return PathScan(ends, reduced, cycle, kept, options)


def _table(caller: str, neighbours: Any) -> Any:
    table = plain(caller, "neighbours", neighbours)
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"{caller}: neighbours must have shape (N, 2), got {table.shape}")
    if table.dtype.name not in INDEX or not table.dtype.isnative:
        raise TypeError(f"{caller}: neighbours must be int32 or int64, got {table.dtype}")
    return table


def _operation(caller: str, op: Any, engine: str) -> Any:
    """A name, or what the engine can compile."""
    if isinstance(op, str) and op in NAMES:
        return op
    if isinstance(op, Operation):
        op = op.cuda if engine == "gpu" else op.function
    if engine == "gpu" and isinstance(op, str):
        return op
    if callable(op) and (engine == "reference" or (engine == "cpu" and hasattr(op, "__code__"))):
        return op
    names = ", ".join(repr(name) for name in NAMES)
    own = "the text of a CUDA expression in a and b" if engine == "gpu" else "a function"
    raise TypeError(f"{caller}: op must be {names} or {own} on engine {engine!r}, got {shown(op)}")


def fault(table: Any, slot: int) -> ValueError:
    """The error of all engines for a broken table; slot is 2 * vertex + side."""
    v, side = divmod(slot, 2)
    row = [int(w) for w in table[v]]
    w, n = row[side], table.shape[0]
    if not -1 <= w < n:
        return ValueError(f"path_scan: vertex {v} lists {w}, no vertex of 0..{n - 1} and not -1")
    if w == v:
        return ValueError(f"path_scan: vertex {v} lists itself")
    if row[0] == row[1]:
        return ValueError(f"path_scan: vertex {v} lists {w} twice")
    theirs = " and ".join(str(int(u)) for u in table[w] if u >= 0) or "nobody"
    return ValueError(
        f"path_scan: vertex {v} lists {w}, but {w} does not list {v} (it lists {theirs}); "
        "a vertex has at most two neighbours, and they list it"
    )

"""The gate: it takes whatever a user calls a graph, and returns checked CSR arrays.

Every public function passes its matrix through here, so engines may rely on what they get.  The
kinds of input are in inputs.py; this file checks the arrays and makes the three views, by the
rules of gate/rules.py:

    directed_pattern     entry (i, j) is an arc from i to j
    undirected_pattern   i and j are neighbours when (i, j) or (j, i) is stored and i != j
    undirected_weights   the same with |a_ij|, or |a_ij| + |a_ji| where the values of a matrix are
                         not symmetric, or the heaviest of several edges where A is a list of
                         edges or a NetworkX graph; edges of weight zero are left out

All have sorted rows and no duplicates.  Each is made once for a `Graph`, when first asked for;
where the entries as given already are the view, it is the same memory.  Whose memory that is:
gate/holding.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import inputs, refusals
from matchwood.gate.entries import DUPLICATES, Entries
from matchwood.gate.rectangles import Rectangle, as_rectangle
from matchwood.gate.rules import GraphRules
from matchwood.gate.views import View, sparse_matrix
from matchwood.primitives.extremes import extremes
from matchwood.primitives.inspect import (
    Symmetry,
    Values,
    trusted_symmetry,
    trusted_values_and_loops,
)
from matchwood.primitives.symmetrize import trusted_magnitudes, trusted_union
from matchwood.primitives.transpose import trusted_transpose

__all__ = ["Graph", "Rectangle", "View", "as_graph", "as_rectangle", "graph"]


def _same_ends(data: Any) -> bool:
    """Whether the first value is the last one, too: all may be the same."""
    return bool(data.size) and bool(data[0] == data[-1])


class Graph(GraphRules, Entries):
    """A matrix that has passed the gate.  Made by `matchwood.graph`; not changed afterwards.

    Holds its entries and what has been found out about them.  Facts and views are worked out when
    first needed and kept; calls from several threads at once are safe.

    Attributes
    ----------
    n, nnz : int
        Vertices; stored entries, as given.
    engine : {"cpu", "gpu"}
        Where the arrays live.
    indptr, indices, data : arrays
        The directed view: sorted rows, duplicates added up.  `data` is None where none was given.

    These arrays, and those of all views, are read-only for good: copy one to change it.  Where the
    Graph shares memory (``copy=False``), they may be those of the caller.  CuPy has no read-only
    arrays: on a GPU, writing to them is an error that is not found, and may crash.

    A Graph can be pickled and copied; the copy has memory of its own, passes the gate again and
    works out its facts again.  A forked child can use the Graphs of its parent, also those that
    another thread was preparing.
    """

    def __init__(
        self,
        raw: inputs.Raw,
        index_dtype: Any,
        caller: str,
        duplicates: str | None = None,
        memory: str = "borrowed",
    ) -> None:
        self.n = raw.n
        super().__init__(raw, index_dtype, caller, duplicates, memory)

    def __repr__(self) -> str:
        kind = getattr(self._source, "dtype", "unread")
        weighted = "pattern" if self._source is None else str(kind)
        return f"<Graph: {self.n} vertices, {self.nnz} entries, {weighted}, {self.engine}>"

    # Facts

    @property
    def weight_range(self) -> tuple[float, float]:
        """Least and largest of the undirected weights; (0.0, 0.0) without edges."""
        weights = self.undirected_weights().data
        return (float(weights.min()), float(weights.max())) if weights.size else (0.0, 0.0)

    @property
    def degrees(self) -> Any:
        """Number of neighbours of each vertex, loops not counted."""
        return self.keep("degrees", lambda: np.diff(self.undirected_pattern().indptr))

    @property
    def loops(self) -> int:
        return self.keep("loops", lambda: self.symmetry().loops)

    def symmetry(self) -> Symmetry:
        view = self.directed_pattern()
        return self.keep("symmetry", lambda: trusted_symmetry(*view[:2], ascending=True))

    def inspected(self, view: View) -> Values:
        """What `primitives.inspect` finds out about the values of a view."""
        if self.engine == "cpu" and _same_ends(view.data):
            least, most = extremes(view.data)
            if least == most and np.isfinite(least):  # then the pattern says all: half the time
                return self._inspected_pattern(view.nnz, float(least))
        found, loops = trusted_values_and_loops(*view)
        if loops is not None:
            self.keep("loops", lambda: loops)
        return found

    def _inspected_pattern(self, entries: int, value: float) -> Values:
        """The same where all entries have one value."""
        loops, symmetric = self.symmetry()
        others = entries - loops
        low = value if others else 0.0
        zeros = others if value == 0 else 0
        return Values(True, -1, low, low, zeros, symmetric, loops > 0 and value < 0)

    def union(self, view: View, rule: str) -> View:
        return View(*trusted_union(*view, reduce=rule))

    def magnitudes(self, view: View) -> View:
        return View(*trusted_magnitudes(*view))

    def mirrored(self, view: View) -> View:
        return View(*trusted_transpose(*view, self.n))

    def least(self, values: Any) -> float:
        return float(extremes(values)[0])

    def raise_infinite(self, view: View, facts: Values, caller: str) -> None:
        refusals.raise_infinite(view, facts.at, caller)

    def refuse_overflow_of_directions(self, view: View, caller: str) -> None:
        refusals.refuse_overflow_of_directions(view, caller)

    # Arrays

    @property
    def indptr(self) -> Any:
        """Where each row starts."""
        return self.directed_pattern().indptr

    @property
    def indices(self) -> Any:
        """Columns, row by row."""
        return self.directed_pattern().indices

    @property
    def data(self) -> Any:
        """Values, row by row, or None."""
        return self.directed_weights().data if self.weighted else None

    def sparse_weights(self, caller: str = "graph") -> Any:
        """`directed_weights` as a SciPy or CuPy CSR matrix, over the same memory."""
        return sparse_matrix(*self.directed_weights(caller), self.shape)

    def diagonal(self, caller: str = "graph") -> Any:
        """The values a_ii, 0 where none is stored; a GPU searches each sorted row."""

        def make() -> Any:
            view = self.heaviest_weights(caller)
            if self.engine == "cpu":
                return sparse_matrix(*view, self.shape).diagonal()
            xp = engines.xp(view.indptr)
            low, high = view.indptr[:-1].astype(np.int64), view.indptr[1:].astype(np.int64)
            ends, row = high, xp.arange(self.n)
            while bool((open_ := low < high).any()):
                middle = (low + high) // 2
                before = view.indices[xp.where(open_, middle, 0)] < row
                low = xp.where(open_ & before, middle + 1, low)
                high = xp.where(open_ & ~before, middle, high)
            found = xp.zeros(self.n, view.data.dtype)
            rows = xp.flatnonzero(low < ends)
            rows = rows[view.indices[low[rows]] == rows]
            found[rows] = view.data[low[rows]]
            return found

        return self.keep("diagonal", make)


def graph(
    A: Any,
    *,
    index_dtype: Any = None,
    weight: str | None = "weight",
    duplicates: str | None = None,
    copy: bool = True,
) -> Graph:
    """Check a matrix once and keep what many calls need.

    Every public function takes a raw matrix, which passes the gate at each call, or a `Graph`,
    which has passed it.

    Parameters
    ----------
    A : sparse matrix, array, tuple or graph
        A SciPy or CuPy sparse matrix; a dense 2-D array, whose nonzeros are the edges;
        ``(indptr, indices[, data])``; ``(n, edges[, weights])`` with `edges` of shape (m, 2);
        a NetworkX graph, numbered in its own order; a `Graph`.  Anything that offers
        ``__cuda_array_interface__`` or DLPack is read where it lies.  `A` is not changed.
    index_dtype : int32, int64 or None
        None takes int32 where vertices and entries can be counted with it, else int64.
    weight : str or None
        The edge attribute of a NetworkX graph that holds the weights; an edge without it weighs
        1.  None leaves the weights of any `A` out: all weigh 1.
    duplicates : {None, "sum", "min", "max", "first", "error"}
        What becomes of entries given more than once, at the same place (i, j).  None goes by the
        kind of `A`.  Duplicates of a matrix are added up.  Parallel edges of an edge list or of a
        NetworkX graph stay edges, of which the one counts that the problem wants: the lightest
        for minimum spanning forests, the heaviest for maximum ones, for matchings and for factors
        (by magnitude); where values are read as a matrix (`data`, preconditioners), their sum.
    copy : bool
        The Graph has memory of its own, so that `A` may be changed afterwards.  False shares
        arrays that fit: `A` must then stay as it is while the Graph is in use.  Every call compares
        the arrays with their checksum first, and raises ValueError if they have changed.

    Returns
    -------
    Graph

    Raises
    ------
    TypeError
        If `A` is none of these, or indices are no integers.
    ValueError
        If `A` is not square, an index is out of range, indptr is broken, or an entry is given
        twice with ``duplicates="error"``.
    EngineUnavailable
        If `A` lies on a GPU and CuPy is missing or finds none.

    Notes
    -----
    Where a function reads undirected weights, (i, j) and (j, i) are one edge.  Of a matrix with
    symmetric values it has ``|a_ij|``, of any other ``|a_ij| + |a_ji|``.  In an edge list and in a
    directed NetworkX graph they are two parallel edges: the heaviest counts, or the lightest with
    ``duplicates="min"``.  So an edge may be given once, or in both directions.  ``"sum"`` makes
    an edge list a matrix.

    Symmetry is verified, not assumed: entry by entry where a pattern fits the caches, else
    by hashes under a key that each process draws, without a transpose
    (matchwood.primitives.inspect has the probabilities).  Explicit zeros are edges of the
    patterns and are no edges of the weights.  Values are read only by functions that use weights;
    they must then be real and finite, integers at most 2**53, and sums must not overflow.  One copy
    and one pass over the entries here; what is made on the way (of COO entries, edges, other types
    of indices) is not copied again.  A view that differs from the input costs a copy of it when
    first used, a matrix whose pattern is not symmetric also its transpose.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> G = matchwood.graph(sp.csr_array([[0, 1, 0], [-1, 0, 2], [0, 0, 3]]))
    >>> G
    <Graph: 3 vertices, 4 entries, int64, cpu>
    >>> G.has_symmetric_pattern
    False

    Values that would cancel in ``A + A.T`` do not hide an edge:

    >>> G.undirected_weights().data.tolist()
    [2.0, 2.0, 2.0, 2.0]

    Two edges between the same vertices are two edges, unless `duplicates` says otherwise:

    >>> A = (2, [[0, 1], [0, 1]], [1.0, 5.0])
    >>> matchwood.minimum_spanning_forest(A).total
    1.0
    >>> matchwood.minimum_spanning_forest(matchwood.graph(A, duplicates="sum")).total
    6.0
    """
    memory = "copied" if arguments.flag("graph", "copy", copy) else "shared"
    return as_graph(
        A, "graph", index_dtype=index_dtype, weight=weight, duplicates=duplicates, memory=memory
    )


def as_graph(
    A: Any,
    caller: str,
    *,
    index_dtype: Any = None,
    weight: str | None = "weight",
    duplicates: str | None = None,
    memory: str = "borrowed",
) -> Graph:
    """The Graph of an argument `A`; a Graph is returned as it is, if its memory has not changed.

    `memory` says whose the arrays of a new Graph are: see gate/holding.py.
    """
    arguments.one_of(caller, "duplicates", duplicates, DUPLICATES)
    if not isinstance(A, Graph):
        try:
            return Graph(inputs.read(A, caller, weight), index_dtype, caller, duplicates, memory)
        except MemoryError as error:
            raise engines.out_of_memory(error) from error
    A.require_unchanged(caller)
    inputs.no_attribute(weight, caller)
    same_type = index_dtype is None or arguments.any_type(index_dtype) == A.index_dtype
    same_rule = duplicates is None or duplicates == A.duplicates
    same_memory = A.owns_memory or memory != "copied"
    if same_type and same_rule and same_memory and (weight is not None or not A.weighted):
        return A
    kind = A.index_dtype if index_dtype is None else index_dtype
    raw = A.raw() if weight is not None else A.raw()._replace(data=None)
    return Graph(raw, kind, caller, A.duplicates if same_rule else duplicates, memory)

"""The gate: whatever a user calls a graph comes in, checked CSR arrays go out.

Every public function passes its matrix through here, so engines may rely on what they get.  The
kinds of input are in inputs.py; this file checks the arrays and makes the three views:

    directed_pattern     entry (i, j) is an arc from i to j
    undirected_pattern   i and j are neighbours when (i, j) or (j, i) is stored and i != j
    undirected_weights   the same with |a_ij|, or |a_ij| + |a_ji| where the values of a matrix are
                         not symmetric, or the heaviest of several edges where A is a list of
                         edges or a NetworkX graph; edges of weight zero are left out

All have sorted rows and no duplicates.  Each is made once for a `Graph`, when first asked for;
where the input already is the view, it is the input's own memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import inputs, refusals
from matchwood.gate.keeping import Keeper
from matchwood.gate.sparse_outputs import as_matrix
from matchwood.primitives.assemble import trusted_canonical
from matchwood.primitives.inspect import Symmetry, Values, structure, symmetry, values
from matchwood.primitives.symmetrize import magnitudes, union_with_transpose
from matchwood.primitives.transpose import transpose

DUPLICATES = (None, "sum", "min", "max", "first", "error")


class View(NamedTuple):
    """Checked CSR arrays: rows sorted, no duplicates."""

    indptr: Any
    indices: Any
    data: Any = None

    @property
    def n(self) -> int:
        """Number of vertices."""
        return int(self.indptr.shape[0]) - 1

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.indices.shape[0])


class Graph(Keeper):
    """A matrix that has passed the gate.  Made by `matchwood.graph`; not changed afterwards.

    Holds the arrays it was made from and what has been found out about them.  Facts and views
    are worked out when first needed and kept; calls from several threads at once are safe.

    Attributes
    ----------
    n, nnz : int
        Vertices; stored entries, as given.
    engine : {"cpu", "gpu"}
        Where the arrays live.
    indptr, indices, data : arrays
        The directed view: sorted rows, duplicates added up.  `data` is None where none came in.
        Where the input fits they are its own memory: do not write to them.

    A Graph can be pickled and copied; what was found out about it is found out anew.  A forked
    child can use the Graphs of its parent, also those that another thread was preparing.
    """

    def __init__(
        self, raw: inputs.Raw, index_dtype: Any, caller: str, duplicates: str | None = None
    ) -> None:
        indptr = inputs.as_indices(raw.indptr, "indptr", caller)
        indices = inputs.as_indices(raw.indices, "indices", caller)
        if indptr.dtype != indices.dtype:
            indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
        self.n = raw.n
        self.engine = engines.location(indices)
        self._structure = structure(indptr, indices, raw.n)
        refusals.refuse_fault(self._structure, indptr, indices, raw.n, caller)
        kind = refusals.index_kind(raw.n, int(indices.shape[0]), index_dtype, caller)
        self._indptr = indptr.astype(kind, copy=False)
        self._indices = indices.astype(kind, copy=False)
        self._source = raw.data
        self._edges = raw.edges
        self._ordered = raw.ordered
        self._duplicates = duplicates
        self.nnz = int(indices.shape[0])
        super().__init__()
        if duplicates == "error" and self.directed_pattern().nnz < self.nnz:
            refusals.refuse_duplicates(self._indptr, self._indices, caller)

    def __repr__(self) -> str:
        kind = getattr(self._source, "dtype", "unread")
        weighted = "pattern" if self._source is None else str(kind)
        return f"<Graph: {self.n} vertices, {self.nnz} entries, {weighted}, {self.engine}>"

    @property
    def _data(self) -> Any:
        """The values as they came, read if nobody has yet; or None."""
        return self._read("graph")

    def _read(self, caller: str) -> Any:
        column = self._source
        if not isinstance(column, inputs.Column):
            return column
        return self.keep("column", lambda: engines.moved(column.read(caller), self.engine))

    # Facts

    @property
    def loops(self) -> int:
        """Stored entries on the diagonal."""
        return self._symmetry().loops

    @property
    def longest_row(self) -> int:
        """Stored entries of the longest row, as given."""
        return self._structure.longest

    @property
    def has_symmetric_pattern(self) -> bool:
        """(i, j) is stored whenever (j, i) is."""
        return self._symmetry().symmetric

    @property
    def has_symmetric_values(self) -> bool:
        """a_ij == a_ji for all i and j."""
        return self.has_symmetric_pattern and (self._source is None or self._values().symmetric)

    @property
    def weight_range(self) -> tuple[float, float]:
        """Least and largest of the undirected weights; (0.0, 0.0) without edges."""
        weights = self.undirected_weights().data
        return (float(weights.min()), float(weights.max())) if weights.size else (0.0, 0.0)

    @property
    def largest_magnitude(self) -> float:
        """The largest |a_ij|, duplicates added up; 1.0 where no values came in."""
        if self._source is None:
            return 1.0
        return max(self._values().maximum, -self._values().minimum)

    @property
    def degrees(self) -> Any:
        """Number of neighbours of each vertex, loops not counted."""
        return self.keep("degrees", lambda: np.diff(self.undirected_pattern().indptr))

    def _symmetry(self) -> Symmetry:
        view = self.directed_pattern()
        return self.keep("symmetry", lambda: symmetry(view.indptr, view.indices, sound=True))

    def _values(self) -> Values:
        return self._facts("values", self.directed_weights())

    def _facts(self, key: str, view: View) -> Values:
        return self.keep(key, lambda: values(*view, sound=True))

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
        return None if self._source is None else self.directed_weights().data

    def entries(self) -> View:
        """The arrays as they came, checked: rows may be unsorted and hold duplicates.

        For problems to which that makes no difference.
        """
        return View(self._indptr, self._indices)

    def directed_pattern(self) -> View:
        """Arcs i -> j for every stored (i, j), loops included."""
        if self._structure.ascending:
            return View(self._indptr, self._indices)
        return self.keep("directed", lambda: self.canonical(None))

    def directed_weights(self, caller: str = "graph") -> View:
        """`directed_pattern` with values; 1 where none came in.  Duplicates are added up."""

        def make() -> View:
            if self._source is None:
                view = self.directed_pattern()
                return view._replace(data=_ones(view.indices))
            return self._joined(self._rule("sum"), caller)

        return self.keep("directed_weights", make)

    def sparse(self) -> Any:
        """The directed weights as a matrix of SciPy or CuPy that shares their memory."""
        return as_matrix(*self.directed_weights())

    def heaviest_weights(self, caller: str = "graph") -> View:
        """`directed_weights`, but of parallel edges the one of largest magnitude counts."""
        if not self.has_parallel_edges:
            return self.directed_weights(caller)
        return self.keep("heaviest", lambda: self._joined("heaviest", caller))

    @property
    def has_parallel_edges(self) -> bool:
        """Edges, not entries of a matrix, are given more than once, and no rule was given."""
        return (
            self._edges
            and self._duplicates is None
            and self._source is not None
            and not self._structure.ascending
        )

    def _rule(self, usual: str) -> str:
        """What becomes of duplicates: what was asked for, or else what is usual."""
        return usual if self._duplicates in (None, "error") else self._duplicates

    def _joined(self, rule: str, caller: str) -> View:
        """The values as weights, duplicates joined by that rule."""
        given = self._read(caller)
        weights = inputs.as_weights(given, caller)
        if self._structure.ascending:
            return View(self._indptr, self._indices, weights)
        if rule != "sum":
            refusals.refuse_infinite(View(self._indptr, self._indices, weights), caller)
        view = self.canonical(weights, rule)
        if rule == "sum":
            refusals.refuse_overflow(weights, view.data, given.dtype.kind in "iu", caller)
        return view

    def canonical(self, data: Any, rule: str = "sum") -> View:
        """The entries with sorted rows and these values, duplicates joined by `rule`."""
        arrays = (self._indptr, self._indices, data, self.n)
        return View(*trusted_canonical(*arrays, reduce=rule, ordered=self._ordered))

    def undirected_pattern(self) -> View:
        """Neighbours: symmetric, without loops."""

        def make() -> View:
            view = self.directed_pattern()
            if not self.has_symmetric_pattern:
                return View(*union_with_transpose(view.indptr, view.indices, None, sound=True))
            if self.loops:
                return View(*magnitudes(view.indptr, view.indices, None, sound=True))
            return view

        return self.keep("undirected", make)

    def undirected_weights(self, caller: str = "graph", *, negative: str = "magnitude") -> View:
        """Neighbours with positive weights; `negative="error"` refuses negative values."""

        def make() -> View:
            if self._source is None:
                view = self.undirected_pattern()
                return view._replace(data=_ones(view.indices))
            view = self.heaviest_weights(caller)
            facts = self._checked_values(view, caller)
            if not facts.symmetric:  # where the values are symmetric, so is the pattern
                return self._both_directions(view, facts, caller)
            if facts.zeros or facts.minimum < 0 or self.loops:  # loops cost a pass to find
                return View(*magnitudes(*view, sound=True))
            return view

        if negative == "error" and self._source is not None:
            self._refuse_negative(caller)
        return self.keep("weights", make)

    def _both_directions(self, view: View, facts: Values, caller: str) -> View:
        """Of a matrix |a_ij| + |a_ji|; of edges the heavier of both directions, or as was said."""
        rule = self._rule("max" if self._edges else "sum")
        if not self._edges:
            rule = "sum"  # what was said is about entries at one place
        rule = "max" if rule == "first" else rule
        union = View(*union_with_transpose(*view, reduce=rule, sound=True))
        if max(-facts.minimum, facts.maximum) > np.finfo(view.data.dtype).max / 2:
            refusals.refuse_overflow_of_directions(union, caller)
        return union

    def _refuse_negative(self, caller: str) -> None:
        facts = self._checked_values(self.heaviest_weights(caller), caller)
        least = facts.minimum
        if self.has_parallel_edges:  # one that does not count may be negative too
            least = min(least, float(self._read(caller).min()))
        if least < 0:
            raise ValueError(
                f"{caller}: weights must not be negative, got {least:g}; "
                "pass abs(A) if the sign does not matter"
            )

    def _checked_values(self, view: View, caller: str) -> Values:
        facts = self._facts("heaviest_values" if self.has_parallel_edges else "values", view)
        if not facts.finite:
            refusals.raise_infinite(view, facts.at, caller)
        return facts

    def transposed_pattern(self) -> View:
        """Arcs j -> i for every stored (i, j); the directed pattern itself where symmetric."""

        def make() -> View:
            view = self.directed_pattern()
            if self.has_symmetric_pattern:
                return view
            return View(*transpose(view.indptr, view.indices, None, self.n, sound=True))

        return self.keep("transposed", make)

    def on(self, engine: str) -> Graph:
        """This graph with its arrays on that engine; itself when they are there."""
        place = engines.home(engine)
        if place == self.engine:
            return self

        def make() -> Graph:
            source = self._source
            if not isinstance(source, inputs.Column):
                source = engines.moved(source, place)
            indptr, indices = (engines.moved(a, place) for a in (self._indptr, self._indices))
            raw = inputs.Raw(self.n, indptr, indices, source, self._edges, self._ordered)
            return Graph(raw, self._indptr.dtype, "graph", self._duplicates)

        return self.keep(place, make)


def _ones(indices: Any) -> Any:
    xp = engines.cupy() if engines.location(indices) == "gpu" else np
    return xp.ones(indices.shape[0], np.float32)


def graph(
    A: Any,
    *,
    index_dtype: Any = None,
    weight: str | None = "weight",
    duplicates: str | None = None,
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
        ``__cuda_array_interface__`` or DLPack is used where it lies.  `A` is not changed, and
        must not be changed while the Graph is in use: memory that fits is shared.
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
    symmetric values it has |a_ij|, of any other |a_ij| + |a_ji|.  In an edge list and in a
    directed NetworkX graph they are two parallel edges: the heaviest counts, or the lightest with
    ``duplicates="min"``.  So an edge may be given once, or in both directions.  ``"sum"`` makes
    an edge list a matrix.

    Symmetry is verified, not assumed: by hashes under a key that each process draws, without a
    transpose (matchwood.primitives.inspect has the probabilities).  Explicit zeros are edges of the
    patterns and are no edges of the weights.  Values are read only by functions that use weights;
    they must then be real and finite, integers at most 2**53, and sums must not overflow.  One pass
    over the entries here; a view that differs from the input costs a copy of it when first used, a
    matrix whose pattern is not symmetric also its transpose.

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

    Two edges between the same vertices are two edges, unless told otherwise:

    >>> A = (2, [[0, 1], [0, 1]], [1.0, 5.0])
    >>> matchwood.minimum_spanning_forest(A).total
    1.0
    >>> matchwood.minimum_spanning_forest(matchwood.graph(A, duplicates="sum")).total
    6.0
    """
    return as_graph(A, "graph", index_dtype=index_dtype, weight=weight, duplicates=duplicates)


def as_graph(
    A: Any,
    caller: str,
    *,
    index_dtype: Any = None,
    weight: str | None = "weight",
    duplicates: str | None = None,
) -> Graph:
    """The Graph of an argument `A`; a Graph itself passes."""
    arguments.one_of(caller, "duplicates", duplicates, DUPLICATES)
    if not isinstance(A, Graph):
        return Graph(inputs.read(A, caller, weight), index_dtype, caller, duplicates)
    inputs.no_attribute(weight, caller)
    same_type = index_dtype is None or np.dtype(index_dtype) == A._indptr.dtype
    same_rule = duplicates is None or duplicates == A._duplicates
    if same_type and same_rule and (weight is not None or A._source is None):
        return A
    source = None if weight is None else A._source
    kind = A._indptr.dtype if index_dtype is None else index_dtype
    raw = inputs.Raw(A.n, A._indptr, A._indices, source, A._edges, A._ordered)
    return Graph(raw, kind, caller, A._duplicates if same_rule else duplicates)

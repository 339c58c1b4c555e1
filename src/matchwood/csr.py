"""The gate: whatever a user calls a graph comes in, checked CSR arrays go out.

Every public function passes its matrix through here, so engines may rely on what they get.  The
kinds of input are in inputs.py; this file checks the arrays and makes the three views:

    directed_pattern     entry (i, j) is an arc from i to j
    undirected_pattern   i and j are neighbours when (i, j) or (j, i) is stored and i != j
    undirected_weights   the same with |a_ij|, or |a_ij| + |a_ji| where the values are not
                         symmetric; edges of weight zero are left out

All have sorted rows and no duplicates.  Each is made once for a `Graph`, when first asked for;
where the input already is the view, it is the input's own memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from matchwood import engines, inputs
from matchwood.primitives.assemble import trusted_canonical as canonical
from matchwood.primitives.inspect import Structure, Symmetry, Values, structure, symmetry, values
from matchwood.primitives.symmetrize import magnitudes, union_with_transpose
from matchwood.primitives.transpose import transpose

T = TypeVar("T")
INT32_MAX = np.iinfo(np.int32).max


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


class Graph:
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
    """

    def __init__(self, raw: inputs.Raw, index_dtype: Any, caller: str) -> None:
        indptr = inputs.as_indices(raw.indptr, "indptr", caller)
        indices = inputs.as_indices(raw.indices, "indices", caller)
        if indptr.dtype != indices.dtype:
            indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
        self.n = raw.n
        self.engine = engines.location(indices)
        self._structure = structure(indptr, indices, raw.n)
        _raise_fault(self._structure, indptr, indices, raw.n, caller)
        kind = _index_kind(raw.n, int(indices.shape[0]), index_dtype, caller)
        self._indptr = indptr.astype(kind, copy=False)
        self._indices = indices.astype(kind, copy=False)
        self._data = raw.data
        self.nnz = int(indices.shape[0])
        self._kept: dict[str, Any] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        weighted = "pattern" if self._data is None else str(self._data.dtype)
        return f"<Graph: {self.n} vertices, {self.nnz} entries, {weighted}, {self.engine}>"

    def _keep(self, key: str, make: Callable[[], T]) -> T:
        found: T | None = self._kept.get(key)
        if found is None:
            with self._lock:
                found = self._kept.get(key)
                if found is None:
                    found = self._kept[key] = make()
        return found

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
        return self.has_symmetric_pattern and (self._data is None or self._values().symmetric)

    @property
    def weight_range(self) -> tuple[float, float]:
        """Least and largest of the undirected weights; (0.0, 0.0) without edges."""
        weights = self.undirected_weights().data
        return (float(weights.min()), float(weights.max())) if weights.size else (0.0, 0.0)

    @property
    def degrees(self) -> Any:
        """Number of neighbours of each vertex, loops not counted."""
        return self._keep("degrees", lambda: np.diff(self.undirected_pattern().indptr))

    def _symmetry(self) -> Symmetry:
        view = self.directed_pattern()
        return self._keep("symmetry", lambda: symmetry(view.indptr, view.indices))

    def _values(self) -> Values:
        view = self.directed_weights()
        return self._keep("values", lambda: values(view.indptr, view.indices, view.data))

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
        return None if self._data is None else self.directed_weights().data

    def entries(self) -> View:
        """The arrays as they came, checked: rows may be unsorted and hold duplicates.

        For problems to which that makes no difference.
        """
        return View(self._indptr, self._indices)

    def directed_pattern(self) -> View:
        """Arcs i -> j for every stored (i, j), loops included."""
        if self._structure.ascending:
            return View(self._indptr, self._indices)
        return self._keep(
            "directed", lambda: View(*canonical(self._indptr, self._indices, None, self.n))
        )

    def directed_weights(self, caller: str = "graph") -> View:
        """`directed_pattern` with values; 1 where none came in."""

        def make() -> View:
            if self._data is None:
                view = self.directed_pattern()
                return view._replace(data=_ones(view.indices))
            weights = inputs.as_weights(self._data, caller)
            if self._structure.ascending:
                return View(self._indptr, self._indices, weights)
            return View(*canonical(self._indptr, self._indices, weights, self.n))

        return self._keep("directed_weights", make)

    def undirected_pattern(self) -> View:
        """Neighbours: symmetric, without loops."""

        def make() -> View:
            view = self.directed_pattern()
            if not self.has_symmetric_pattern:
                return View(*union_with_transpose(view.indptr, view.indices, None))
            if self.loops:
                return View(*magnitudes(view.indptr, view.indices, None))
            return view

        return self._keep("undirected", make)

    def undirected_weights(self, caller: str = "graph", *, negative: str = "magnitude") -> View:
        """Neighbours with positive weights; `negative="error"` refuses negative values."""

        def make() -> View:
            if self._data is None:
                view = self.undirected_pattern()
                return view._replace(data=_ones(view.indices))
            view = self.directed_weights(caller)
            facts = self._checked_values(view, caller)
            if not facts.symmetric:  # where the values are symmetric, so is the pattern
                return View(*union_with_transpose(*view))
            if facts.zeros or facts.minimum < 0 or self.loops:  # loops cost a pass to find
                return View(*magnitudes(*view))
            return view

        if negative == "error" and self._data is not None:
            facts = self._checked_values(self.directed_weights(caller), caller)
            if facts.minimum < 0:
                raise ValueError(
                    f"{caller}: weights must not be negative, got {facts.minimum:g}; "
                    "pass abs(A) if the sign does not matter"
                )
        return self._keep("weights", make)

    def _checked_values(self, view: View, caller: str) -> Values:
        facts = self._values()
        if not facts.finite:
            row = int(np.searchsorted(engines.moved(view.indptr, "cpu"), facts.at, "right")) - 1
            column, value = int(view.indices[facts.at]), float(view.data[facts.at])
            raise ValueError(
                f"{caller}: weights must be finite, got {value} at row {row}, column {column}"
            )
        return facts

    def transposed_pattern(self) -> View:
        """Arcs j -> i for every stored (i, j); the directed pattern itself where symmetric."""

        def make() -> View:
            view = self.directed_pattern()
            if self.has_symmetric_pattern:
                return view
            return View(*transpose(view.indptr, view.indices, None, self.n))

        return self._keep("transposed", make)

    def on(self, engine: str) -> Graph:
        """This graph with its arrays on that engine; itself when they are there."""
        place = engines.home(engine)
        if place == self.engine:
            return self

        def make() -> Graph:
            arrays = (self._indptr, self._indices, self._data)
            raw = inputs.Raw(self.n, *(engines.moved(array, place) for array in arrays))
            return Graph(raw, self._indptr.dtype, "graph")

        return self._keep(place, make)


def _ones(indices: Any) -> Any:
    xp = engines.cupy() if engines.location(indices) == "gpu" else np
    return xp.ones(indices.shape[0], np.float32)


def _index_kind(n: int, nnz: int, asked: Any, caller: str) -> Any:
    fits = max(n, nnz) <= INT32_MAX
    if asked is None:
        return np.dtype(np.int32 if fits else np.int64)
    kind = np.dtype(asked)
    if kind not in (np.int32, np.int64):
        raise TypeError(f"{caller}: index_dtype must be int32 or int64, got {kind}")
    if kind == np.int32 and not fits:
        raise ValueError(
            f"{caller}: index_dtype int32 is too small for {n} vertices and {nnz} entries"
        )
    return kind


def _raise_fault(facts: Structure, indptr: Any, indices: Any, n: int, caller: str) -> None:
    at = facts.at
    if indptr.shape[0] != n + 1:
        raise ValueError(
            f"{caller}: indptr must have {n + 1} elements for {n} rows, got {indptr.shape[0]}"
        )
    if facts.fault == "indptr_start":
        raise ValueError(f"{caller}: indptr must start at 0, got {int(indptr[0])}")
    if facts.fault == "indptr_order":
        raise ValueError(
            f"{caller}: indptr must not decrease, got {int(indptr[at])} and then "
            f"{int(indptr[at + 1])} at row {at}"
        )
    if facts.fault == "indptr_end":
        raise ValueError(
            f"{caller}: indptr must end at the number of indices, {indices.shape[0]}, "
            f"got {int(indptr[-1])}"
        )
    if facts.fault == "index_range":
        raise ValueError(
            f"{caller}: indices must be within 0..{n - 1}, got {int(indices[at])} at entry {at}"
        )


def graph(A: Any, *, index_dtype: Any = None) -> Graph:
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

    Returns
    -------
    Graph

    Raises
    ------
    TypeError
        If `A` is none of these, or indices are no integers.
    ValueError
        If `A` is not square, an index is out of range, or indptr is broken.
    EngineUnavailable
        If `A` lies on a GPU and CuPy is missing or finds none.

    Notes
    -----
    Symmetry is verified, not assumed: by comparing 128 bits of hashed sums over the entries,
    without a transpose (matchwood.primitives.inspect).  Explicit zeros are edges of the patterns
    and are no edges of the weights.  Values are read only by functions that use weights; they
    must then be real and finite, and integers at most 2**53.  One pass over the entries here;
    a view that differs from the input costs a copy of it when first used, a matrix whose pattern
    is not symmetric also its transpose.

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
    """
    return as_graph(A, "graph", index_dtype=index_dtype)


def as_graph(A: Any, caller: str, *, index_dtype: Any = None) -> Graph:
    """The Graph of an argument `A`; a Graph itself passes."""
    if isinstance(A, Graph):
        if index_dtype is None or np.dtype(index_dtype) == A._indptr.dtype:
            return A
        return Graph(inputs.Raw(A.n, A._indptr, A._indices, A._data), index_dtype, caller)
    return Graph(inputs.read(A, caller), index_dtype, caller)

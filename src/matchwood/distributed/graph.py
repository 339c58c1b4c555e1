"""The graph that is spread over ranks, as one of them sees it: its block, its views, its facts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments
from matchwood.dist.exchanges import Exchange
from matchwood.dist.vectors import DistributedVector
from matchwood.gate.blocks import saved
from matchwood.gate.blocks.views import Places
from matchwood.gate.entries import RULES
from matchwood.gate.keeping import Keeper
from matchwood.gate.views import View, ones
from matchwood.primitives.assemble.cpu import merge_duplicates
from matchwood.primitives.inspect import Symmetry, Values
from matchwood.primitives.symmetrize import trusted_magnitudes


class Facts(NamedTuple):
    """What a DistributedGraph is made with, beside its block."""

    nnz: int  # entries of all ranks as they were given
    edges: bool  # edges of a list, not entries of a matrix
    duplicates: str | None
    caller: str = "graph"


class DistributedGraph(Keeper):
    """A graph of which every rank keeps a block.  Made by `matchwood.distribute`.

    Views have the names of those of `Graph`, and are those of the block: CSR arrays over the local
    ids of the grid, rows in the order of the user's ids of the columns.  They are made when first
    asked for, by all ranks together, and kept.

    Attributes
    ----------
    comm, grid, exchange : Communicator, Grid, Exchange
    n, nnz : int
        Vertices; stored entries of all ranks, as given.
    engine : {"cpu", "gpu"}
        Where the arrays live.
    index_dtype : dtype
        Of the arrays of a block.
    threads : int
        CPU threads of this rank.
    order : HashedOrder or None
        How vertices are renumbered before they are dealt out; None: they are not.
    """

    def __init__(self, places: Places, block: View, facts: Facts) -> None:
        self.places = places
        self.comm, self.grid, self.order = places.comm, places.grid, places.order
        self.exchange = Exchange(self.comm, self.grid, self.order)
        self.n, self.nnz = self.grid.n, facts.nnz
        self.threads = places.threads
        self.engine = "cpu"
        self.edges, self.duplicates = facts.edges, facts.duplicates
        self.weighted = block.data is not None
        self._block = block
        super().__init__()
        once = places.distinct(block)
        self.ascending = self.nnz == places.total(once)[0]
        if self.duplicates == "error" and not self.ascending:
            places.raise_duplicates(block, facts.caller)

    def __repr__(self) -> str:
        kind = "pattern" if self._block.data is None else str(self._block.data.dtype)
        place = f"rank {self.comm.rank} of {self.grid.name}"
        return (
            f"<DistributedGraph: {self.n} vertices, {self.nnz} entries, {kind}, {self.engine}, "
            f"{place}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a DistributedGraph cannot be pickled: save(folder) writes it to files")

    # Vertices

    @property
    def index_dtype(self) -> Any:
        """The type of indptr and indices of a block."""
        return self._block.indices.dtype

    @property
    def names(self) -> Any:
        """The user's ids of all local ids, or None where `grid.original` computes them."""
        arithmetic = self.order is None and self.grid.layout == "stripes"
        return None if arithmetic else self.places.names

    @property
    def original_local(self) -> Any:
        """The user's ids of all local ids, in any order of vertices."""
        return self.places.names

    @property
    def ids(self) -> Any:
        """The user's ids of own vertices, by place."""
        return self.places.names[: self.grid.n_rows][self.grid.owned_rows]

    def on(self, engine: str) -> DistributedGraph:
        """The same graph with its views on that engine; itself when they are there."""
        arguments.one_of("DistributedGraph.on", "engine", engine, ("cpu", "gpu"))
        if engine == self.engine:
            return self
        from matchwood.gate.blocks.device import OnDevice

        return self.keep(engine, lambda: OnDevice(self))

    def save(self, folder: Any) -> None:
        """Write the graph to a folder, which `matchwood.io.read` reads back on any grid.

        All ranks write, so all must see the same file system.  A graph that was saved there is
        replaced; a folder with other files is refused.
        """
        saved.save(self, folder, "save")

    def vector(self, local: Any) -> DistributedVector:
        """A DistributedVector of the values of own vertices, by place."""
        return DistributedVector(self.grid, self.comm, local, self.order)

    # Facts

    @property
    def loops(self) -> int:
        """Stored entries on the diagonal."""
        return self.symmetry().loops

    @property
    def has_symmetric_pattern(self) -> bool:
        """(i, j) is stored whenever (j, i) is."""
        return self.symmetry().symmetric

    @property
    def has_symmetric_values(self) -> bool:
        """a_ij == a_ji for all i and j."""
        return self.has_symmetric_pattern and (not self.weighted or self.value_facts().symmetric)

    @property
    def has_parallel_edges(self) -> bool:
        """Edges, not entries of a matrix, are given more than once, and no rule was given."""
        return self.edges and self.duplicates is None and self.weighted and not self.ascending

    @property
    def weight_range(self) -> tuple[float, float]:
        """Least and largest of the undirected weights; (0.0, 0.0) without edges."""

        def make() -> tuple[float, float]:
            weights = self.undirected_weights().data
            empty = not weights.size
            mine = [-np.inf, -np.inf] if empty else [-float(weights.min()), float(weights.max())]
            least, most = self.comm.allreduce(np.array(mine), "max")
            return (-float(least), float(most)) if most > -np.inf else (0.0, 0.0)

        return self.keep("weight_range", make)

    @property
    def largest_magnitude(self) -> float:
        """The largest ``|a_ij|`` off the diagonal, duplicates added up; 1.0 without values."""
        if not self.weighted:
            return 1.0
        facts = self.value_facts()
        return max(facts.maximum, -facts.minimum)

    @property
    def degrees(self) -> DistributedVector:
        """Number of neighbours of each vertex, loops not counted."""

        def make() -> DistributedVector:
            lengths = np.diff(self.undirected_pattern().indptr[: self.grid.n_rows + 1])
            return self.vector(self.exchange.fold(lengths, "sum"))

        return self.keep("degrees", make)

    def symmetry(self) -> Symmetry:
        """Loops, and whether the pattern is symmetric."""
        return self.keep("symmetry", lambda: self.places.symmetry(self.directed_pattern()))

    def value_facts(self) -> Values:
        """What is known of the values of `directed_weights`."""
        view = self.directed_weights()
        return self.keep("values", lambda: self.places.values(view))

    # Views

    def entries(self) -> View:
        """The entries as they were given: rows are sorted, but may hold duplicates."""
        return self._block._replace(data=None)

    def directed_pattern(self) -> View:
        """Arcs i -> j for every stored (i, j), loops included."""
        if self.ascending:
            return self.entries()
        return self.keep("directed", lambda: self.canonical(None))

    def directed_weights(self, caller: str = "graph") -> View:
        """`directed_pattern` with values; 1 where none were given.  Duplicates are added up."""

        def make() -> View:
            if not self.weighted:
                view = self.directed_pattern()
                return view._replace(data=ones(view.indices))
            return self.joined(self.rule("sum"), caller)

        return self.keep("directed_weights", make)

    def rule(self, usual: str) -> str:
        """How duplicates are joined: as asked for, or else as is usual."""
        return usual if self.duplicates in (None, "error") else str(self.duplicates)

    def joined(self, rule: str, caller: str) -> View:
        """The values as weights, duplicates joined by that rule; there must be values."""
        return self.places.joined(self._block, rule, self.ascending, caller)

    def given_values(self, caller: str = "graph") -> Any:
        """The values as they were given, of any type of numbers, by `entries`; or None."""
        return self._block.data

    def canonical(self, data: Any, rule: str = "sum") -> View:
        """The entries with these values, one for each of `entries`; duplicates joined."""
        arguments.one_of("DistributedGraph.canonical", "rule", rule, RULES)
        block = self._block._replace(data=data)
        return View(*merge_duplicates(*block, reduce=rule, threads=self.threads))

    def heaviest_weights(self, caller: str = "graph") -> View:
        """`directed_weights`, but of parallel edges the one of largest magnitude counts."""
        if not self.has_parallel_edges:
            return self.directed_weights(caller)
        return self.keep("heaviest", lambda: self.joined("heaviest", caller))

    def undirected_pattern(self) -> View:
        """Neighbours: symmetric, without loops."""

        def make() -> View:
            view = self.directed_pattern()
            if not self.has_symmetric_pattern:
                return self.places.union(view, "sum")
            return self.places.without_loops(view) if self.loops else view

        return self.keep("undirected", make)

    def undirected_weights(self, caller: str = "graph", *, negative: str = "magnitude") -> View:
        """Neighbours with positive weights; `negative="error"` refuses negative values."""

        def make() -> View:
            if not self.weighted:
                view = self.undirected_pattern()
                return view._replace(data=ones(view.indices))
            view = self.heaviest_weights(caller)
            facts = self._checked_values(view, caller)
            if not facts.symmetric:
                return self._both_directions(view, facts, caller)
            if facts.zeros or facts.minimum < 0 or self.loops:
                return View(*trusted_magnitudes(*view, threads=self.threads))
            return view

        arguments.one_of(caller, "negative", negative, ("magnitude", "error"))
        if negative == "error" and self.weighted:
            self.refuse_negative(caller)
        return self.keep("weights", make)

    def _both_directions(self, view: View, facts: Values, caller: str) -> View:
        """Of a matrix ``|a_ij| + |a_ji|``; of edges the heavier direction, or as was said."""
        rule = self.rule("max") if self.edges else "sum"
        rule = "max" if rule == "first" else rule
        union = self.places.union(view, rule)
        if max(-facts.minimum, facts.maximum) > np.finfo(view.data.dtype).max / 2:
            self.places.refuse_overflow_of_directions(union, caller)
        return union

    def refuse_negative(self, caller: str) -> None:
        """Raise unless all values are finite and at least 0."""
        least = self._checked_values(self.heaviest_weights(caller), caller).minimum
        if self.has_parallel_edges:  # one that does not count may be negative too
            values = self._block.data
            mine = -float(values.min()) if values.size else -np.inf
            least = min(least, -float(self.comm.allreduce(np.array([mine]), "max")[0]))
        if least < 0:
            raise ValueError(
                f"{caller}: weights must not be negative, got {least:g}; "
                "pass abs(A) if the sign does not matter"
            )

    def finite_weights(self, caller: str) -> View:
        """`directed_weights`, of which none is infinite or NaN."""
        view = self.directed_weights(caller)
        if not self.value_facts().finite:
            self.places.raise_infinite(view, caller)
        return view

    def _checked_values(self, view: View, caller: str) -> Values:
        key = "heaviest_values" if self.has_parallel_edges else "values"
        facts = self.keep(key, lambda: self.places.values(view))
        if not facts.finite:
            self.places.raise_infinite(view, caller)
        return facts

    def mirrored(self, view: View) -> View:
        """The block of the transpose of the matrix of which `view` is a block."""
        return self.places.mirror(view)

    def transposed_pattern(self) -> View:
        """Arcs j -> i for every stored (i, j); the directed pattern itself where symmetric."""

        def make() -> View:
            view = self.directed_pattern()
            return view if self.has_symmetric_pattern else self.places.mirror(view)

        return self.keep("transposed", make)

    def transposed_weights(self, caller: str = "graph") -> View:
        """`transposed_pattern` with values; `directed_weights` itself where they are symmetric."""

        def make() -> View:
            view = self.finite_weights(caller)
            return view if self.has_symmetric_values else self.places.mirror(view)

        return self.keep("transposed_weights", make)

    def diagonal(self, caller: str = "graph") -> Any:
        """The values a_ii of own vertices, by place; 0 where none is stored."""

        def make() -> Any:
            view = self.heaviest_weights(caller)
            whole = self.places.diagonal(view)
            return np.ascontiguousarray(whole[self.grid.owned_rows])

        return self.keep("diagonal", make)

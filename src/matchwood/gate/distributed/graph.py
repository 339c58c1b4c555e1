"""A graph that is distributed over ranks, as one of them sees it: its block, views and facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.engines.ranks import checks
from matchwood.engines.ranks import grid as grids
from matchwood.engines.ranks.agreement import raise_first, same, together
from matchwood.engines.ranks.exchanges import Exchange
from matchwood.engines.ranks.vectors import DistributedVector, own_part
from matchwood.gate import graph as one_machine
from matchwood.gate import holding, inputs, resources
from matchwood.gate.distributed import saved, sources, whole
from matchwood.gate.distributed.views import Blocks
from matchwood.gate.entries import RULES
from matchwood.gate.rules import GraphRules
from matchwood.gate.views import View
from matchwood.primitives.assemble.cpu import merge_duplicates
from matchwood.primitives.extremes import extremes
from matchwood.primitives.inspect import Symmetry, Values
from matchwood.primitives.number.ranks import number_ids
from matchwood.primitives.symmetrize import trusted_magnitudes

DEVICE_VIEWS = (
    "entries", "directed_pattern", "directed_weights", "heaviest_weights", "undirected_pattern",
    "undirected_weights", "finite_weights", "transposed_pattern", "transposed_weights", "joined",
)  # fmt: skip

HOST_FACTS = (
    "symmetry", "value_facts", "refuse_negative", "save", "gather", "tocsr", "subgraph",
    "in_stripes",
)  # fmt: skip


class Facts(NamedTuple):
    """What a DistributedGraph is made with, beside its block."""

    nnz: int  # entries of all ranks as they were given
    edges: bool  # edges of a list, not entries of a matrix
    duplicates: str | None
    caller: str = "graph"


class DistributedGraph(GraphRules):
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
    stats : dict
        Where functions that the first rank may do for all ran last, by their names.
    order : HashedOrder, ContiguousOrder, TableOrder or None
        How vertices are renumbered before they are distributed; None: they are not.
    """

    def __init__(self, places: Blocks, block: View, facts: Facts) -> None:
        self.places = places
        self.comm, self.grid, self.order = places.comm, places.grid, places.order
        self.exchange = Exchange(self.comm, self.grid, self.order)
        self.n, self.nnz = self.grid.n, facts.nnz
        self.threads = places.threads
        self.engine = "cpu"
        self.stats: dict[str, str] = {}
        self.edges, self.duplicates = facts.edges, facts.duplicates
        self._block = holding.frozen(block)
        super().__init__()
        once = places.distinct(block)
        self._ascending = self.nnz == places.total(once)[0]
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
        return self.keep(engine, lambda: OnDevice(self))

    def save(self, folder: Any) -> None:
        """Write the graph to a folder, which `matchwood.io.read` reads back on any grid.

        All ranks write, so all must see the same file system.  A graph that was saved there is
        replaced; a folder with other files is refused.
        """
        saved.save(self, folder, "save")

    def gather(self, root: int | None = 0) -> one_machine.Graph | None:
        """The whole graph on rank `root`, as `matchwood.graph` makes it; None on the others.

        ``root=None`` gathers on all ranks.  Every rank calls it.  The graph is on the CPU.  It has
        the entries as they were given; without values, those of one place once.

        Examples
        --------
        >>> import matchwood
        >>> def back(comm):
        ...     edges = [[[0, 1]], [[1, 2]]][comm.rank]
        ...     return matchwood.distribute((3, edges), comm=comm).gather()
        >>> matchwood.dist.run(back, 2)
        [<Graph: 3 vertices, 2 entries, pattern, cpu>, None]
        """
        comm, values = self.comm, self.given_values("gather")
        same(comm, "gather", root=root)
        if root is not None:
            root = checks.rank("gather", "root", root, comm.size)
        entries = self.places.total(self._block.nnz)[0]
        here = root is None or comm.rank == root
        width = 48 if values is None else 48 + 2 * values.itemsize  # an entry exists twice, sorted
        room, what = entries * width + 16 * self.n, f"a graph of {entries} entries"
        together(comm, lambda: resources.require_memory("gather", room, what) if here else None)
        columns = [array for array in (*self._ends(), values) if array is not None]
        found = [_collected(comm, np.ascontiguousarray(array), root) for array in columns]
        if not here:
            return None
        u, v, data = found if len(found) == 3 else (*found, None)
        raw = inputs.sorted_entries((self.n, self.n), u, v, data)._replace(edges=self.edges)
        asked = None if self.index_dtype == np.int32 else self.index_dtype
        return one_machine.Graph(raw, asked, "gather", self.duplicates, "adopted")

    def _ends(self) -> tuple[Any, Any]:
        """Rows and columns of the entries of this block, as the user numbers vertices."""
        names = self.original_local.astype(self.index_dtype, copy=False)
        rows = np.repeat(names, np.diff(self._block.indptr))
        return rows, names[self._block.indices]

    def tocsr(self, root: int | None = 0) -> Any:
        """The whole matrix as a SciPy ``csr_array`` on rank `root`; None on the others.

        ``root=None`` gives it to all ranks.  Every rank calls it.  Entries of one place are joined
        by the rule of the graph; those without values are ones.
        """
        whole = self.gather(root)
        return None if whole is None else whole.sparse("tocsr")

    def on_first(self, work: Callable[[Any], Any]) -> Any:
        """What ``work(A)`` finds on the first rank for all vertices, spread over the ranks.

        For functions that no ranks share: communities by `louvain` and `leiden`, strong components,
        independent sets.  The first rank gathers the graph, once, and calls `work` with it, a
        `Graph` on the CPU; the others wait, and get the values of their own vertices.  So its
        memory must hold the whole graph: else all ranks raise `OutOfMemory`, before any work.

        Parameters
        ----------
        work : callable
            Called on the first rank alone.  Returns an array with one value for each vertex, or a
            tuple of such arrays.  Errors of matchwood and of arguments are raised on all ranks.

        Returns
        -------
        DistributedVector, or a tuple of them

        Examples
        --------
        >>> import matchwood
        >>> def communities(comm):
        ...     edges = [[[0, 1], [1, 2]], [[2, 3]]][comm.rank]
        ...     G = matchwood.distribute((4, edges), comm=comm)
        ...     labels = G.on_first(lambda A: matchwood.louvain(A).labels)
        ...     return labels.gather(None).tolist()
        >>> matchwood.dist.run(communities, 2)
        [[0, 0, 1, 1], [0, 0, 1, 1]]
        """
        return whole.on_first(self, work)

    def subgraph(
        self, vertices: DistributedVector, label: int | None = None
    ) -> tuple[DistributedGraph, DistributedVector]:
        """The graph of some vertices and the entries between them, on the same ranks.

        Parameters
        ----------
        vertices : DistributedVector
            Of bools: those that are True are taken.  Of integers, such as the labels of
            components or communities: those that are `label`.
        label : int, optional

        Returns
        -------
        graph : DistributedGraph
            Its vertices are numbered 0, 1, ... in the order of this graph's.
        ids : DistributedVector
            What this graph calls each vertex of the new one.

        Examples
        --------
        >>> import matchwood
        >>> def largest(comm):
        ...     edges = [[[0, 4]], [[1, 3], [3, 4]]][comm.rank]
        ...     G = matchwood.distribute((6, edges), comm=comm)
        ...     H, ids = G.subgraph(matchwood.connected_components(G).labels, 0)
        ...     return H.n, H.nnz, ids.gather(None).tolist()
        >>> matchwood.dist.run(largest, 2)
        [(4, 3, [0, 1, 3, 4]), (4, 3, [0, 1, 3, 4])]
        """
        comm, grid = self.comm, self.grid
        same(comm, "subgraph", label=label)
        taken = np.flatnonzero(self._taken(vertices, label))
        m, numbers = number_ids(comm, self.ids[taken], self.n, self.threads)
        number = np.full(grid.owned, -1, np.int64)
        number[taken] = numbers
        by_name = self.exchange.ask(self.original_local, number)
        block = self._block
        rows = np.repeat(by_name, np.diff(block.indptr))
        columns = by_name[block.indices]
        kept = np.flatnonzero((rows >= 0) & (columns >= 0))
        data = None if block.data is None else block.data[kept]
        kind = None if data is None else data.dtype
        source = sources.of_arrays(rows[kept], columns[kept], data, kind)
        order = sources.order_of(getattr(self.order, "name", None), m, grid.p)
        if isinstance(self.order, sources.TableOrder):
            order = self.order.of_part(np.sort(comm.allgatherv(self.ids[taken])[0]))
        places = Blocks(comm, grids.made(grid.layout, m, grid.R, grid.C, comm.rank), order)
        reduce = "first" if data is None and self.duplicates != "error" else "keep"
        made, received = places.collected(source, self.index_dtype, reduce)
        facts = Facts(places.total(received)[0], self.edges, self.duplicates, "subgraph")
        H = DistributedGraph(places, made, facts)
        own = np.empty(H.grid.owned, arguments.index_type(self.n))
        at, old = H.exchange.packets(numbers, self.ids[taken].astype(own.dtype))
        own[at] = old
        return H, H.vector(own)

    def _taken(self, vertices: Any, label: Any) -> Any:
        """Which own vertices `subgraph` takes; all ranks raise where an argument is wrong."""
        local = engines.moved(own_part(self, "subgraph", "vertices", vertices), "cpu")
        error: Exception | None = None
        if local.ndim != 1 or local.dtype.kind not in "biu":
            error = TypeError(
                f"subgraph: vertices must hold bools or integers, got {local.dtype} "
                f"of {local.ndim} dimensions"
            )
        elif local.dtype.kind == "b" and label is not None:
            error = ValueError("subgraph: label must be None where vertices are bools")
        elif local.dtype.kind != "b" and not arguments.is_integer(label):
            shown = arguments.shown(label)
            error = TypeError(f"subgraph: label must be an integer where vertices are, got {shown}")
        raise_first(self.comm, error)
        return local if label is None else local == label

    def in_stripes(self) -> DistributedGraph:
        """The same graph on the same grid in the layout "stripes": a second block, which is kept.

        For steps that need the arithmetic of stripes; `adopted` brings their answers back.
        """

        def make() -> DistributedGraph:
            comm, grid, data = self.comm, self.grid, self._block.data
            rows, columns = self._ends()
            source = sources.of_arrays(rows, columns, data, None if data is None else data.dtype)
            laid = grids.made("stripes", grid.n, grid.R, grid.C, comm.rank)
            places = Blocks(comm, laid, self.order)
            block, _ = places.collected(source, self.index_dtype)
            return DistributedGraph(places, block, Facts(self.nnz, self.edges, self.duplicates))

        return self.keep("in stripes", make)

    def adopted(self, vector: DistributedVector) -> DistributedVector:
        """Values for the same vertices in another layout, as one of this graph's."""
        ids = engines.moved(vector.ids, "cpu").astype(arguments.index_type(self.n))
        at, values = self.exchange.packets(ids, engines.moved(vector.local, "cpu"))
        own = np.empty(self.grid.owned, values.dtype)
        own[at] = values
        return self.vector(engines.moved(own, self.engine))

    def vector(self, local: Any) -> DistributedVector:
        """A DistributedVector of the values of own vertices, by place."""
        return DistributedVector(self.grid, self.comm, local, self.order)

    # Facts

    @property
    def weighted(self) -> bool:
        return self._block.data is not None

    @property
    def ascending(self) -> bool:
        """Whether no entry was given twice, on any rank."""
        return self._ascending

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
    def degrees(self) -> DistributedVector:
        """Number of neighbours of each vertex, loops not counted."""

        def make() -> DistributedVector:
            lengths = np.diff(self.undirected_pattern().indptr[: self.grid.n_rows + 1])
            return self.vector(engines.frozen(self.exchange.fold(lengths, "sum")))

        return self.keep("degrees", make)

    def symmetry(self) -> Symmetry:
        return self.keep("symmetry", lambda: self.places.symmetry(self.directed_pattern()))

    # Views

    def entries(self) -> View:
        """The entries as they were given: rows are sorted, but may hold duplicates."""
        return self._block._replace(data=None)

    def joined(self, rule: str, caller: str) -> View:
        return self.places.joined(self._block, rule, self.ascending, caller)

    def given_values(self, caller: str = "graph") -> Any:
        """The values as they were given, of any type of numbers, by `entries`; or None."""
        return self._block.data

    def canonical(self, data: Any, rule: str = "sum") -> View:
        """The entries with these values, one for each of `entries`; duplicates joined."""
        arguments.one_of("DistributedGraph.canonical", "rule", rule, RULES)
        block = self._block._replace(data=data)
        return View(*merge_duplicates(*block, reduce=rule, threads=self.threads))

    def inspected(self, view: View) -> Values:
        """What is known of the values of the matrix of which `view` is a block."""
        return self.places.values(view)

    def union(self, view: View, rule: str) -> View:
        """The block of the union with the transpose, without loops; `rule` joins magnitudes."""
        return self.places.union(view, rule)

    def magnitudes(self, view: View) -> View:
        return View(*trusted_magnitudes(*view, threads=self.threads))

    def mirrored(self, view: View) -> View:
        """The block of the transpose of the matrix of which `view` is a block."""
        return self.places.mirror(view)

    def least(self, values: Any) -> float:
        mine = -float(extremes(values)[0]) if values.size else -np.inf
        return -float(self.comm.allreduce(np.array([mine]), "max")[0])

    def raise_infinite(self, view: View, facts: Values, caller: str) -> None:
        """Raise the error that names the first entry of all ranks which is not finite."""
        self.places.raise_infinite(view, caller)

    def refuse_overflow_of_directions(self, view: View, caller: str) -> None:
        self.places.refuse_overflow_of_directions(view, caller)

    def diagonal(self, caller: str = "graph") -> Any:
        def make() -> Any:
            view = self.heaviest_weights(caller)
            whole = self.places.diagonal(view)
            return np.ascontiguousarray(whole[self.grid.owned_rows])

        return self.keep("diagonal", make)


class OnDevice(DistributedGraph):
    """The same graph, its views on the GPU of each rank; `host` is the one on the CPU.

    The block is made on the CPU, where entries are sent and sorted; a view is copied to the device
    when it is first asked for, and kept there.
    """

    def __init__(self, host: DistributedGraph) -> None:
        engines.cupy()
        self.__dict__.update(host.__dict__)
        super(DistributedGraph, self).__init__()  # keeps what lies on the device
        self.host = host
        self.engine = "gpu"

    def on(self, engine: str) -> DistributedGraph:
        """The same graph with its views on that engine."""
        return self if engine == "gpu" else self.host.on(engine)

    def mirrored(self, view: View) -> View:
        return _moved(self.host.mirrored(_moved(view, "cpu")))

    def canonical(self, data: Any, rule: str = "sum") -> View:
        return _moved(self.host.canonical(engines.moved(data, "cpu"), rule))

    def diagonal(self, caller: str = "graph") -> Any:
        return engines.moved(self.host.diagonal(caller), "gpu")

    def given_values(self, caller: str = "graph") -> Any:
        return engines.moved(self.host.given_values(caller), "gpu")


def _collected(comm: Any, array: Any, root: int | None) -> Any:
    """The arrays of all ranks one after the other, on rank `root`, or on all where that is None."""
    if root is None:
        return comm.allgatherv(array)[0]
    counts = [0] * comm.size
    counts[root] = int(array.size)
    return comm.alltoallv(array, counts)[0]


def _view(name: str) -> Any:
    def view(self: OnDevice, *args: Any, **options: Any) -> View:
        there = getattr(self.host, name)(*args, **options)
        return self.keep(f"{name} {args} {options}", lambda: _moved(there))

    view.__name__ = name
    view.__doc__ = f"`{name}` of the host's block, on the device."
    return view


def _fact(name: str) -> Any:
    def fact(self: OnDevice, *args: Any, **options: Any) -> Any:
        return getattr(self.host, name)(*args, **options)

    fact.__name__ = name
    fact.__doc__ = f"`{name}`, found on the host."
    return fact


def _moved(view: View, place: str = "gpu") -> View:
    return View(*(engines.moved(array, place) for array in view))


for _name in DEVICE_VIEWS:
    setattr(OnDevice, _name, _view(_name))
for _name in HOST_FACTS:
    setattr(OnDevice, _name, _fact(_name))

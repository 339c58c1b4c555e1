"""A graph that is distributed over ranks, as one of them sees it: its block, views and facts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.engines.ranks.exchanges import Exchange
from matchwood.engines.ranks.vectors import DistributedVector
from matchwood.gate import holding
from matchwood.gate.distributed import saved
from matchwood.gate.distributed.views import Blocks
from matchwood.gate.entries import RULES
from matchwood.gate.rules import GraphRules
from matchwood.gate.views import View
from matchwood.primitives.assemble.cpu import merge_duplicates
from matchwood.primitives.extremes import extremes
from matchwood.primitives.inspect import Symmetry, Values
from matchwood.primitives.symmetrize import trusted_magnitudes

DEVICE_VIEWS = (
    "entries", "directed_pattern", "directed_weights", "heaviest_weights", "undirected_pattern",
    "undirected_weights", "finite_weights", "transposed_pattern", "transposed_weights", "joined",
)  # fmt: skip

HOST_FACTS = ("symmetry", "value_facts", "refuse_negative", "save")


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
    order : HashedOrder or None
        How vertices are renumbered before they are distributed; None: they are not.
    """

    def __init__(self, places: Blocks, block: View, facts: Facts) -> None:
        self.places = places
        self.comm, self.grid, self.order = places.comm, places.grid, places.order
        self.exchange = Exchange(self.comm, self.grid, self.order)
        self.n, self.nnz = self.grid.n, facts.nnz
        self.threads = places.threads
        self.engine = "cpu"
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

"""A NetworkX graph as matchwood sees it: nodes by number, neighbours as CSR arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import graph as csr
from matchwood.gate import inputs
from matchwood.gate.networkx import Edges, Reading, changed, edges_of, sources
from matchwood.primitives.inspect import Symmetry, trusted_symmetry
from matchwood.primitives.sort import radix_sort

T = TypeVar("T")


class Structure(csr.Graph):
    """An undirected graph of NetworkX, whose rows need not be sorted to be found symmetric.

    NetworkX enters an edge at one end and then at the other.  A graph that was read between the
    two, or whose dictionaries were changed by hand, is refused.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if not self.symmetry().symmetric:
            raise changed(": an edge is stored at one of its ends only")

    def symmetry(self) -> Symmetry:
        """As of any graph, without sorting: no row of NetworkX holds a node twice."""
        indptr, indices, _ = self.entries()
        return self.keep("symmetry", lambda: trusted_symmetry(indptr, indices))


class Graph:
    """A graph converted from NetworkX; made by `convert_from_nx`, not changed afterwards.

    NetworkX passes these to the functions of this backend, and keeps them with the graphs that
    they came from until those change.  A program may hold one itself and give it to NetworkX's
    functions instead of the graph, which saves the conversion.

    All that it holds was read at one moment, and nothing of it can be written to.

    Attributes
    ----------
    nodes : tuple
        The nodes in NetworkX's order; vertex i of the arrays is ``nodes[i]``.
    indptr, indices : arrays
        The neighbours of each vertex, in NetworkX's order.  Of an undirected graph an edge
        appears at both ends.
    edges : Edges
        Every edge once, in the order of ``G.edges``, with the attributes that were requested.
    node_data : dict or None
        Attributes of the nodes, where they were requested.
    graph : dict
        Attributes of the graph.
    """

    __networkx_backend__ = "matchwood"

    def __init__(
        self, reading: Reading, *, directed: bool, multigraph: bool, nx_class: type | None = None
    ) -> None:
        self._rows, self._edges, self.node_data, self.graph = reading
        self.nx_class = nx_class
        self._directed, self._multigraph = directed, multigraph
        self.__networkx_cache__: dict[str, Any] = {}
        self._kept: dict[Any, Any] = {}

    @property
    def nodes(self) -> tuple[Any, ...]:
        return self._rows.nodes

    @property
    def indptr(self) -> Any:
        return self._rows.indptr

    @property
    def indices(self) -> Any:
        return self._rows.indices

    # What NetworkX requires of a graph

    def is_directed(self) -> bool:
        """True if edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """True if two nodes may be joined by several edges."""
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return self.number_of(node) is not None
        except TypeError:  # not hashable
            return False

    def number_of_nodes(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    order = number_of_nodes

    def number_of_edges(self) -> int:
        """The number of edges, parallel ones counted each."""
        return int(self.edges.u.size)

    def __repr__(self) -> str:
        kind = ("Multi" if self._multigraph else "") + ("DiGraph" if self._directed else "Graph")
        return f"<matchwood {kind}: {len(self)} nodes, {self.number_of_edges()} edges>"

    # Nodes and numbers

    def number_of(self, node: Any) -> int | None:
        """The vertex that stands for a node; None where it is no node of the graph."""
        if (
            self._rows.numbered
        ):  # equal objects have equal hashes, and that of a small integer is itself
            i = hash(node)
            return i if 0 <= i < len(self.nodes) and self.nodes[i] == node else None
        found: int | None = self.keep(
            "places", lambda: {node: i for i, node in enumerate(self.nodes)}
        ).get(node)
        return found

    def names(self, vertices: Any) -> list[Any]:
        """The nodes that an array of vertices stands for."""
        vertices = arguments.integers("names", "vertices", vertices, low=0, high=len(self) - 1)
        if self._rows.numbered:
            found: list[Any] = vertices.tolist()
            return found
        table = self.keep("names", lambda: np.fromiter(self.nodes, object, len(self.nodes)))
        return list(table[vertices])

    def sets(self, count: int, labels: Any) -> Iterator[set[Any]]:
        """The nodes of each label 0 .. count - 1."""
        count = arguments.count("sets", "count", count)
        labels = arguments.integers("sets", "labels", labels, size=len(self), low=0, high=count - 1)
        sizes = np.bincount(labels, minlength=count)
        largest = int(sizes.argmax()) if count else 0
        others = labels
        rest: Any = None
        if count and 2 * sizes[largest] > labels.size:  # removing the others is faster
            rest = np.flatnonzero(labels != largest)
            others = labels[rest]
            sizes[largest] = 0
        bits = max(1, int(count - 1).bit_length())
        place = radix_sort(others.astype(np.uint32 if bits <= 32 else np.uint64), bits=bits)[1]
        names = self.names(place if rest is None else rest[place])
        ends = np.cumsum(sizes).tolist()
        start = 0
        for label, end in enumerate(ends):
            if rest is not None and label == largest:
                giant = set(self.nodes)
                giant.difference_update(names)
                yield giant
            else:
                yield set(names[start:end])
            start = end

    # What is worked out when first needed, and kept: the graph does not change

    def keep(self, key: Any, make: Callable[[], T]) -> T:
        """`make()`, once for each key.  Two threads at once may both make it; no harm is done."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    @property
    def sources(self) -> Any:
        """The vertex at which each entry of `indices` stands."""
        return self.keep("sources", lambda: engines.frozen(sources(self._rows)))

    @property
    def edges(self) -> Edges:
        """Every edge once, in the order of ``G.edges``."""
        if self._edges is not None:
            return self._edges
        return self.keep("edges", lambda: edges_of(self._rows, self._directed))

    def edge_data(self, numbers: Any, *, own: bool = False) -> list[dict[Any, Any]]:
        """The attributes of edges, given by their places in `edges`, as they were read.

        With `own` the graph's own dictionaries, which may have been changed since.
        """
        edges = self.edges
        high = edges.u.size - 1
        numbers = arguments.integers("edge_data", "numbers", numbers, low=0, high=high)
        if edges.data is None:
            return [{} for _ in range(numbers.size)]
        if own:
            return [edges.own[i] for i in numbers.tolist()]
        return [edges.data[i].copy() for i in numbers.tolist()]

    def edge_values(self, name: Any) -> tuple[Any, ...]:
        """An attribute of every edge, 1 where it is missing."""
        edges = self.edges
        data = edges.data
        if data is not None:
            return self.keep(("values", name), lambda: tuple(each.get(name, 1) for each in data))
        return edges.columns.get(name, (1,) * edges.u.size)

    @property
    def has_edge_data(self) -> bool:
        """Whether attributes of edges were requested."""
        read = self._edges
        return read is not None and (read.data is not None or bool(read.columns))

    @property
    def structure(self) -> csr.Graph:
        """The graph for matchwood's functions."""

        def make() -> csr.Graph:
            raw = inputs.Raw(len(self), self.indptr, self.indices, None, own=True)
            kind = csr.Graph if self._directed else Structure
            return kind(raw, None, "networkx", None, "adopted")

        return self.keep("structure", make)

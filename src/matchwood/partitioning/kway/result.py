"""What the functions of this problem return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.answers import with_public_signature
from matchwood.gate.views import sparse_matrix
from matchwood.partitioning.kway.check import check_partition
from matchwood.partitioning.kway.multilevel import LevelReport, pieces_of
from matchwood.primitives.contract import contract


class Origin(NamedTuple):
    """The graph and the arguments of a call."""

    graph: Any = None
    arguments: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of a graph into k blocks; unpacks as ``cut, labels``.

    Attributes
    ----------
    cut : int or float
        Weight of the edges between different blocks; an integer where all edges weigh 1.
    labels : (n,) integer array
        ``labels[v]`` is the block of v.
    weights, limits : (k,) arrays
        What each block weighs, and may weigh.
    levels : tuple
        For each level that was refined, in that order: `n` vertices, the cut `before` and `after`
        (in the integers that weights became), `iterations`, `seconds`.
    seconds : dict
        Time by phase.

    Notes
    -----
    A partition that a function of this library made keeps its graph and the arguments of the call,
    for `quotient`, `boundary`, `volume`, `pieces` and `check`.

    Examples
    --------
    >>> import matchwood
    >>> P = matchwood.partition(matchwood.generators.cycle(6), 2)
    >>> P, P.weights.tolist(), P.limits.tolist(), P.excess
    (<Partition: 6 vertices, 2 blocks, cut 2>, [3, 3], [3, 3], 0)
    >>> P.boundary.size, P.volume, P.pieces.tolist()
    (4, 4, [1, 1])
    """

    cut: Any
    labels: Any
    weights: Any
    limits: Any
    levels: tuple[LevelReport, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    _origin: Origin = field(default=Origin(), kw_only=True)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.cut, self.labels))

    def __repr__(self) -> str:
        over = f", excess {self.excess}" if self.excess > 0 else ""
        return f"<Partition: {len(self.labels)} vertices, {self.k} blocks, cut {self.cut}{over}>"

    @property
    def graph(self) -> Any:
        """The graph that it was made of; None where it was made by hand."""
        return self._origin.graph

    @property
    def k(self) -> int:
        """Number of blocks."""
        return len(self.limits)

    @property
    def excess(self) -> Any:
        """Weight above the limits, of all blocks together; 0: balanced."""
        weights, limits = (
            arguments.numbers("Partition.excess", name, getattr(self, name), size=self.k)
            for name in ("weights", "limits")
        )
        return (np.maximum(weights, limits) - limits).sum().item()

    def sets(self, names: Sequence[Any] | None = None) -> list[set[Any]]:
        """The vertices of each block.

        `names` has a name for each vertex: ``list(G)`` for a NetworkX graph G.

        Examples
        --------
        >>> import matchwood
        >>> matchwood.partition(matchwood.generators.path(4), 2).sets()
        [{0, 1}, {2, 3}]
        """
        labels = self._labels("sets")
        if not (names is None or isinstance(names, Sequence) or getattr(names, "ndim", 0) == 1):
            raise TypeError(f"Partition.sets: names must be a list, got {type(names).__name__}")
        if names is not None and len(names) != labels.size:
            raise ValueError(
                f"Partition.sets: names must have {labels.size} elements, got {len(names)}"
            )
        found: list[set[Any]] = [set() for _ in range(self.k)]
        for v, label in enumerate(labels.tolist()):
            found[label].add(v if names is None else names[v])
        return found

    def quotient(self) -> Any:
        """The graph of the blocks: a (k, k) matrix of the weights between them, no diagonal.

        Examples
        --------
        >>> import matchwood
        >>> matchwood.partition(matchwood.generators.path(4), 2).quotient().toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        view = self._view("quotient")
        labels = self._labels("quotient").astype(view.indices.dtype)
        found = contract(view.indptr, view.indices, view.data, labels, self.k)
        return sparse_matrix(found.indptr, found.indices, found.data, (self.k, self.k))

    @cached_property
    def boundary(self) -> Any:
        """Vertices with a neighbour in another block, ascending."""
        rows = self._across("boundary")[0]
        return np.flatnonzero(np.bincount(rows, minlength=self._labels("boundary").size))

    @cached_property
    def volume(self) -> int:
        """Communication: for each vertex the number of other blocks around it, added up."""
        u, label = self._across("volume")
        pairs = np.sort(u.astype(np.int64) * self.k + label)
        return int(np.count_nonzero(np.diff(pairs, prepend=-1)))

    @cached_property
    def pieces(self) -> Any:
        """Number of connected components of each block."""
        view, labels = self._view("pieces"), self._labels("pieces")
        return np.bincount(pieces_of(view, labels)[1], minlength=self.k)

    def check(self, A: Any) -> None:
        """Raise `CheckFailed` unless this is a partition of `A`, rightly described.

        See `matchwood.check.check_partition`; the arguments are those of the call that made it.

        Examples
        --------
        >>> import matchwood
        >>> A = matchwood.generators.grid((8, 8))
        >>> matchwood.partition(A, 4).check(A)
        """
        check_partition(A, self, **self._origin.arguments)

    def _labels(self, asked: str) -> Any:
        """The labels on the host; an error if a `Partition` made by hand holds no such array."""
        labels = engines.moved(self.labels, "cpu")
        size = None if self.graph is None else self.graph.n
        return arguments.integers(
            f"Partition.{asked}", "labels", labels, size=size, low=0, high=self.k - 1
        )

    def _view(self, asked: str) -> Any:
        """The graph on the host, its weights where it has some."""
        graph = self.graph
        if graph is None:
            raise ValueError(f"Partition.{asked}: this partition does not know its graph")
        graph.require_unchanged(f"Partition.{asked}")
        graph = graph.on("cpu")
        return graph.undirected_weights() if graph.weighted else graph.undirected_pattern()

    def _across(self, asked: str) -> tuple[Any, Any]:
        """For each entry between blocks its row, and the block of its column."""
        view, labels = self._view(asked), self._labels(asked)
        rows = np.repeat(np.arange(view.n), np.diff(view.indptr))
        across = labels[rows] != labels[view.indices]
        return rows[across], labels[view.indices[across]]


with_public_signature(Partition)

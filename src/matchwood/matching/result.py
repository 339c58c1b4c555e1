"""What the matching functions return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from matchwood import engines
from matchwood.arguments import integers
from matchwood.csr import Graph
from matchwood.gate.inputs import Raw


class Found(NamedTuple):
    """What an engine's ``match(view, seed, by_hash, threads)`` returns; a plain tuple will do."""

    mate: Any  # (n,) of the view's index type, where the view lives; -1 for free vertices
    weight: float
    rounds: int = 0
    bound: float | None = None  # proved upper bound on any matching, if the method has one


@dataclass(frozen=True, eq=False)
class Matching:
    """A matching: edges of which no two share an end.  Unpacks as ``mate, weight``.

    Attributes
    ----------
    mate : (n,) integer array
        ``mate[v]`` is the vertex that v is matched with, -1 when there is none.
    weight : float
        Sum of the weights of the edges.
    rounds : int
        Passes of the method over the vertices; 0 for methods without rounds.
    method : str
        What found it.
    seconds : dict
        Seconds by phase.
    matched_by_round : list of int, or None
        Vertices matched after each round, from methods that count them.
    weighted : bool or None
        Whether `weight` is the sum of the weights or the number of the edges; None: as the method
        has it.
    seed, ties
        What decided between equal weights, where the method is known; `check` asks for them.

    Notes
    -----
    Can be copied and pickled.  A matching whose bound is not known yet takes its graph with it;
    ask for `bound` first to send less.
    """

    mate: Any
    weight: float
    rounds: int = 0
    method: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    matched_by_round: Any = None
    graph: Graph | None = field(default=None, repr=False)
    known_bound: float | None = field(default=None, repr=False)
    weighted: bool | None = field(default=None, repr=False)
    seed: int | None = field(default=None, repr=False)
    ties: str = field(default="hash", repr=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.mate, self.weight))

    def __repr__(self) -> str:
        return (
            f"<Matching: {self.cardinality} edges of {self.mate.shape[0]} vertices, "
            f"weight {self.weight:g}, {self.method}>"
        )

    @cached_property
    def cardinality(self) -> int:
        """Number of edges."""
        return int((self._mates("cardinality") >= 0).sum()) // 2

    @cached_property
    def bound(self) -> float:
        """A proved upper bound on the weight of every matching of the graph.

        From a dual solution (`matchwood.matching.upper_bound`), worked out when first asked for.
        """
        if self.known_bound is not None:
            return self.known_bound
        if self.graph is None:
            raise ValueError("Matching.bound: this matching does not know its graph")
        from matchwood.matching.bound import upper_bound

        return upper_bound(self.graph, self).value

    @property
    def quality(self) -> float:
        """weight / bound: at least this part of the best possible; 1.0 without edges."""
        return self.weight / self.bound if self.bound > 0 else 1.0

    def edges(self) -> Any:
        """The edges as a (cardinality, 2) array: smaller end first, ascending.

        Examples
        --------
        >>> import matchwood
        >>> from matchwood.matching import weighted_matching
        >>> A = matchwood.generators.path(4)
        >>> weighted_matching(A, ties="index").edges().tolist()
        [[0, 1], [2, 3]]
        """
        mate = self._mates("edges")
        xp = engines.xp(mate)
        u = xp.flatnonzero(mate > xp.arange(mate.shape[0], dtype=mate.dtype))
        return xp.stack((u.astype(mate.dtype), mate[u]), axis=1)

    def _mates(self, asked: str) -> Any:
        """The mates, where they are an array of integers; one made by hand need not be."""
        return integers(f"Matching.{asked}", "mate", self.mate)

    def check(self, A: Any) -> None:
        """Raise `CheckFailed` unless this is a matching of `A`, and the one its method promises.

        That is: of that weight and within its bound; the greedy one, a maximal one, the heaviest
        as far as that can be decided, or what the order of vertices gives.  A matching made by
        hand has no method to hold it to.

        Examples
        --------
        >>> import matchwood
        >>> from matchwood.matching import weighted_matching
        >>> A = matchwood.generators.path(4)
        >>> weighted_matching(A).check(A)
        """
        from matchwood.matching.check_method import check_as_found

        check_as_found(A, self)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: where the bound is known nothing else asks for the graph."""
        state = dict(self.__dict__)
        if self.known_bound is not None or "bound" in state:
            state["graph"] = None
        elif self.graph is not None:
            state["graph"] = _Parts.of(self.graph)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        graph = state["graph"]
        self.__dict__.update(state, graph=graph.graph() if isinstance(graph, _Parts) else graph)


class _Parts(NamedTuple):
    """A graph as the arrays that it was made from: what it has found out stays behind."""

    n: int
    indptr: Any
    indices: Any
    data: Any

    @classmethod
    def of(cls, graph: Graph) -> _Parts:
        return cls(graph.n, *graph.entries()[:2], graph.given_values("Matching"))

    def graph(self) -> Graph:
        return Graph(Raw(*self), self.indptr.dtype, "Matching")

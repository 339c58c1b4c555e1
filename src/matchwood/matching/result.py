"""What the matching functions return."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.answers import with_public_signature
from matchwood.arguments import integers
from matchwood.matching.augmented.check import check_augmented
from matchwood.matching.bound import matching_bound
from matchwood.matching.cardinality.check import check_maximum_matching
from matchwood.matching.check import check_locally_dominant, check_matching
from matchwood.matching.exact.check import check_exact
from matchwood.matching.methods import GREEDY, LARGEST, Origin
from matchwood.matching.proposal.check import check_maximal_matching
from matchwood.matching.random_weighted.check import check_random_weighted
from matchwood.matching.streaming.check import check_streaming


@dataclass(frozen=True, eq=False)
class Matching:
    """A matching: edges of which no two share an end.  Unpacks as ``mate, weight``.

    Attributes
    ----------
    mate : (n,) integer array
        ``mate[v]`` is the vertex that v is matched with, -1 when there is none.  A
        `DistributedVector` where the graph is distributed over ranks.
    weight : float
        Sum of the weights of the edges.
    rounds : int
        Passes of the method over the vertices; 0 for methods without rounds.
    method : str
        Name of the method that found it.
    seconds : dict
        Seconds by phase.
    matched_by_round : list of int, or None
        Vertices matched after each round, from methods that count them.
    stats : Stats, or None
        Transfers between host and devices, where the engine was a `Devices`.

    Notes
    -----
    A matching that a function of this library made keeps its graph and the arguments of the call,
    for `bound` and `check`.

    Can be copied and pickled.  A matching whose bound is not known yet is pickled together with
    its graph; read `bound` first to make the pickle smaller.
    """

    mate: Any
    weight: float
    rounds: int = 0
    method: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    matched_by_round: Any = None
    stats: Any = None
    _origin: Origin = field(default=Origin(), kw_only=True)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.mate, self.weight))

    def __repr__(self) -> str:
        n = self.mate.n if _is_spread(self.mate) else self.mate.shape[0]
        return (
            f"<Matching: {self.cardinality} edges of {n} vertices, "
            f"weight {self.weight:g}, {self.method}>"
        )

    @cached_property
    def cardinality(self) -> int:
        """Number of edges."""
        if _is_spread(self.mate):
            matched = np.array([np.count_nonzero(self.mate.local >= 0)], np.int64)
            return int(self.mate.comm.allreduce(matched)[0]) // 2
        return int((self._mates("cardinality") >= 0).sum()) // 2

    @cached_property
    def bound(self) -> float:
        """A proved upper bound on the weight of every matching of the graph.

        From a dual solution (`matchwood.matching_bound`), computed when first read.
        """
        if self._origin.bound is not None:
            return self._origin.bound
        if self._origin.graph is None:
            raise ValueError("Matching.bound: this matching does not know its graph")
        return matching_bound(self._origin.graph, self).value

    @property
    def quality(self) -> float:
        """weight / bound, a lower bound on weight / best weight; 1.0 without edges."""
        return self.weight / self.bound if self.bound > 0 else 1.0

    def edges(self) -> Any:
        """The edges as a (cardinality, 2) array: smaller end first, ascending.

        Of a distributed matching: those whose smaller end this rank owns.

        Examples
        --------
        >>> import matchwood
        >>> from matchwood.matching import weighted_matching
        >>> A = matchwood.generators.path(4)
        >>> weighted_matching(A, ties="index").edges().tolist()
        [[0, 1], [2, 3]]
        """
        if _is_spread(self.mate):
            return _edges_here(self.mate)
        mate = self._mates("edges")
        xp = engines.xp(mate)
        u = xp.flatnonzero(mate > xp.arange(mate.shape[0], dtype=mate.dtype))
        return xp.stack((u.astype(mate.dtype), mate[u]), axis=1)

    def _mates(self, asked: str) -> Any:
        """The mates; an error if a `Matching` made by hand holds no array of integers."""
        return integers(f"Matching.{asked}", "mate", self.mate)

    def check(self, A: Any) -> None:
        """Raise `CheckFailed` unless this is a matching of `A`, and the one its method promises.

        The weight must be that of the edges and not exceed the bound.  Depending on the method, the
        matching must be the greedy one, a maximal one, the heaviest one, or the one that the random
        order of vertices gives.  A `Matching` made by hand promises nothing more than its weight.
        `EngineUnavailable` if "exact" cannot be checked without rustworkx.

        Examples
        --------
        >>> import matchwood
        >>> from matchwood.matching import weighted_matching
        >>> A = matchwood.generators.path(4)
        >>> weighted_matching(A).check(A)
        """
        check_matching(A, self)
        seed, ties = self._origin.seed, self._origin.ties
        if seed is None:
            return
        if self.method in GREEDY:
            check_locally_dominant(A, self, rng=seed, ties=ties)
        elif self.method in LARGEST:
            check_maximum_matching(A, self)
        elif self.method == "augmented":
            check_augmented(A, self, rng=seed, ties=ties, rounds=self._origin.rounds)
        elif self.method == "exact":
            check_exact(A, self)
        elif self.method == "streaming":
            check_streaming(A, self)
        elif self.method == "random_weighted":
            check_random_weighted(A, self, rng=seed, ties=ties)
        else:
            check_maximal_matching(A, self, weighted=bool(self._origin.weighted))

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: only the bound needs the graph, so a known bound replaces it."""
        state = dict(self.__dict__)
        if self._origin.bound is not None or "bound" in state:
            state["_origin"] = self._origin._replace(graph=None)
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """For pickle and copy; pickles of version 0.1.0 have a graph and a bound, and no origin."""
        fields = dict(state)
        graph, bound = fields.pop("graph", None), fields.pop("known_bound", None)
        fields.setdefault("_origin", Origin(graph, bound))
        self.__dict__.update(fields)

    @property
    def graph(self) -> Any:
        """The graph, or None; deprecated: keep it yourself."""
        return self._of_origin("graph", "graph", "keep the graph yourself")

    @property
    def known_bound(self) -> float | None:
        """A bound that the method itself proved, or None; deprecated, ask for `bound`."""
        return self._of_origin("known_bound", "bound", "ask for bound")

    def _of_origin(self, old: str, new: str, instead: str) -> Any:
        """A field of version 0.1.0, by its old name."""
        text = f"Matching.{old} goes with the next release; {instead}"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        return getattr(self._origin, new)


def _is_spread(mate: Any) -> bool:
    """Whether these are the mates of a distributed graph."""
    return hasattr(mate, "local") and hasattr(mate, "grid")


def _edges_here(mate: Any) -> Any:
    low, high = mate.ids.astype(mate.dtype), mate.local
    own = high > low
    low, high = low[own], high[own]
    order = low.argsort(kind="stable")
    return np.stack((low[order], high[order]), axis=1)


with_public_signature(Matching)

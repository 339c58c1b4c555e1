"""What `degree_factor` returns, and what it asks of its engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from matchwood import engines
from matchwood.answers import with_public_signature
from matchwood.arguments import plain
from matchwood.gate.graph import View
from matchwood.primitives.wide_sums import finite, half_of, ratio


class Plan(NamedTuple):
    """The arguments of Algorithm 2, checked."""

    n: int  # the most neighbours of a vertex
    limit: int  # the most rounds; -1: until maximal
    period: int  # charges are off in round k ...
    uncharged: int  # ... when k mod period is this
    barrier: int  # the probability of a positive charge times 2**32, for random_bit
    seed: int
    by_hash: bool
    directed: bool = False  # some proposals may never be answered
    method: str = "rounds"  # the folder of the method

    def charged(self, k: int) -> bool:
        return k % self.period != self.uncharged


class FactorArrays(NamedTuple):
    """What an engine returns; the arrays live where the view lives."""

    neighbours: Any  # (N, n), -1 for none, the preferred ones first
    weights: Any  # (N, n), 0 for none
    rounds: int
    maximal: bool
    stats: Any = None  # `Stats` of an engine that counts transfers


class Origin(NamedTuple):
    """The graph of a factor, and the arguments that it was found with."""

    view: View | None
    plan: Plan | None
    graph: Any = None  # a Graph that knows whether the view is as it was


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """A [0,n]-factor: every vertex has at most n neighbours.  Unpacks as ``neighbours, weights``.

    Attributes
    ----------
    neighbours : (N, n) integer array
        Row v: the neighbours of v in the factor, heaviest edge first, then -1.
    weights : (N, n) array
        The weights of these edges, then 0.
    rounds : int
        Rounds of proposals; with ``rounds=None`` the paper's M_max.  0 for the greedy method.
    maximal : bool
        True when the method has seen that no edge can be added.  False where it stopped before,
        though the factor may be maximal by chance: `is_maximal_factor` decides.
    directed : bool
        The weight of an edge seen from its two ends may differ.
    stats : Stats, or None
        Transfers between host and devices, where the engine was a `Devices`.

    Notes
    -----
    A factor that `degree_factor` made keeps its graph, for `coverage`, and the arguments of the
    call, for `check`.

    Other functions use its arrays without a check.  So they are read-only on the CPU; copy one to
    change it.  On a GPU they are copies of those that are used.  Can be copied and pickled, with
    its coverage instead of the graph; a factor from a pickle is checked again.
    """

    neighbours: Any
    weights: Any
    rounds: int = 0
    maximal: bool = False
    directed: bool = False
    stats: Any = None
    _origin: Origin | None = field(default=None, kw_only=True)
    _seal: Any = field(default=None, init=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.neighbours, self.weights))

    def __repr__(self) -> str:
        rows, n = self._table("__repr__").shape
        return (
            f"<Factor: [0,{n}], {self.cardinality} edges of {rows} vertices, "
            f"coverage {self.coverage:.3f}, {self.rounds} rounds>"
        )

    @property
    def n(self) -> int:
        """The most neighbours of a vertex."""
        return int(self._table("n").shape[1])

    def _table(self, asked: str) -> Any:
        """The neighbours; an error if a `Factor` made by hand holds no table of integers."""
        table = plain(f"Factor.{asked}", "neighbours", self.neighbours)
        if table.ndim != 2 or table.dtype.kind not in "iu":
            raise ValueError(
                f"Factor.{asked}: neighbours must be integers of shape (N, n), got {table.dtype} "
                f"of shape {table.shape}"
            )
        return table

    @cached_property
    def cardinality(self) -> int:
        """Number of edges."""
        return int((self._table("cardinality") >= 0).sum()) // 2

    @cached_property
    def weight(self) -> float:
        """Sum of the weights of the edges; of a directed factor the means of both directions."""
        return finite("Factor.weight", "the weight of the factor", half_of(self.weights))

    @cached_property
    def coverage(self) -> float:
        """Fraction of the weight of all edges that the factor has; 0 without edges."""
        origin = origin_of(self)
        if origin.view is None:
            raise ValueError("Factor.coverage: this factor does not know its graph")
        if origin.graph is not None:
            origin.graph.require_unchanged("Factor.coverage")
        return ratio(self.weights, origin.view.data)

    def edges(self) -> Any:
        """The edges as a (cardinality, 2) array: smaller end first, ascending.

        Examples
        --------
        >>> import matchwood
        >>> from matchwood.factors import degree_factor
        >>> degree_factor(matchwood.generators.cycle(4), 2).edges().tolist()
        [[0, 1], [0, 3], [1, 2], [2, 3]]
        """
        table = self._table("edges")
        xp = engines.xp(table)
        rows = xp.arange(table.shape[0], dtype=table.dtype)[:, None]
        # ascending within a row; places that are left out are first
        ends = xp.sort(xp.where(table > rows, table, -1), axis=1)
        u, slot = xp.nonzero(ends >= 0)
        return xp.stack((u.astype(ends.dtype), ends[u, slot]), axis=1)

    def check(self, A: Any) -> None:
        """Raise `CheckFailed` unless this is a factor of `A`, maximal if `maximal` is True, and the
        one that the arguments of its call give, if they are known.

        Examples
        --------
        >>> import matchwood
        >>> from matchwood.factors import degree_factor
        >>> A = matchwood.generators.path(4)
        >>> degree_factor(A, 1, rounds=None).check(A)
        """
        checks = engines.load(__package__, "check")
        (checks.check_maximal_factor if self.maximal else checks.check_factor)(A, self)

    def __getstate__(self) -> dict[str, Any]:
        origin = origin_of(self)
        known: dict[str, Any] = {"_seal": None}  # unpickled arrays may be changed
        if origin.view is not None:
            known |= {"coverage": self.coverage, "_origin": Origin(None, origin.plan)}
        return {**self.__dict__, **known}


with_public_signature(Factor)


def origin_of(answer: Any) -> Origin:
    """The graph and the arguments of a `Factor`; an empty `Origin` for anything else."""
    origin = answer._origin if isinstance(answer, Factor) else None
    if origin is None:
        return Origin(None, None)
    if not isinstance(origin, Origin):
        raise TypeError(f"Factor: _origin must be an Origin, got {type(origin).__name__}")
    return origin


class Seal(NamedTuple):
    """The arrays that `degree_factor` made, the user's and ours; with them, no check is needed."""

    neighbours: Any
    weights: Any
    own_neighbours: Any
    own_weights: Any
    view: View | None


def sealed(
    arrays: Iterable[Any], rounds: int, maximal: bool, directed: bool, view: View | None,
    plan: Plan | None = None, graph: Any = None, stats: Any = None,
) -> Factor:  # fmt: skip
    """The `Factor` of neighbours and weights that were found, or checked, for that view."""
    (seen, neighbours), (seen_weights, weights) = map(engines.shown, arrays)
    origin = Origin(view, plan, graph)
    made = Factor(seen, seen_weights, rounds, maximal, directed, stats, _origin=origin)
    object.__setattr__(made, "_seal", Seal(seen, seen_weights, neighbours, weights, view))
    return made


def unsealed(factor: Factor, *views: Any) -> tuple[Any, Any] | None:
    """Our arrays of a factor, if they were found for one of these views (none given: for any).

    None where the factor has other arrays now."""
    seal = factor._seal
    if not isinstance(seal, Seal) or (views and not any(seal.view is view for view in views)):
        return None
    same = seal.neighbours is factor.neighbours and seal.weights is factor.weights
    return (seal.own_neighbours, seal.own_weights) if same else None

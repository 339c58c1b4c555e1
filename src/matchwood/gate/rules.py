"""What the entries of a graph mean: one set of rules for one machine and for ranks.

`Graph` and `DistributedGraph` have these views and facts.  Each supplies its own passes over the
entries; which pass is made when is decided here.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from matchwood import arguments
from matchwood.gate import holding
from matchwood.gate.holding import Keeper
from matchwood.gate.views import View, ones
from matchwood.primitives.inspect import Symmetry, Values

T = TypeVar("T")


class EntryRules(Keeper, abc.ABC):
    """Duplicates: which entries there are, and what they weigh.

    `edges`: these are edges of a list, not entries of a matrix.  `duplicates`: what becomes of
    entries given more than once, as the user said.
    """

    edges: bool
    duplicates: str | None

    def made(self, make: Callable[[], T]) -> T:
        """What `make` returns, read-only: kernels trust it, and users see it."""
        made: T = holding.frozen(make())
        return made

    @property
    @abc.abstractmethod
    def weighted(self) -> bool:
        """Whether values were given; they may not have been read yet."""

    @property
    @abc.abstractmethod
    def ascending(self) -> bool:
        """Whether the rows were given sorted and without duplicates."""

    @abc.abstractmethod
    def entries(self) -> View:
        """The entries as they were given."""

    @abc.abstractmethod
    def given_values(self, caller: str) -> Any:
        """The values as they were given, by `entries`; or None."""

    @abc.abstractmethod
    def canonical(self, data: Any, rule: str = "sum") -> View:
        """The entries with these values, duplicates joined by `rule`."""

    @abc.abstractmethod
    def joined(self, rule: str, caller: str) -> View:
        """The values as weights, duplicates joined by that rule; there must be values."""

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

    @property
    def has_parallel_edges(self) -> bool:
        """Whether edges, not entries of a matrix, are given more than once, without a rule."""
        return self.edges and self.duplicates is None and self.weighted and not self.ascending

    def rule(self, usual: str) -> str:
        """How duplicates are joined: as asked for, or else as is usual."""
        return usual if self.duplicates in (None, "error") else str(self.duplicates)


class GraphRules(EntryRules):
    """Directions, loops, signs and zeros of a square matrix."""

    # Passes over the entries

    @abc.abstractmethod
    def symmetry(self) -> Symmetry:
        """Loops, and whether the pattern is symmetric."""

    @abc.abstractmethod
    def inspected(self, view: View) -> Values:
        """What is known of the values of a view."""

    @abc.abstractmethod
    def union(self, view: View, rule: str) -> View:
        """The view and its mirror in one, without loops; `rule` joins magnitudes."""

    @abc.abstractmethod
    def magnitudes(self, view: View) -> View:
        """The view without loops; its values, where it has some, without signs and zeros."""

    @abc.abstractmethod
    def mirrored(self, view: View) -> View:
        """The transpose."""

    @abc.abstractmethod
    def least(self, values: Any) -> float:
        """The least of these values, of all ranks; there must be some."""

    @abc.abstractmethod
    def diagonal(self, caller: str = "graph") -> Any:
        """The values a_ii, of own vertices on ranks; 0 where none is stored."""

    @abc.abstractmethod
    def raise_infinite(self, view: View, facts: Values, caller: str) -> None:
        """Raise the error that a value is not finite."""

    @abc.abstractmethod
    def refuse_overflow_of_directions(self, view: View, caller: str) -> None:
        """Raise unless all ``|a_ij| + |a_ji|`` are finite."""

    # Facts

    @property
    def loops(self) -> int:
        """Stored entries on the diagonal."""
        return self.symmetry().loops

    @property
    def has_symmetric_pattern(self) -> bool:
        """Whether (i, j) is stored whenever (j, i) is."""
        return self.symmetry().symmetric

    @property
    def has_symmetric_values(self) -> bool:
        """Whether a_ij == a_ji for all i and j."""
        return self.has_symmetric_pattern and (not self.weighted or self.value_facts().symmetric)

    @property
    def largest_magnitude(self) -> float:
        """The largest ``|a_ij|`` off the diagonal, duplicates added up; 1.0 without values."""
        if not self.weighted:
            return 1.0
        facts = self.value_facts()
        return max(facts.maximum, -facts.minimum)

    def value_facts(self) -> Values:
        """What `primitives.inspect` finds out about the values of `directed_weights`."""
        view = self.directed_weights()
        return self.keep("values", lambda: self.inspected(view))

    # Views

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
                return self.union(view, "sum")
            return self.magnitudes(view) if self.loops else view

        return self.keep("undirected", make)

    def undirected_weights(self, caller: str = "graph", *, negative: str = "magnitude") -> View:
        """Neighbours with positive weights; `negative="error"` refuses negative values."""

        def make() -> View:
            if not self.weighted:
                view = self.undirected_pattern()
                return view._replace(data=ones(view.indices))
            view = self.heaviest_weights(caller)
            facts = self._checked_values(view, caller)
            if not facts.symmetric:  # where the values are symmetric, so is the pattern
                return self._both_directions(view, facts, caller)
            if facts.zeros or facts.minimum < 0 or self.loops:  # loops may cost a pass to find
                return self.magnitudes(view)
            return view

        arguments.one_of(caller, "negative", negative, ("magnitude", "error"))
        if negative == "error" and self.weighted:
            self.refuse_negative(caller)
        return self.keep("weights", make)

    def _both_directions(self, view: View, facts: Values, caller: str) -> View:
        """Of a matrix ``|a_ij| + |a_ji|``; of edges the heavier direction, or as was said."""
        rule = self.rule("max") if self.edges else "sum"  # else it is about entries at one place
        union = self.union(view, "max" if rule == "first" else rule)
        if max(-facts.minimum, facts.maximum) > np.finfo(view.data.dtype).max / 2:
            self.refuse_overflow_of_directions(union, caller)
        return union

    def refuse_negative(self, caller: str) -> None:
        """Raise unless all values, loops among them, are finite and at least 0."""
        facts = self._checked_values(self.heaviest_weights(caller), caller)
        least = facts.minimum
        if facts.negative_loop:
            least = min(least, self.least(self.diagonal(caller)))
        if self.has_parallel_edges:  # one that does not count may be negative too
            least = min(least, self.least(self.given_values(caller)))
        if least < 0:
            raise ValueError(
                f"{caller}: weights must not be negative, got {least:g}; "
                "pass abs(A) if the sign does not matter"
            )

    def finite_weights(self, caller: str) -> View:
        """`directed_weights`, of which none is infinite or NaN."""
        view = self.directed_weights(caller)
        facts = self.value_facts()
        if not facts.finite:
            self.raise_infinite(view, facts, caller)
        return view

    def _checked_values(self, view: View, caller: str) -> Values:
        key = "heaviest_values" if self.has_parallel_edges else "values"
        facts = self.keep(key, lambda: self.inspected(view))
        if not facts.finite:
            self.raise_infinite(view, facts, caller)
        return facts

    def transposed_pattern(self) -> View:
        """Arcs j -> i for every stored (i, j); the directed pattern itself where symmetric."""

        def make() -> View:
            view = self.directed_pattern()
            return view if self.has_symmetric_pattern else self.mirrored(view)

        return self.keep("transposed", make)

    def transposed_weights(self, caller: str = "graph") -> View:
        """`transposed_pattern` with values; `directed_weights` itself where they are symmetric."""

        def make() -> View:
            view = self.finite_weights(caller)
            return view if self.has_symmetric_values else self.mirrored(view)

        return self.keep("transposed_weights", make)

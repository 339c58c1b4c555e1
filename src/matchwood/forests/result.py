"""What `linear_forest` returns."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.answers import with_public_signature
from matchwood.arguments import integers
from matchwood.factors import Factor
from matchwood.factors.result import unsealed
from matchwood.primitives.wide_sums import half_of, mean_of_two, ratio


class PathOrder(NamedTuple):
    """What an engine returns; the arrays live where the table lives."""

    perm: Any
    path: Any
    position: Any
    place: Any
    cuts: Callable[[], Any]  # (R, 2) removed edges, in any order, either end first
    seconds: Callable[[], Mapping[str, float]]  # by phase


@dataclass(frozen=True, eq=False, repr=False)
class LinearForest:
    """Disjoint paths that hold every vertex.  Unpacks as ``perm, path, position``.

    Attributes
    ----------
    perm : (N,) integer array
        ``perm[new] = old``: path after path by id, each from its smaller end.  In this order the
        edges of the forest lie next to the diagonal.
    path : (N,) integer array
        The path of each vertex, named by the smaller of its two ends.
    position : (N,) integer array
        The place of each vertex in its path: 1 at the smaller end, then 2, 3, ...
    place : (N,) integer array
        ``place[old] = new``.
    factor : Factor
        The [0,2]-factor that the forest was made from.

    Notes
    -----
    Other functions use the arrays without a check.  So they are read-only on the CPU; copy one to
    change it.  On a GPU they are copies of those that are used.
    """

    perm: Any
    path: Any
    position: Any
    place: Any
    factor: Factor
    _found: PathOrder | None = field(default=None, kw_only=True)
    _shown: tuple[Any, ...] = field(default=(), init=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.perm, self.path, self.position))

    def __repr__(self) -> str:
        return (
            f"<LinearForest: {self.count} paths of {self.perm.shape[0]} vertices, "
            f"{self.removed.shape[0]} cycles cut>"
        )

    @property
    def _xp(self) -> Any:
        return engines.xp(self.perm)

    @cached_property
    def offsets(self) -> Any:
        """Where each path starts in `perm`, and N: path k is ``perm[offsets[k]:offsets[k + 1]]``.

        Paths are in the order of their ids.
        """
        xp = self._xp
        perm, position = self._order("offsets")
        starts = xp.flatnonzero(position[perm] == 1)
        return engines.frozen(xp.concatenate((starts, xp.full(1, perm.size))).astype(perm.dtype))

    def _order(self, asked: str) -> tuple[Any, Any]:
        """`perm` and `position`, checked: in a forest made by hand they may be anything."""
        own = trusted(self)
        if own is not None:
            return own.perm, own.position
        caller = f"LinearForest.{asked}"
        n = int(getattr(self.perm, "size", 0))
        perm = integers(caller, "perm", self.perm, low=0, high=n - 1)
        return perm, integers(caller, "position", self.position, size=n)

    @cached_property
    def count(self) -> int:
        """Number of paths; a vertex without edges is one."""
        return int((integers("LinearForest.count", "position", self.position) == 1).sum())

    @cached_property
    def removed(self) -> Any:
        """The edges that were taken out to cut cycles, (R, 2): smaller end first, ascending."""
        xp = self._xp
        if self._found is None:
            raise ValueError("LinearForest.removed: this forest does not know where it was cut")
        cuts = xp.sort(engines.moved(self._found.cuts(), engines.location(self.perm)), axis=1)
        return engines.frozen(cuts[xp.argsort(cuts[:, 0])])  # no two cuts share an end

    @cached_property
    def removed_weights(self) -> Any:
        """The weights of `removed`, in float64; means of both directions in a directed factor."""
        table, weights = self.factor.neighbours, self.factor.weights
        n = int(getattr(self.perm, "size", 0))
        if not getattr(table, "shape", None) == getattr(weights, "shape", None) == (n, 2):
            raise ValueError(
                f"LinearForest.removed_weights: the arrays of the factor must have shape ({n}, 2)"
            )
        cut = integers("LinearForest.removed_weights", "removed", self.removed.reshape(-1), low=0,
                       high=n - 1)  # fmt: skip
        u, v = cut[::2], cut[1::2]
        there = (table[u] == v[:, None]) * weights[u].astype(np.float64)
        back = (table[v] == u[:, None]) * weights[v].astype(np.float64)
        return mean_of_two(there.sum(axis=1), back.sum(axis=1))

    @cached_property
    def weight(self) -> float:
        """Sum of the weights of the forest's edges."""
        return self.factor.weight - float(self.removed_weights.sum())

    @cached_property
    def coverage(self) -> float:
        """Fraction of the weight of all edges of the graph that the forest has; 0 without edges."""
        covered = self.factor.coverage
        if covered <= 0:
            return 0.0
        if math.isfinite(half_of(self.factor.weights)):
            return covered * (self.weight / self.factor.weight)
        return covered * (1 - 2 * ratio(self.removed_weights, self.factor.weights))

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Time of each phase: ``factor`` (where it was computed here), ``paths``, ``cycles``
        and ``permutation``.  On the GPU this waits for the device."""
        return dict(self._found.seconds()) if self._found is not None else {}

    def edges(self) -> Any:
        """The edges as an (M, 2) array, in the order of `perm`.

        Examples
        --------
        >>> import matchwood
        >>> matchwood.linear_forest(matchwood.generators.cycle(4)).edges().tolist()
        [[0, 3], [3, 2], [2, 1]]
        """
        xp = self._xp
        perm, position = self._order("edges")
        joined = xp.flatnonzero(position[perm[1:]] > 1)
        return xp.stack((perm[joined], perm[joined + 1]), axis=1)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: values that engines compute when first read are computed now."""
        known = {"removed": self.removed, "seconds": self.seconds}
        return {**self.__dict__, **known, "_found": None, "_shown": ()}

    def check(self, A: Any) -> None:
        """Raise `CheckFailed` unless this is the linear forest of its factor of `A`.

        Examples
        --------
        >>> import matchwood
        >>> A = matchwood.generators.cycle(4)
        >>> matchwood.linear_forest(A).check(A)
        """
        from matchwood.forests.check import check_linear_forest

        check_linear_forest(A, self)


with_public_signature(LinearForest)


def of_order(found: PathOrder, factor: Factor) -> LinearForest:
    """The forest that was found; the user gets its arrays read-only, or copies."""
    pairs = [engines.shown(array) for array in found[:4]]
    perm, path, position, place = shown = tuple(seen for seen, _ in pairs)
    own = dict(zip(PathOrder._fields, (own for _, own in pairs), strict=False))
    made = LinearForest(perm, path, position, place, factor, _found=found._replace(**own))
    object.__setattr__(made, "_shown", shown)
    return made


def trusted(forest: LinearForest) -> PathOrder | None:
    """Our arrays of a forest, if it still has those, and the factor, that were found; else None."""
    has = (forest.perm, forest.path, forest.position, forest.place)
    same = len(forest._shown) == 4 and all(map(operator.is_, forest._shown, has))
    whole = same and isinstance(forest.factor, Factor) and unsealed(forest.factor) is not None
    return forest._found if whole else None

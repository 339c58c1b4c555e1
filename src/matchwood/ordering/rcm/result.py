"""What `rcm_ordering` returns."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matchwood import arguments, engines
from matchwood.ordering.measure import Measures
from matchwood.ordering.permutation import as_permutation, inverse


@dataclass(frozen=True)
class Ordering:
    """An order of the vertices, how good it is, and how it was found.

    Attributes
    ----------
    perm : (n,) integer array
        ``perm[new] = old``.
    place : (n,) integer array
        ``place[old] = new``, the inverse of `perm`; made when first asked for.
    before, after : Measures
        Bandwidth, profile and wavefronts in the given order and in the new one.
    counters : dict
        ``method`` used for the largest component, ``components``, ``levels`` (summed over the
        components), ``front`` (average vertices per level), ``searches`` (for starts),
        ``threads``; of batches ``generated``, ``dequeued``, ``executed``, ``empty``,
        ``rediscoveries`` that removed children and children ``removed``; shares of time in
        ``discover``, ``sort``, ``rediscover``, ``signal``, ``output``, ``stall``, as far as the
        method has such stages.
    seconds : dict
        ``search`` for starts and ``order``.
    """

    perm: Any
    before: Measures
    after: Measures
    counters: Mapping[str, Any]
    seconds: Mapping[str, float]

    @functools.cached_property
    def place(self) -> Any:
        """``place[old] = new``, the inverse of `perm`.

        Examples
        --------
        >>> import matchwood
        >>> found = matchwood.rcm_ordering((3, [[0, 2], [2, 1]]))
        >>> found.perm.tolist(), found.place.tolist()
        ([1, 2, 0], [2, 0, 1])
        """
        perm = arguments.integers("Ordering.place", "perm", self.perm)
        where = engines.location(perm)
        return inverse(as_permutation(perm, perm.size, "Ordering.place", where)).astype(perm.dtype)

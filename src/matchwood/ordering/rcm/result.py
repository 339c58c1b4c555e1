"""What `rcm_ordering` returns."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        place = inverse(as_permutation(perm, perm.size, "Ordering.place", where))
        place = place.astype(perm.dtype)
        return place.view(type=CallableArray if where == "cpu" else _gpu_callable_array())


def _called(array: Any) -> Any:
    warnings.warn(
        "Ordering.place is an array now, and calling it will go with the next release",
        DeprecationWarning,
        stacklevel=2,
    )
    return array.view(type=np.ndarray if isinstance(array, np.ndarray) else engines.cupy().ndarray)


class CallableArray(np.ndarray[Any, Any]):
    """An array that may still be called, as `Ordering.place` was in version 0.1."""

    __call__ = _called


@functools.cache
def _gpu_callable_array() -> Any:
    """The same for a GPU; CuPy is imported only where it is needed."""
    return type("CallableArray", (engines.cupy().ndarray,), {"__call__": _called})

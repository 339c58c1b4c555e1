"""The methods of weighted matching, how one is run, and what makes an array of mates valid.

``mate[v]`` is the vertex that v is matched with, -1 for none, and mates are mutual.  On the GPU the
rule is in matching/gpu.py + gpu.cu.  The public functions, the bound and the checks import this
file; it imports none of them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.arguments import INDEX, integers, plain
from matchwood.errors import CheckFailed
from matchwood.primitives.wide_sums import finite, total

METHODS = (
    "auto",
    "greedy",
    "dominant",
    "suitor",
    "augmented",
    "streaming",
    "random_weighted",
    "exact",
)
AUTO = {  # the fastest of each engine
    "reference": "greedy",
    "cpu": "suitor",
    "gpu": "suitor",
    "devices": "dominant",
}
LARGEST = ("hopcroft_karp", "blossom")  # of maximum_matching
GREEDY = ("greedy", "dominant", "suitor")  # three methods that find the greedy matching


class EngineMatching(NamedTuple):
    """What an engine's ``match(view, seed, by_hash, threads)`` returns, or a plain tuple of it."""

    mate: Any  # (n,) of the view's index type, where the view lives; -1 for free vertices
    weight: float
    rounds: int = 0
    bound: float | None = None  # proved upper bound on any matching, if the method has one
    own: Any = None  # (n,) weight of the edge at each vertex, if the method knows it
    stats: Any = None  # `Stats` of an engine that counts transfers


class Origin(NamedTuple):
    """How a matching was found, as far as is known.  `Matching.bound` and `check` need it."""

    graph: Any = None  # a Graph; None where the bound is known
    bound: float | None = None  # proved by the method itself
    weighted: bool | None = None  # is the weight that of the edges, or their number?
    seed: int | None = None  # of the order of equal weights; None: the method is not checked
    ties: str = "hash"
    rounds: int | None = None  # of "augmented": the most rounds allowed


def load(method: str, engine: str) -> Any:
    """The module with that method's engine; `EngineUnavailable` where it has none."""
    return engines.load(f"{__package__}.{AUTO[engine] if method == 'auto' else method}", engine)


def heavy_matching(
    view: Any, engine: str = "cpu", threads: int | None = None, seed: int = 0
) -> EngineMatching:
    """The greedy matching of a view, ties by hash: what `weighted_matching` returns."""
    return EngineMatching(*load("auto", engine).match(view, seed, True, threads))


def origin_of(answer: Any) -> Origin:
    """How a `Matching` was found; an empty `Origin` for anything else."""
    found = vars(answer).get("_origin") if hasattr(answer, "__dict__") else None
    return found if isinstance(found, Origin) else Origin()


# Arrays of mates


def mates_of(caller: str, answer: Any) -> Any:
    """The array of mates of a `Matching`, or as given; integers of any width."""
    mate = getattr(answer, "mate", answer)
    if not (hasattr(mate, "dtype") and hasattr(mate, "ndim")):
        mate = plain(caller, "mate", mate)
        if mate.size == 0:
            mate = mate.astype(np.int64)  # an empty list has no type of its own
    mate = plain(caller, "mate", mate)
    if mate.ndim != 1:
        return mate  # `fault` names the shape
    return integers(caller, "mate", mate)


def mates_in(caller: str, answer: Any, n: int, place: str, kind: Any) -> Any:
    """The mates of n vertices, checked, moved to that engine and cast to that index type."""
    mate = engines.moved(mates_of(caller, answer), place)
    wrong = fault(mate, n)
    if wrong:
        raise ValueError(f"{caller}: {wrong}")
    return engines.xp(mate).ascontiguousarray(mate.astype(kind, copy=False))


def fault(mate: Any, n: int) -> str | None:
    """What is wrong with the mates of n vertices, naming the first; None when nothing is."""
    if mate.shape != (n,):
        return f"mate must have {n} elements, got shape {mate.shape}"
    if n == 0:
        return None
    if mate.dtype.kind == "u":  # as signed integers, large ones would wrap around, even to -1
        outside = mate >= n
        if bool(outside.any()):
            v = int(outside.argmax())
            return f"mate[{v}] is {int(mate[v])}, no vertex of 0..{n - 1} and not -1"
    if mate.dtype.name not in INDEX:  # narrow types cannot count the vertices
        mate = mate.astype(np.int64)
    if engines.location(mate) == "gpu":
        there = engines.load(__package__, "gpu")
        code, v = there.first_fault(mate, n)
        outside, not_mutual = code == there.OUTSIDE, code != 0
    else:
        outside, not_mutual, v = _first_fault(mate, n)
    if outside:
        return f"mate[{v}] is {int(mate[v])}, no vertex of 0..{n - 1} and not -1"
    if not_mutual:
        u = int(mate[v])
        if u == v:
            return f"mate[{v}] is {v} itself"
        return f"mate[{v}] is {u}, but mate[{u}] is {int(mate[u])}"
    return None


def _first_fault(mate: Any, n: int) -> tuple[bool, bool, int]:
    """Whether a mate is no vertex, whether one is not mutual, and the first such vertex."""
    outside = (mate < -1) | (mate >= n)
    if outside.any():
        return True, False, int(outside.argmax())
    ends = np.arange(n, dtype=mate.dtype)
    not_mutual = (mate >= 0) & ((mate[mate] != ends) | (mate == ends))
    return False, bool(not_mutual.any()), int(not_mutual.argmax())


def rows_of(view: Any) -> Any:
    xp = engines.xp(view.indices)
    if xp is np:
        return np.repeat(np.arange(view.n), np.diff(view.indptr))
    entries = xp.arange(view.nnz, dtype=view.indptr.dtype)
    return xp.searchsorted(view.indptr, entries, side="right") - 1


def checked_mates(view: Any, answer: Any, caller: str, what: str) -> tuple[Any, Any, Any]:
    """The mates as int64, where the view lives; the row of each entry; which entries are matched.

    `CheckFailed` where two mates are not joined by an edge."""
    xp = engines.xp(view.indices)
    mate = engines.moved(mates_of(caller, answer), engines.location(view.indices))
    wrong = fault(mate, view.n)
    if wrong:
        raise CheckFailed(f"{what}: {wrong}")
    mate = mate.astype(np.int64)
    tails = rows_of(view)
    used = xp.flatnonzero(mate[tails] == view.indices)
    joined = xp.zeros(view.n, bool)
    joined[tails[used]] = True
    not_joined = (mate >= 0) & ~joined
    if bool(not_joined.any()):
        v = int(not_joined.argmax())
        u = int(mate[v])
        raise CheckFailed(f"{what}: {v} and {u} are matched, but ({v}, {u}) is no edge")
    return mate, tails, used


def settled_weight(caller: str, view: Any, mate: Any, weight: float) -> float:
    """The weight that an engine found, or where that overflowed, the sum of the edges' weights.

    Engines count edges twice, so they overflow earlier.  Raises if the second sum overflows, too.
    """
    if math.isfinite(weight):
        return weight
    own = view.data[mate[rows_of(view)] == view.indices]
    return finite(caller, "the weight of the matching", total(own.astype(np.float64) / 2))


def check_bound(weight: float, heaviest: float, bound: float, rounding: float) -> None:
    """Raise if the matching, or a single edge, is heavier than the bound."""
    if not weight <= bound * (1 + rounding):  # also where it is NaN
        raise CheckFailed(f"matching: the weight {weight} exceeds its bound {bound}")
    if not heaviest <= bound * (1 + rounding):
        raise CheckFailed(f"matching: an edge weighs {heaviest}, more than the bound {bound}")

"""The methods of weighted matching: their names, how one is run, and what a result stores.

The public functions, the bound and the checks import this file; it imports none of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from matchwood import engines

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


def heavy_matching(view: Any, engine: str = "cpu", threads: int | None = None) -> EngineMatching:
    """The greedy matching of a view, seed 0 and ties by hash: what `weighted_matching` returns."""
    return EngineMatching(*load("auto", engine).match(view, 0, True, threads))


def origin_of(answer: Any) -> Origin:
    """How a `Matching` was found; an empty `Origin` for anything else."""
    found = vars(answer).get("_origin") if hasattr(answer, "__dict__") else None
    return found if isinstance(found, Origin) else Origin()

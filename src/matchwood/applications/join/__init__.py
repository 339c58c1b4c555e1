"""Fuzzy set-similarity join; its public names are those of matchwood/join.py.

fuzzy.py is the entry, best.py finds the best pairs.  The steps, one folder each, with what goes in
and out in its `__init__.py`:

    collecting     from text to numbers: `Records` and `Elements`
    candidates     which pairs may be similar, from an index of tokens
    probing        record by record: candidates are settled or verified; all pairs, or the best
    similarity     of two elements
    verification   of two records
    ordering       the pairs in the user's order, with scores

result.py holds what is returned.  An engine
(reference.py, cpu.py, gpu.py + gpu.cu) takes `Prepared` of collecting and a `Choice`, and yields
pairs as `Raw`, by two functions:

    blocks(prepared, choice, whole)                    all pairs, or the best of each left record
    above(prepared, choice, delta, raise_to, sample)   pairs above a threshold, for the best k

This file has what all steps share, and the options of a call.  Both sides of a join share one
dictionary, so equal elements have equal ids, and equal tokens too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.applications.join.candidates import FILTERS
from matchwood.applications.join.verification import METHODS, MODES
from matchwood.engines.ranks import agreement
from matchwood.gate.distributed import require_comm

ONE = 1 << 40  # the weight 1.  Similarities and matching weights are integers in units of 2^-40
STEP = 0.1  # between two thresholds that are tried for the best k
DELTA = 0.7  # where neither delta nor k nor per_left is given
COUNTED = ("generated", "refined", "verified", "accepted_by_bound", "rejected_by_bound",
           "solved_exactly")  # fmt: skip
# those of `fuzzy_join`, which has them in its signature
DEFAULTS: dict[str, Any] = {
    "delta": None, "k": None, "per_left": None, "similarity": "jaccard", "q": 3,
    "verify": "certified", "mode": "weight", "on": None, "left_on": None, "right_on": None,
    "by": None, "separator": None, "normalise": None, "filters": "joint", "scores": True,
    "exclude_equal": False, "shard": None, "limit": None, "engine": None, "threads": None,
}  # fmt: skip

COMPARED = (  # the same on all ranks; only the first looks at the others
    "delta", "k", "per_left", "verify", "mode", "filters", "scores", "exclude_equal", "shard",
    "limit", "engine",
)  # fmt: skip


class Records(NamedTuple):
    """The sets of one side, in the user's order."""

    starts: np.ndarray  # int64[n + 1]: record i has the elements starts[i] to starts[i + 1]
    elements: np.ndarray  # int32: distinct ids within a record, ascending by (token count, id)


class Elements(NamedTuple):
    """The distinct elements of both sides."""

    starts: np.ndarray  # int64[m + 1]: element e has the tokens starts[e] to starts[e + 1]
    tokens: np.ndarray  # int32, ascending within an element: tokens numbered by (frequency, text)
    text_starts: np.ndarray  # int64[m + 1]; the edit similarities only, else one zero
    text: np.ndarray  # uint32: code points; the edit similarities only, else empty


class Raw(NamedTuple):
    """Pairs in no order."""

    left: np.ndarray  # int32
    right: np.ndarray  # int32
    weight: np.ndarray  # int64


NO_PAIRS = Raw(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))


def together(parts: Sequence[Raw]) -> Raw:
    """The pairs of all parts."""
    return Raw(*(np.concatenate(arrays) for arrays in zip(NO_PAIRS, *parts, strict=True)))


@dataclass
class Choice:
    """The options of a call, and what the engine counted."""

    caller: str
    delta: float
    k: int | None
    per_left: int | None
    filters: str
    verify: str
    mode: str
    scores: bool
    exclude_equal: bool
    shard: tuple[int, int]
    limit: int | None
    threads: int | None
    groups: tuple[np.ndarray, ...] | None = None
    stats: dict[str, Any] = field(default_factory=dict)

    def count(self, found: int) -> None:
        """Raise when more pairs were found than `limit` allows."""
        if self.limit is not None and found > self.limit:
            raise ValueError(
                f"{self.caller}: limit must be at least the number of pairs: {found} were found "
                f"before the join was stopped, and limit is {self.limit}; raise delta or limit, or "
                "take the pairs block by block with iter_fuzzy_join"
            )


def with_defaults(caller: str, options: dict[str, Any]) -> dict[str, Any]:
    """All options of `fuzzy_join`, with these among them; TypeError for one that it has not."""
    for name in options:
        if name not in DEFAULTS:
            raise TypeError(f"{caller}: unknown argument {name!r}")
    return {**DEFAULTS, **options}


def read_choice(caller: str, options: dict[str, Any]) -> Choice:
    """Check the options that do not depend on the data."""
    k, per_left, delta = (options[name] for name in ("k", "per_left", "delta"))
    if k is not None and per_left is not None:
        raise ValueError(f"{caller}: k and per_left cannot both be given")
    k = None if k is None else arguments.count(caller, "k", k, 1)
    per_left = None if per_left is None else arguments.count(caller, "per_left", per_left, 1)
    if delta is None:
        delta = DELTA if k is None and per_left is None else 0.0
    else:
        delta = arguments.real(caller, "delta", delta, 0.0, 1.0)
        if delta == 0.0 and k is None and per_left is None:
            raise ValueError(f"{caller}: delta must be above 0 and at most 1, got 0")
    limit = options["limit"]
    return Choice(
        caller,
        delta,
        k,
        per_left,
        arguments.one_of(caller, "filters", options["filters"], FILTERS),
        arguments.one_of(caller, "verify", options["verify"], METHODS),
        arguments.one_of(caller, "mode", options["mode"], MODES),
        arguments.flag(caller, "scores", options["scores"]),
        arguments.flag(caller, "exclude_equal", options["exclude_equal"]),
        _shard(caller, options["shard"], k),
        None if limit is None else arguments.count(caller, "limit", limit),
        options["threads"],
    )


def _shard(caller: str, shard: Any, k: int | None) -> tuple[int, int]:
    if shard is None:
        return 0, 1
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise TypeError(f"{caller}: shard must be (part, parts), got {arguments.shown(shard)}")
    parts = arguments.count(caller, "shard[1]", shard[1], 1)
    part = arguments.count(caller, "shard[0]", shard[0])
    if part >= parts:
        got = arguments.shown(shard)
        raise ValueError(f"{caller}: shard must be (part, parts) with part < parts, got {got}")
    if k is not None and parts > 1:
        raise ValueError(f"{caller}: k looks at all pairs and has no shards; join with delta")
    return part, parts


def shard_of_rank(comm: Any, options: dict[str, Any]) -> tuple[int, int]:
    """The shard of this rank; all ranks raise where the options are wrong on one of them."""
    caller = "fuzzy_join"
    require_comm(comm, caller)
    agreement.same(comm, caller, **{name: options[name] for name in COMPARED})
    for name in ("k", "shard"):
        if options[name] is not None:
            raise ValueError(f"{caller}: {name} cannot be given with comm, whose ranks are shards")

    def check() -> None:
        read_choice(caller, options)
        engines.resolve("cpu", options["engine"], caller, options["threads"])

    agreement.together(comm, check)
    return comm.rank, comm.size

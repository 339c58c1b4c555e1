"""Fuzzy set-similarity join; its public names are those of matchwood/join.py.

fuzzy.py is the entry.  The steps, one folder each, with what goes in and out in its `__init__.py`:

    collecting     from text to numbers: `Records` and `Elements`
    candidates     which pairs may be similar, from an index of tokens
    similarity     of two elements
    verification   of two records
    top            the best pairs of all, or of each left record
    ordering       the pairs in the user's order, with scores

options.py reads and checks the options, result.py holds what is returned.  An engine
(reference.py, cpu.py, gpu.py + gpu.cu) takes `Prepared` of collecting and a `Choice`, and yields
pairs as `Raw`, by two functions:

    blocks(prepared, choice, whole)                    all pairs, or the best of each left record
    above(prepared, choice, delta, raise_to, sample)   pairs above a threshold, for the best k

This file has what all steps share.  Both sides of a join share one dictionary, so equal elements
have equal ids, and equal tokens too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

ONE = 1 << 40  # the weight 1.  Similarities and matching weights are integers in units of 2^-40


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

"""engine="reference": every pair is compared (reference.py), then options choose among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.errors import EngineUnavailable
from matchwood.join.choice import Choice
from matchwood.join.collection import Collection

EVERY = 1e-12  # a delta that every pair with something in common reaches


def chosen(
    reference: Any, choice: Choice, prepared: Any, left: Collection, right: Collection | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """left, right and score, in the order that `fuzzy_join` promises."""
    if choice.verify == "streaming" or choice.mode == "bound" or choice.shard[1] > 1:
        raise EngineUnavailable(
            f"{choice.caller}: streaming, bounds and shards have no 'reference' engine"
        )
    method = "exact" if choice.verify == "early" else choice.verify
    found = reference.fuzzy_join(
        _texts(left),
        None if right is None else _texts(right),
        delta=max(choice.delta, EVERY),
        similarity=prepared.similarity,
        q=prepared.q,
        method=method,
    )
    if choice.per_left is not None and right is None:
        found = [*found, *((j, i, score) for i, j, score in found)]
    if choice.exclude_equal:
        found = [pair for pair in found if pair[2] < 1.0]
    if choice.groups is not None:
        mine, theirs = choice.groups[0], choice.groups[-1]
        found = [p for p in found if mine[p[0]] == theirs[p[1]] >= 0]
    choice.count(len(found))
    found = _best(found, choice)
    left_rows, right_rows, scores = zip(*found, strict=True) if found else ((), (), ())
    return np.array(left_rows, np.int64), np.array(right_rows, np.int64), np.array(scores, float)


def _texts(side: Collection) -> list[list[str]]:
    return [[str(element) for element in side.record(row)] for row in range(len(side))]


def _best(found: list[Any], choice: Choice) -> list[Any]:
    if choice.k is not None:
        return sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1]))[: choice.k]
    if choice.per_left is None:
        return sorted(found)
    kept: list[Any] = []
    counts: dict[int, int] = {}
    for pair in sorted(found, key=lambda pair: (pair[0], -pair[2], pair[1])):
        counts[pair[0]] = counts.get(pair[0], 0) + 1
        if counts[pair[0]] <= choice.per_left:
            kept.append(pair)
    return kept

"""The options of a join and its two sides, checked, as engines read them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood import arguments
from matchwood.applications.join import Choice
from matchwood.applications.join.candidates import FILTERS
from matchwood.applications.join.collecting import Collection, inputs, make
from matchwood.applications.join.verification import METHODS, MODES

DELTA = 0.7  # where neither delta nor k nor per_left is given
# those of `fuzzy_join`, which has them in its signature
DEFAULTS: dict[str, Any] = {
    "delta": None, "k": None, "per_left": None, "similarity": "jaccard", "q": 3,
    "verify": "certified", "mode": "weight", "on": None, "left_on": None, "right_on": None,
    "by": None, "separator": None, "normalise": None, "filters": "joint", "scores": True,
    "exclude_equal": False, "shard": None, "limit": None, "engine": None, "threads": None,
}  # fmt: skip


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


def read_sides(
    caller: str, left: Any, right: Any, options: dict[str, Any]
) -> tuple[Collection, Collection | None]:
    """Both sides as collections; None on the right for a join with itself."""
    on, left_on, right_on = (options[name] for name in ("on", "left_on", "right_on"))
    if on is not None and (left_on is not None or right_on is not None):
        raise ValueError(f"{caller}: give on, or left_on and right_on, not both")
    if right is None and right_on is not None:
        raise ValueError(f"{caller}: right_on needs a right table")
    mine, theirs = on if left_on is None else left_on, on if right_on is None else right_on
    first = _side(caller, "left", left, mine, options)
    if right is None:
        return first, None
    same = mine is theirs or (isinstance(mine, (str, int)) and mine == theirs)
    if right is left and same:  # read once
        return first, first
    second = _side(caller, "right", right, theirs, options)
    if (first.similarity, first.q) != (second.similarity, second.q):
        raise ValueError(
            f"{caller}: both collections must be made with one similarity and q, got "
            f"{first.similarity!r}, {first.q} and {second.similarity!r}, {second.q}"
        )
    both = first.table.distinct and second.table.distinct
    if both and first.table.are_text != second.table.are_text:
        raise TypeError(f"{caller}: one side holds text and the other integers")
    return first, second


def _side(caller: str, name: str, data: Any, on: Any, options: dict[str, Any]) -> Collection:
    similarity, q = options["similarity"], options["q"]
    if isinstance(data, Collection):
        for option in ("separator", "normalise"):
            if options[option] is not None:
                raise ValueError(
                    f"{caller}: {option} belongs to collection(...), and {name} is one already"
                )
        return data
    return make(data, caller, name, similarity, q, on, options["separator"], options["normalise"])


def read_groups(
    caller: str, by: Any, left: Collection, right: Collection | None
) -> tuple[np.ndarray, ...] | None:
    """A number for each record, the same for equal values; -1 where the value is missing."""
    if by is None:
        return None
    sides = (left,) if right is None else (left, right)
    if isinstance(by, Iterator):  # it is read more than once
        by = list(itertools.chain(by))
    known: dict[Any, int] = {}
    found = []
    for i, side in enumerate(sides):
        values = _values(caller, by, i, side, len(sides))
        if len(values) != len(side):
            raise ValueError(
                f"{caller}: by must have a value for each record, got {len(values)} for {len(side)}"
            )
        try:
            numbers = [
                -1 if inputs.is_missing(v) else known.setdefault(v, len(known)) for v in values
            ]
        except Exception as error:  # whatever comparing them raises
            raise TypeError(
                f"{caller}: by must hold values that can be compared: {error}"
            ) from error
        found.append(np.array(numbers, np.int64).reshape(-1))
    return tuple(found)


def _values(caller: str, by: Any, side: int, collection: Collection, sides: int) -> list[Any]:
    name = ("left", "right")[side]
    if inputs.is_table(collection.data) and (isinstance(by, str) or not _iterable(by)):
        return inputs.column(collection.data, caller, name, by)
    if isinstance(by, str):
        raise TypeError(f"{caller}: by names a column, and {name} is no table")
    if inputs.is_table(collection.data) and all(isinstance(one, str) for one in by):
        columns = [inputs.column(collection.data, caller, name, one) for one in by]
        rows = zip(*columns, strict=True)
        return [None if any(map(inputs.is_missing, row)) else row for row in rows]
    if sides == 2:
        if not isinstance(by, (tuple, list)) or len(by) != 2:
            raise TypeError(f"{caller}: by must be a pair of sequences, one for each side")
        by = by[side]
    if isinstance(by, (str, bytes)) or not _iterable(by):
        kind = type(by).__name__
        raise TypeError(f"{caller}: by must hold a value for each record of {name}, got {kind}")
    return inputs.values(by, caller, "by")


def _iterable(value: Any) -> bool:
    """Whether it can be iterated over; memoryviews of some formats raise NotImplementedError."""
    try:
        iter(value)
    except (TypeError, NotImplementedError):
        return False
    return True

"""The rows of two tables side by side, one row for each pair: what `Pairs.merge` returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join.collecting import inputs
from matchwood.arguments import shown

SCORE = "score"  # the column that is added


class Placed(NamedTuple):
    """Which rows stand side by side; -1 where there is no partner."""

    left: np.ndarray
    right: np.ndarray
    score: np.ndarray | None
    how: str


def checked_suffixes(suffixes: Any) -> tuple[str, str]:
    texts = isinstance(suffixes, (tuple, list)) and all(isinstance(x, str) for x in suffixes)
    if not texts or len(suffixes) != 2:
        raise ValueError(f"merge: suffixes must be two texts, got {shown(suffixes)}")
    return suffixes[0], suffixes[1]


def readable(name: str, given: Any) -> tuple[str, Any]:
    """(kind, data): a table of one of the packages, or a column or sequence as a list."""
    if not inputs.is_table(given):
        return "list", inputs.values(given, "merge", name)
    kind = type(given).__module__.partition(".")[0]
    if kind not in _TABLES:
        raise TypeError(
            f"merge: {name} must be a table of pandas, polars or Arrow, or a list, "
            f"got {type(given).__name__}"
        )
    columns = [given.iloc[:, i] for i in range(given.shape[1])] if kind == "pandas" else [given]
    for part in columns:
        inputs.require_valid(part, "merge", name)
    return kind, given


def merged(kind: str, left: Any, right: Any, placed: Placed, suffixes: tuple[str, str]) -> Any:
    """A table of this kind; for lists a list of tuples (left, right, score)."""
    if kind != "list":
        return _TABLES[kind](left, right, placed, suffixes)
    mine = [left[i] for i in placed.left.tolist()]
    if placed.how == "anti":
        return mine
    partners = [None if j < 0 else right[j] for j in placed.right.tolist()]
    scores = [None] * len(mine) if placed.score is None else placed.score.tolist()
    return list(zip(mine, partners, scores, strict=True))


def _labels(mine: list[Any], theirs: list[Any], placed: Placed, suffixes: tuple[str, str]) -> Any:
    """New names for columns that both tables have, or that are called like the one added."""
    added = set() if placed.score is None else {SCORE}
    both = (set(mine) & set(theirs)) | added
    ours = [f"{name}{suffixes[0]}" if name in both else name for name in mine]
    others = [f"{name}{suffixes[1]}" if name in both else name for name in theirs]
    twice = (set(ours) & set(others)) | ((set(ours) | set(others)) & added)
    if twice:
        raise ValueError(
            f"merge: suffixes must tell columns apart, got {shown(suffixes)} and the column "
            f"{shown(min(twice, key=str))} twice"
        )
    return ours, others


def _pandas(left: Any, right: Any, placed: Placed, suffixes: tuple[str, str]) -> Any:
    import pandas

    mine = left.iloc[placed.left].reset_index(drop=True)
    if placed.how == "anti":
        return mine
    there = pandas.Series(placed.right)
    theirs = right.reset_index(drop=True).reindex(there.where(there >= 0)).reset_index(drop=True)
    mine.columns, theirs.columns = _labels(
        list(mine.columns), list(theirs.columns), placed, suffixes
    )
    score = [] if placed.score is None else [pandas.Series(placed.score, name=SCORE)]
    return pandas.concat([mine, theirs, *score], axis=1)


def _polars(left: Any, right: Any, placed: Placed, suffixes: tuple[str, str]) -> Any:
    import polars

    mine = left[placed.left]
    if placed.how == "anti":
        return mine
    places = polars.Series("row", placed.right)
    places = places.set(places < 0, None)
    theirs = right.select(polars.all().gather(places))
    mine.columns, theirs.columns = _labels(mine.columns, theirs.columns, placed, suffixes)
    joined = polars.concat([mine, theirs], how="horizontal")
    if placed.score is None:
        return joined
    return joined.with_columns(polars.Series(SCORE, placed.score))


def _arrow(left: Any, right: Any, placed: Placed, suffixes: tuple[str, str]) -> Any:
    import pyarrow

    mine = left.take(pyarrow.array(placed.left))
    if placed.how == "anti":
        return mine
    theirs = right.take(pyarrow.array(placed.right, mask=placed.right < 0))
    ours, others = _labels(mine.column_names, theirs.column_names, placed, suffixes)
    score = [] if placed.score is None else [pyarrow.array(placed.score)]
    names = [*ours, *others, *([SCORE] if score else [])]
    return pyarrow.table([*mine.columns, *theirs.columns, *score], names=names)


_TABLES = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}

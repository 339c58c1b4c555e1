"""The result of a join: pairs of rows with scores, as tables, merged rows or a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments
from matchwood.applications.join import ONE
from matchwood.applications.join.check import check_fuzzy_join
from matchwood.applications.join.collecting import inputs
from matchwood.arguments import shown
from matchwood.gate.graph import graph

SCORE = "score"  # the column that is added


class Pairs:
    """Pairs of similar records: arrays that unpack as three, ``left, right, score = pairs``.

    Attributes
    ----------
    left, right : int64 arrays
        Rows of the records.
    score : float64 array, or None where no scores were asked for
    stats : dict
        What the join did: candidates generated, refined and verified, how they were decided,
        seconds by phase.
    """

    __slots__ = ("left", "options", "right", "score", "shape", "stats")

    def __init__(
        self,
        left: np.ndarray,
        right: np.ndarray,
        score: np.ndarray | None,
        shape: tuple[int, int] | None,
        stats: dict[str, Any],
        options: dict[str, Any],
    ) -> None:
        self.left = left
        self.right = right
        self.score = score
        self.shape = shape  # records of both sides; the second is -1 for a join with itself
        self.stats = stats
        self.options = options

    def __iter__(self) -> Iterator[Any]:
        return iter((self.left, self.right, self.score))

    def __len__(self) -> int:
        return int(np.size(self.left))

    def __repr__(self) -> str:
        return f"Pairs({len(self)} pairs)"

    def _trusted(self, caller: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """left, right and score, checked: anyone may have written to them since the join."""
        n, m = self.shape or (None, None)
        last = [None if size is None else size - 1 for size in (n, n if m == -1 else m)]
        left = arguments.integers(caller, "left", self.left, low=0, high=last[0])
        right = arguments.integers(caller, "right", self.right, size=left.size, low=0, high=last[1])
        score = self.score
        if score is not None:
            score = arguments.numbers(caller, "score", score, size=left.size)
        return left, right, score

    def _columns(self, caller: str) -> dict[str, np.ndarray]:
        names = ("left", "right", "score")
        columns = zip(names, self._trusted(caller), strict=True)
        return {name: array for name, array in columns if array is not None}

    def to_pandas(self) -> Any:
        """A pandas DataFrame with the columns left, right, score."""
        import pandas

        return pandas.DataFrame(self._columns("to_pandas"))

    def to_polars(self) -> Any:
        """A polars DataFrame with the columns left, right, score."""
        import polars

        return polars.DataFrame(self._columns("to_polars"))

    def to_arrow(self) -> Any:
        """A pyarrow Table with the columns left, right, score."""
        import pyarrow

        return pyarrow.table(self._columns("to_arrow"))

    def merge(
        self,
        left: Any,
        right: Any = None,
        how: str = "inner",
        suffixes: tuple[str, str] = ("_left", "_right"),
    ) -> Any:
        """The rows of both tables side by side, one row for each pair, with the score.

        Parameters
        ----------
        left, right : tables of pandas, polars or Arrow, or columns and lists
            What was joined; `right` None for a join with itself.
        how : {"inner", "left", "anti"}
            "left" keeps left rows without a partner, "anti" has only those.  In a join with itself
            these are rows that are in no pair at all, on neither side.
        suffixes : two texts
            For columns that both tables have, and for those called "score".

        Returns
        -------
        A table of the kind of `left`; for lists a list of tuples (left, right, score).

        Raises
        ------
        TypeError, ValueError
            If these are not what was joined, or two columns would have one name.
        """
        arguments.one_of("merge", "how", how, ("inner", "left", "anti"))
        suffixes = checked_suffixes(suffixes)
        kind, left = readable("left", left)
        other_kind, right = (kind, left) if right is None else readable("right", right)
        if kind != other_kind:
            raise TypeError(f"merge: right must be of the kind of left, {kind}, got {other_kind}")
        self._require_sizes(left, right)
        itself = right is left if self.shape is None else self.shape[1] < 0
        rows, others, score = self._rows(how, len(left), itself)
        return merged(kind, left, right, Placed(rows, others, score, how), suffixes)

    def _require_sizes(self, left: Any, right: Any) -> None:
        if self.shape is None:
            return
        n, m = self.shape
        for name, table, size in (("left", left, n), ("right", right, n if m < 0 else m)):
            if len(table) != size:
                raise ValueError(f"merge: {name} must have {size} rows, got {len(table)}")

    def _rows(
        self, how: str, n: int, itself: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows of both tables; -1 where there is no partner."""
        left, right, score = self._trusted("merge")
        if how == "inner":
            return left, right, score
        partnered = np.concatenate((left, right)) if itself else left
        alone = np.setdiff1d(np.arange(n), partnered)
        if how == "anti":
            return alone, alone, None
        rows = np.concatenate((left, alone))
        others = np.concatenate((right, np.full(alone.size, -1)))
        if score is not None:
            score = np.concatenate((score, np.full(alone.size, np.nan)))
        order = np.argsort(rows, kind="stable")
        return rows[order], others[order], None if score is None else score[order]

    def graph(self) -> Any:
        """A graph in which the records are vertices and the pairs are edges of that weight.

        Its `connected_components` are groups of duplicates.  In a join of two collections the
        records of the right one are numbered after those of the left one.
        """
        from scipy import sparse

        if self.shape is None:
            raise ValueError("graph: these pairs do not know how many records there are")
        n, m = self.shape
        size, shift = (n, 0) if m < 0 else (n + m, n)
        left, right, score = self._trusted("graph")
        weights = np.ones(left.size) if score is None else score
        ends = left, right + shift
        once = sparse.coo_array((weights, ends), shape=(size, size)).tocsr()
        return graph(once.maximum(once.T))

    def check(self, left: Any, right: Any = None) -> None:
        """Raise `CheckFailed` where a pair is missing, false or wrongly scored.

        `left` and `right` are what was joined, in any of the forms that `fuzzy_join` takes.
        """

        check_fuzzy_join(self, left, right, **self.options)


def scores_of(weight: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """weight / (2^40 sizes - weight), one division; `sizes` adds up both records."""
    return weight.astype(np.float64) / (sizes * ONE - weight).astype(np.float64)


def by_score(weight: np.ndarray, sizes: np.ndarray, *ties: np.ndarray) -> Any:
    """The order (-score, *ties), with scores compared as fractions in integers.

    The sort is stable.  A score grows with weight / sizes.  Two different fractions of this kind
    differ by at least 1 / sizes^2, so the whole part and two digits of 31 bits tell them apart.
    """
    digits = []
    rest = weight
    for shift in (0, 31, 31):
        rest = rest << shift
        digits.append(-(rest // sizes))
        rest = rest % sizes
    return np.lexsort((*reversed(ties), *reversed(digits)))


def by_left(left: np.ndarray, right: np.ndarray, weight: np.ndarray, sizes: np.ndarray) -> Any:
    """The order (left, -score, right)."""
    order = by_score(weight, sizes, left, right)
    return order[np.argsort(left[order], kind="stable")]


# The rows of two tables side by side, one row for each pair: what `Pairs.merge` returns


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

"""The public functions of the join.  Read on in __init__.py, collecting/, cpu.py, ordering/."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.join import (
    Choice,
    read_choice,
    shard_of_rank,
    together,
    with_defaults,
)
from matchwood.applications.join.best import best_of_kinds, best_pairs, each_of_kinds
from matchwood.applications.join.collecting import read_groups, read_sides
from matchwood.applications.join.result import Pairs, by_left, scores_of
from matchwood.engines.cpu import watching
from matchwood.engines.ranks.agreement import sent_by_first
from matchwood.engines.ranks.agreement import together as agreed_by_all
from matchwood.stopwatch import Stopwatch

__all__ = ["fuzzy_join", "iter_fuzzy_join"]

ESTIMATED_RECORDS = 1000  # left records that `estimate` joins
SEED = 1
MISSED = 3.0  # steps of the draw: with 95 % the pairs never drawn are no more ("rule of three")


def fuzzy_join(
    left: Any,
    right: Any = None,
    *,
    delta: float | None = None,
    k: int | None = None,
    per_left: int | None = None,
    similarity: str = "jaccard",
    q: int = 3,
    verify: str = "certified",
    mode: str = "weight",
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    by: Any = None,
    separator: str | None = None,
    normalise: Any = None,
    filters: str = "joint",
    scores: bool = True,
    exclude_equal: bool = False,
    shard: tuple[int, int] | None = None,
    limit: int | None = None,
    comm: Any = None,
    engine: str | None = None,
    threads: int | None = None,
) -> Pairs:
    """All pairs of records whose elements can be matched well.

    A record is a set of elements, an element is text.  With the heaviest matching between the
    elements of R and S, of weight w by the similarity of elements::

        sim(R, S) = w / (|R| + |S| - w)

    Two records of equal elements have 1.  All pairs of at least `delta` are found.

    Parameters
    ----------
    left, right : collections, lists or columns
        Lists of lists of text or integers; lists of text with a `separator`; columns of pandas,
        polars or Arrow, or tables with `on`; sparse matrices of SciPy or CuPy, whose rows are sets
        of columns; or what `collection` returns.  `right` None joins `left` with itself: each pair
        once, left < right.
    delta : float
        Above 0, up to 1.  None is 0.7, or 0 with `k` or `per_left`.
    k : int
        Only the k best pairs, by (-score, left, right).
    per_left : int
        Only this number of best pairs for each left record.  In a join with itself every record
        is a left one, so that a pair may occur in both directions.
    similarity : {"jaccard", "edit", "edit_padded", "equal"}
        Of two elements: of their q-grams; 1 - Levenshtein / longer length, of the text as it is or
        padded to a multiple of q; or 1 where they are equal and else 0.  For a `collection`, that
        with which it was made.
    q : int
        Code points of a gram.
    verify : {"certified", "exact", "early", "greedy", "dominant", "streaming"}
        How the matching is found.  The first three give the same pairs, but "early" stops when a
        pair is decided: scores may be too low, `per_left` may keep others.  The rest are not exact.
    mode : {"weight", "bound"}
        For the approximate ones: by the weight of the matching (no pair is false), or by an upper
        bound (no pair is missing).
    on, left_on, right_on : column names
    by : column name, list of names, or values
        Join only records with equal values.  Without a table: a sequence with a value for each
        record, or a pair of such.  Records whose value is missing are in no pair.
    separator : str
        Splits a record that is one text.
    normalise : function, name or list
        Applied to each element; see `collection`.
    filters : {"joint", "positional", "basic"}
        How candidates are filtered; the pairs are the same, but for false ones of `mode` "bound".
    scores : bool
        False gives no scores, and saves the exact matching of pairs that are decided without.
    exclude_equal : bool
        Leave out pairs whose exact score is 1, whatever `verify` and `mode` are.
    shard : (int, int)
        (i, p): the pairs of one of p parts of balanced cost.  All parts together are the whole.
    limit : int
        Raise ValueError as soon as more pairs than this are found.
    comm : Communicator
        Of `matchwood.dist`.  All ranks call with the same options; the first one reads `left`,
        `right` and `by`, makes the tokens, and sends them to the others, which may pass None.  Each
        rank returns the pairs of its shard: all ranks together have the whole.  Not with `k`.
    engine : {None, "reference", "cpu", "gpu"}
    threads : int or None

    Returns
    -------
    Pairs
        ``left, right, score``, by (left, right); with `k` by (-score, left, right); with
        `per_left` by (left, -score, right).

    Raises
    ------
    TypeError, ValueError
        For options and records that are none; see `collection`.

    Notes
    -----
    Empty records are in no pair, and neither are two records with nothing in common, whatever
    `delta`.  A pair counts when sim >= delta - 1e-9.

    One answer: similarities of elements are integers in units of 2^-40, so weights, scores and the
    set of pairs are the same bits on every engine, at any number of threads, in any shard.

    Candidates come from TokenJoin's utilities [1]_: a token of an element with c tokens can add at
    most 1/c to a matching, so records that share too little of them need not be compared.
    Verification accepts by a lower bound, rejects by an upper bound, and solves exactly in between;
    ApproxJoin [2]_ has the approximate matchings.

    Memory beside input and answer: 64 bytes for each token of each record, and 16 MB a thread.

    References
    ----------
    .. [1] A. Zeakis, D. Skoutas, D. Sacharidis, O. Papapetrou, M. Koubarakis. TokenJoin: efficient
       filtering for set similarity join with maximum weighted bipartite matching. PVLDB 16(4),
       2022. doi:10.14778/3574245.3574263
    .. [2] M. Mandulak, S. M. Ferdous, S. Ghosh, M. Halappanavar, G. Slota. ApproxJoin: approximate
       matching for efficient verification in fuzzy set similarity join. arXiv:2507.18891, 2025.

    Examples
    --------
    >>> import matchwood
    >>> tags = [["database", "systems"], ["databases", "system"], ["graphs"]]
    >>> left, right, score = matchwood.fuzzy_join(tags, delta=0.4)
    >>> left.tolist(), right.tolist(), score.round(4).tolist()
    ([0], [1], [0.4933])

    The best partner in another list, by edit distance:

    >>> best = matchwood.fuzzy_join(["graph;join"], ["graphs;joins", "trees"], separator=";",
    ...                             similarity="edit", per_left=1)
    >>> best.right.tolist(), best.score.round(4).tolist()
    ([0], [0.6901])
    """
    options = dict(locals())
    for name in ("left", "right", "comm"):
        del options[name]
    watch = Stopwatch()
    if comm is not None:
        options["shard"] = shard_of_rank(comm, options)
    call = _Call("fuzzy_join", left, right, options, comm)
    watch.lap("collection")
    if comm is not None:
        pairs = _on_ranks(comm, call)
    else:
        pairs = call.best() if call.choice.k is not None else call.whole()
    pairs.stats["seconds"] = {"collection": watch.seconds["collection"], **pairs.stats["seconds"]}
    return pairs


def _on_ranks(comm: Any, call: _Call) -> Pairs:
    """The pairs of this rank's shard; `limit` holds for those of all ranks together."""

    def joined() -> Pairs:
        with watching(comm.look):  # other ranks may fail meanwhile
            return call.whole()

    pairs = agreed_by_all(comm, joined, named=False)
    call.choice.count(int(comm.allreduce(np.array([len(pairs)], np.int64))[0]))
    return pairs


def iter_fuzzy_join(left: Any, right: Any = None, **options: Any) -> Iterator[Pairs]:
    """The pairs of `fuzzy_join` in blocks, for answers larger than memory.

    Parameters
    ----------
    left, right : as in `fuzzy_join`
    **options
        Those of `fuzzy_join`, without `k`.

    Yields
    ------
    Pairs
        Each block is sorted as `fuzzy_join` sorts, and has at most some four million pairs.  The
        content of a block depends on the data alone.  All blocks together are the answer.

    Examples
    --------
    >>> import matchwood
    >>> tags = [["a", "b"], ["b", "a"], ["a"], ["b"]]
    >>> sum(len(block) for block in matchwood.iter_fuzzy_join(tags, delta=0.5))
    5
    """
    given = with_defaults("iter_fuzzy_join", options)
    if given["k"] is not None:
        raise ValueError("iter_fuzzy_join: k looks at all pairs; use fuzzy_join")
    call = _Call("iter_fuzzy_join", left, right, given)  # checked now, not at the first block
    return call.blocks()


def estimate(left: Any, right: Any = None, **options: Any) -> dict[str, Any]:
    """Estimate the number of pairs of `fuzzy_join` and its time, from a sample of records.

    `error`: with about 95 % probability the number of pairs is wrong by no more than this.
    """
    watch = Stopwatch()
    call = _Call("estimate", left, right, with_defaults("estimate", options))
    watch.lap("collection")
    call.sampled(Sample(0, call.choice.threads))  # compiles the kernels and makes the index
    watch.lap("index")
    sample = Sample(ESTIMATED_RECORDS, call.choice.threads)
    counts = call.sampled(sample)
    watch.lap("sample")
    seconds = watch.seconds
    pairs, error = sample.total(counts)
    return {
        "records": call.shape[0],
        "sampled": sample.rows.size or call.shape[0],
        "pairs": round(pairs),
        "error": round(error),
        "seconds": seconds["collection"] + seconds["sample"] / max(sample.share, 1e-9),
    }


class _Call:
    """A join.  `shape`: the records of both sides; the second is -1 for a join with itself.

    With `comm`, the first rank reads what all of them join.
    """

    def __init__(
        self, caller: str, left: Any, right: Any, options: dict[str, Any], comm: Any = None
    ) -> None:
        self.choice: Choice = read_choice(caller, options)
        self.engine = engines.resolve("cpu", options["engine"], caller, options["threads"])
        self.options = {name: value for name, value in options.items() if name != "engine"}

        def read() -> tuple[Any, Any, tuple[int, int]]:
            mine, theirs = read_sides(caller, left, right, options)
            groups = read_groups(caller, options["by"], mine, theirs)
            shape = (len(mine), -1 if theirs is None else len(theirs))
            prepared = mine.alone() if theirs is None else mine.beside(theirs)
            return prepared, groups, shape

        found = read() if comm is None else sent_by_first(comm, read)
        self.prepared, self.choice.groups, self.shape = found
        self.sizes = self.prepared.sizes
        self.runner = engines.load("matchwood.applications.join", self.engine)

    def whole(self) -> Pairs:
        parts = None
        if self.choice.per_left is not None and self.engine != "reference":
            parts = each_of_kinds(self.runner, self.prepared, self.choice)
        if parts is None:
            parts = self.runner.blocks(self.prepared, self.choice, True)
        return self._pairs(list(self._counted(parts)))

    def blocks(self) -> Iterator[Pairs]:
        parts: list[Any] = []
        for raw in self._counted(self.runner.blocks(self.prepared, self.choice, False)):
            if raw.left.size:
                parts.append(raw)
            elif parts:  # an empty part ends a block
                yield self._pairs(parts)
                parts = []
        if parts:
            yield self._pairs(parts)

    def best(self) -> Pairs:
        watch = Stopwatch()
        if self.engine == "reference":
            left, right, weight = best_pairs(self.runner, self.prepared, self.choice, False)
        else:
            left, right, weight = best_of_kinds(self.runner, self.prepared, self.choice)
        watch.lap("join")
        self.choice.count(left.size)
        self.choice.stats["seconds"] = watch.seconds
        return self._scored(left, right, weight)

    def sampled(self, sample: Sample) -> np.ndarray:
        """The number of pairs of each left record of a sample.

        In a join with itself a pair counts for the record that is first by (size, row), and so it
        does in one of two tables by edit similarities; rows of the right one are counted from the
        end of the left one.
        """
        parts = self.runner.above(
            self.prepared, self.choice, self.choice.delta, lambda: 0.0, sample
        )
        first = 0 if self.shape[1] < 0 else self.shape[0]
        counts = np.zeros(first + self.sizes[1].size, np.int64)
        by_size = self.shape[1] < 0 or self.prepared.similarity.startswith("edit")
        for raw in parts:
            rows = raw.left.astype(np.int64)
            if by_size:
                smaller = self.sizes[1][raw.right] < self.sizes[0][rows]
                rows = np.where(smaller, first + raw.right, rows)
            counts += np.bincount(rows, minlength=counts.size)
        return counts

    def _counted(self, parts: Iterator[Any]) -> Iterator[Any]:
        found = 0
        for raw in parts:
            found += raw.left.size
            self.choice.count(found)
            yield raw

    def _pairs(self, parts: list[Any]) -> Pairs:
        """The pairs of all parts, in order.  Empties `parts`, so that pairs are held once."""
        watch = Stopwatch()
        if self.choice.per_left is None:
            where = "reference" if self.engine == "reference" else "cpu"
            sorting = engines.load("matchwood.applications.join.ordering", where)
            made = self._made(
                *sorting.in_order(parts, self.sizes, self.choice.scores, self.choice.threads)
            )
        else:
            left, right, weight = together(parts)
            parts.clear()
            order = by_left(left, right, weight, self._sums(left, right))
            made = self._scored(left[order], right[order], weight[order])
        watch.lap("sort")
        made.stats["seconds"] = {**made.stats.get("seconds", {}), **watch.seconds}
        return made

    def _sums(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.sizes[0][left] + self.sizes[1][right]

    def _scored(self, left: np.ndarray, right: np.ndarray, weight: np.ndarray) -> Pairs:
        score = scores_of(weight, self._sums(left, right)) if self.choice.scores else None
        return self._made(left, right, score)

    def _made(self, left: np.ndarray, right: np.ndarray, score: np.ndarray | None) -> Pairs:
        stats = {
            **self.choice.stats,
            "pairs": int(left.size),
            "similarity": self.prepared.similarity,
            "engine": self.engine,
        }
        left, right = (rows.astype(np.int64, copy=False) for rows in (left, right))
        return Pairs(left, right, score, self.shape, stats, self.options)


# The left records of a sample, and the number of all pairs that it indicates.
#
# A record has no more pairs than it reads entries of posting lists, and those are counted before
# anything is joined.  So records are drawn with chances in proportion to that cost, and each pair
# of a drawn record counts for 1 / chance.  Records that cost much are always taken.  Then a record
# outside the sample has at most its cost in pairs, which is less than one step of the draw.


class Sample:
    """Some `count` records of a join, of all its passes.  Call it with each task before it runs."""

    def __init__(self, count: int, threads: int | None) -> None:
        self.count = count
        self.threads = threads
        self.rows = np.empty(0, np.int64)
        self.chances = np.empty(0)
        self.step = 0.0  # entries of posting lists between two draws
        self.cost = self.whole = 0.0  # entries that those drawn read, and that all read

    @property
    def share(self) -> float:
        return self.cost / self.whole if self.whole else 1.0

    def __call__(self, task: Any) -> None:
        """Draw, and leave only what was drawn in the task."""
        costs = task.costs(self.threads) - 1.0  # without the entry for the record itself
        chances = self._chances(costs, self.count if task.against is None else self.count // 2)
        marks = np.cumsum(chances)
        start = np.random.default_rng(SEED).random()
        drawn = np.flatnonzero(np.diff(np.floor(marks + start), prepend=np.floor(start)) > 0)
        rows = task.places.rows[drawn].astype(np.int64) + task.first_row
        self.rows = np.concatenate((self.rows, rows))
        self.chances = np.concatenate((self.chances, chances[drawn]))
        self.cost += float(costs[drawn].sum())
        self.whole += float(costs.sum())
        task.take(drawn)

    def _chances(self, costs: np.ndarray, count: int) -> np.ndarray:
        """Chances in proportion to the cost, each at most 1, whose sum is `count`."""
        if np.count_nonzero(costs) <= count:
            return (costs > 0).astype(float)
        chances, sure = np.zeros(costs.size), np.zeros(costs.size, bool)
        while True:
            left = np.where(sure, 0.0, costs)
            step = float(left.sum()) / max(count - int(sure.sum()), 1)
            more = left >= step
            if not more.any() or not left.any():
                break
            sure |= more
        chances[sure] = 1.0
        self.step += step
        return chances + (left / step if step else 0.0)

    def total(self, counts: np.ndarray) -> tuple[float, float]:
        """(the estimated number of all pairs, its error), from the pairs of each record drawn."""
        if not self.rows.size:
            return float(counts.sum()), 0.0
        each = counts[self.rows] / self.chances
        drawn = self.chances < 1.0
        if not drawn.any():
            return float(each.sum()), 0.0
        n = int(drawn.sum())
        around = each[drawn] - each[drawn].mean()
        spread = float(np.sqrt((around**2).sum() * n / max(n - 1, 1)))
        return float(each.sum()), 2.0 * spread + MISSED * self.step

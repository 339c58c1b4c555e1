"""The HTML page of `matchwood join`, and its part of the demo."""

from __future__ import annotations

from typing import Any

import numpy as np

import matchwood
from matchwood import engines
from matchwood.join import explain
from matchwood.report import page
from matchwood.report.sketches import Sketch
from matchwood.report.svg import INK, MAIN, QUIET, SECOND, Svg

# The page about a join: scores, the funnel of candidates, and pairs with their matching.


SHOWN = 6  # pairs of each kind on the page
BINS = 20
JOINS_LONGEST = 28  # characters of an element in a picture
MOST_LINES = 24  # elements of a record in a picture; how many more there are is said
LETTER = 6.5  # units of a letter, on average
FUNNEL = (
    ("generated", "share enough rare tokens"),
    ("refined", "may reach the threshold"),
    ("verified", "were compared element by element"),
    ("pairs", "are similar"),
)


def page_of(name: str, pairs: Any, sides: list[Any]) -> str:
    """The whole page, as one HTML file."""
    stats = pairs.stats
    sections = [
        page.heading(
            f"Join of {name}",
            f"Pairs found: {len(pairs):,}, among {len(sides[0]):,} records"
            + ("." if len(sides) == 1 else f" and {len(sides[-1]):,} records."),
            f"Pairs compared: {stats.get('verified', 0):,}; of these accepted by a lower bound: "
            f"{stats.get('accepted_by_bound', 0):,}, rejected by an upper bound: "
            f"{stats.get('rejected_by_bound', 0):,}, solved exactly: "
            f"{stats.get('solved_exactly', 0):,}.",
            level=1,
        ),
        *_scores(pairs),
        page.heading("Candidates", "How many pairs of records were left after each step."),
        page.table(
            ("step", "pairs", ""),
            [(step, f"{stats.get(step, 0):,}", words) for step, words in FUNNEL],
            numbers=(1,),
        ),
    ]
    if len(pairs):
        order = np.lexsort((pairs.right, pairs.left, -pairs.score))
        sections += [
            page.heading("The best pairs"),
            page.cards(_cards(pairs, sides, order[:SHOWN])),
            page.heading("Closest to the threshold"),
            page.cards(_cards(pairs, sides, order[::-1][:SHOWN])),
        ]
    return page.page(f"Join of {name}", sections)


def _scores(pairs: Any) -> list[str]:
    if not len(pairs):
        return [page.heading("Scores", "No two records reach the threshold.")]
    return [page.heading("Scores"), page.figure(histogram(pairs.score).markup(), "Pairs by score.")]


def _cards(pairs: Any, sides: list[Any], chosen: np.ndarray) -> list[str]:
    made = []
    for i in chosen.tolist():
        a, b = int(pairs.left[i]), int(pairs.right[i])
        collection = sides[0]
        told = explain(
            collection.record(a), sides[-1].record(b),
            similarity=collection.similarity, q=collection.q,
        )  # fmt: skip
        made.append(page.figure(matching(told).markup(), f"score {told.score:.4f}", f"{a} and {b}"))
    return made


def histogram(scores: np.ndarray) -> Svg:
    """The number of pairs by score."""
    picture = Svg(440, 200, "Pairs by score")
    low = float(np.floor(scores.min() * BINS) / BINS)
    low = min(low, 1.0 - 1.0 / BINS)
    counts, edges = np.histogram(scores, bins=BINS, range=(low, 1.0))
    most = int(counts.max())
    wide = 400 / BINS
    boxes = [
        (20 + wide * i, 170 - 140 * count / most, wide - 2, 140 * count / most)
        for i, count in enumerate(counts.tolist())
    ]
    picture.boxes(boxes, color=MAIN)
    for i in (0, BINS // 2, BINS):
        picture.text(20 + wide * i, 190, f"{edges[i]:.2f}", anchor="middle", color=QUIET)
    picture.text(20, 20, f"most: {most:,}", color=QUIET)
    return picture


def matching(told: Any) -> Svg:
    """Elements of both records, with lines between those that were matched."""
    lines = [*told.matched[:MOST_LINES]]
    alone = [part[: MOST_LINES - len(lines)] for part in (told.left_only, told.right_only)]
    sizes = [len(told.matched) + len(part) for part in (told.left_only, told.right_only)]
    more = max(sizes) - MOST_LINES
    rows = max(len(lines) + max(map(len, alone)) + (more > 0), 1)
    every = [*alone[0], *alone[1], *(text for line in lines for text in line[:2])]
    side = 16 + LETTER * max((len(_short(text)) for text in every), default=0)
    picture = Svg(2 * side + 160, 22 * rows + 14, "The matching of two records")
    left, right, middle = side, side + 160, side + 80
    starts, ends = [], []
    for i, (mine, theirs, weight) in enumerate(lines):
        y = 20 + 22 * i
        picture.text(left, y, _short(mine), anchor="end", color=INK)
        picture.text(right, y, _short(theirs), color=INK)
        starts.append((left + 8, y - 4))
        ends.append((right - 8, y - 4))
        picture.text(middle, y - 7, f"{weight:.2f}", anchor="middle", color=SECOND)
    if lines:
        picture.segments(np.array(starts, float), np.array(ends, float), color=MAIN, width=1.5)
    for i, element in enumerate(alone[0]):
        picture.text(left, 20 + 22 * (len(lines) + i), _short(element), anchor="end", color=QUIET)
    for i, element in enumerate(alone[1]):
        picture.text(right, 20 + 22 * (len(lines) + i), _short(element), color=QUIET)
    if more > 0:
        words = f"and {more:,} more"
        picture.text(middle, 20 + 22 * (rows - 1), words, anchor="middle", color=QUIET)
    return picture


def example() -> Svg:
    """The picture of the docs page."""
    left = ["graph", "matching", "databases"]
    return matching(explain(left, ["graphs", "matchings", "database", "join"]))


def _short(element: Any) -> str:
    text = str(element)
    return text if len(text) <= JOINS_LONGEST else text[: JOINS_LONGEST - 1] + "…"


# Joins in the demo: rows of a matrix as sets of columns; which of them are alike?


ROWS = 4000  # rows of a matrix that take part, at most
DEMO_LONGEST = 200  # entries of a row that takes part
DELTA = 0.3  # two corners of a square in a grid have 1/3
SAMPLE = 30  # rows for which the check looks for pairs that are missing


def rows(A: Any) -> tuple[Any, Any]:
    """(indptr, indices) of the rows that take part; long ones are empty."""
    view = (A if isinstance(A, matchwood.Graph) else matchwood.graph(A)).directed_pattern()
    indptr, indices = (engines.moved(x, "cpu") for x in (view.indptr, view.indices))
    n = min(ROWS, indptr.size - 1)
    lengths = np.diff(indptr[: n + 1])
    short = np.where(lengths <= DEMO_LONGEST, lengths, 0)
    kept = np.repeat(short > 0, lengths)
    return np.concatenate([[0], np.cumsum(short)]), indices[: kept.size][kept]


def records(A: Any) -> Any:
    """The rows that take part, as a matrix of ones: what the join and SciPy get."""
    import scipy.sparse as sp

    indptr, indices = rows(A)
    shape = (indptr.size - 1, int(indices.max(initial=0)) + 1)
    return sp.csr_array((np.ones(indices.size), indices, indptr), shape=shape)


def ours(A: Any, threads: int | None) -> tuple[Any, Any, Any]:
    """(left, right, score)."""
    options: dict[str, Any] = {"delta": DELTA, "similarity": "equal", "threads": threads}
    return tuple(matchwood.fuzzy_join(records(A), **options))  # type: ignore[return-value]


def peer(A: Any) -> Any:
    """The same by SciPy: a product of sparse matrices counts the columns that two rows share."""
    import scipy.sparse as sp

    B = records(A)
    shared = sp.triu(B @ B.T, 1).tocoo()
    sizes = np.diff(B.indptr)
    score = shared.data / (sizes[shared.row] + sizes[shared.col] - shared.data)
    alike = score >= DELTA - 1e-9
    return shared.row[alike], shared.col[alike], score[alike]


def check(A: Any, found: Any) -> None:
    matchwood.check.check_fuzzy_join(
        found, records(A), delta=DELTA, similarity="equal", sample=SAMPLE
    )


def say(found: Any) -> str:
    return f"{found[0].size:,} pairs of rows alike"


def sketch() -> Sketch:
    caption = (
        "Two records in other words, and the heaviest matching between their elements: what the "
        "join adds up."
    )
    return Sketch((example(),), caption)

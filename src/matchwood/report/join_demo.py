"""Joins in the demo: rows of a matrix as sets of columns; which of them are alike?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import matchwood
from matchwood import engines
from matchwood.report import joins
from matchwood.report.drawings.sketches import Sketch

ROWS = 4000  # of a matrix, at most
LONGEST = 200  # entries of a row that takes part
DELTA = 0.3  # two corners of a square in a grid have 1/3
SAMPLE = 30  # rows for which the check looks for pairs that are missing


@dataclass(frozen=True)
class Alike:
    """Pairs of rows, for comparing."""

    left: Any
    right: Any
    score: Any


def rows(A: Any) -> tuple[Any, Any]:
    """(indptr, indices) of the rows that take part; long ones are empty."""
    view = (A if isinstance(A, matchwood.Graph) else matchwood.graph(A)).directed_pattern()
    indptr, indices = (engines.moved(x, "cpu") for x in (view.indptr, view.indices))
    n = min(ROWS, indptr.size - 1)
    lengths = np.diff(indptr[: n + 1])
    short = np.where(lengths <= LONGEST, lengths, 0)
    kept = np.repeat(short > 0, lengths)
    return np.concatenate([[0], np.cumsum(short)]), indices[: kept.size][kept]


def records(A: Any) -> Any:
    """The rows that take part, as a matrix of ones: what the join and SciPy get."""
    import scipy.sparse as sp

    indptr, indices = rows(A)
    shape = (indptr.size - 1, int(indices.max(initial=0)) + 1)
    return sp.csr_array((np.ones(indices.size), indices, indptr), shape=shape)


def ours(A: Any, threads: int | None) -> Alike:
    options: dict[str, Any] = {"delta": DELTA, "similarity": "equal", "threads": threads}
    return Alike(*matchwood.fuzzy_join(records(A), **options))


def peer(A: Any) -> Any:
    """The same by SciPy: a product of sparse matrices says how many columns two rows share."""
    import scipy.sparse as sp

    B = records(A)
    shared = sp.triu(B @ B.T, 1).tocoo()
    sizes = np.diff(B.indptr)
    score = shared.data / (sizes[shared.row] + sizes[shared.col] - shared.data)
    alike = score >= DELTA - 1e-9
    return Alike(shared.row[alike], shared.col[alike], score[alike])


def check(A: Any, found: Alike) -> None:
    pairs = (found.left, found.right, found.score)
    matchwood.check.check_fuzzy_join(
        pairs, records(A), delta=DELTA, similarity="equal", sample=SAMPLE
    )


def say(found: Alike) -> str:
    return f"{found.left.size:,} pairs of rows alike"


def sketch() -> Sketch:
    caption = (
        "Two records in other words, and the heaviest matching between their elements: what the "
        "join adds up."
    )
    return Sketch((joins.example(),), caption)

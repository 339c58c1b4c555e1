"""Joins to attack: right answers to spoil, for problems.py, and joins of sets by definition."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import matchwood
from adversarial.cases import Case, drawn
from matchwood import check

WORDS = ("database", "databases", "systems", "system", "graph", "graphs", "join", "joins")
DELTAS = (0.3, 0.5, 1.0)


def fuzzy_join_cases(engine: str | None = None) -> Iterator[Case]:
    rng = np.random.default_rng(drawn())
    for k in range(6):
        sets = [
            rng.choice(WORDS, int(rng.integers(0, 4)), replace=False).tolist() for _ in range(9)
        ]
        options: dict[str, Any] = {"delta": DELTAS[k % 3]}
        found = matchwood.fuzzy_join(sets, engine=engine, **options)
        yield Case(
            len(sets), None, {"left": found.left, "right": found.right, "score": found.score},
            lambda fields: (fields["left"], fields["right"], fields["score"]),
            lambda x, s=sets, o=options: check.check_fuzzy_join(x, s, **o),
        )  # fmt: skip


LEAST = 0.3  # the delta of the joins of sets


def triples(pairs: Any) -> list[tuple[int, int, float]]:
    return list(zip(*(part.tolist() for part in pairs), strict=True))


def pairs_of_sets(rows: Iterable[Iterable[Any]]) -> list[tuple[int, int, float]]:
    """The pairs of score LEAST and more, of elements that are equal or not."""
    found = []
    for (i, r), (j, s) in itertools.combinations(enumerate(map(set, rows)), 2):
        both = len(r & s)
        if both and both / (len(r) + len(s) - both) >= LEAST:
            found.append((i, j, both / (len(r) + len(s) - both)))
    return found


def columns_of_rows(A: Any) -> list[set[int]]:
    """The columns of each row of a SciPy matrix, from its own arrays, entry by entry."""
    rows: list[set[int]] = [set() for _ in range(A.shape[0])]
    if A.format == "coo":
        entries = zip(A.row.tolist(), A.col.tolist(), strict=True)
    elif A.format == "dia":
        entries = (
            (j - offset, j)
            for offset, values in zip(A.offsets.tolist(), (A.data != 0).tolist(), strict=True)
            for j, stored in enumerate(values[: A.shape[1]])
            if stored and 0 <= j - offset < A.shape[0]
        )
    else:
        height, width = A.data.shape[1:] if A.format == "bsr" else (1, 1)
        ends, others = A.indptr.tolist(), A.indices.tolist()
        lines = ((i, others[k]) for i in range(len(ends) - 1) for k in range(ends[i], ends[i + 1]))
        entries = (
            (j, i) if A.format == "csc" else (height * i + y, width * j + x)
            for i, j in lines
            for y in range(height)
            for x in range(width)
        )
    for i, j in entries:
        rows[i].add(j)
    return rows


def verify_matrix(found: Any, A: Any) -> None:
    """Raise unless these are the pairs of the rows of A, each the set of its columns."""
    wanted = pairs_of_sets(columns_of_rows(A))
    if triples(found) != wanted:
        raise ValueError(f"{triples(found)} instead of {wanted}")

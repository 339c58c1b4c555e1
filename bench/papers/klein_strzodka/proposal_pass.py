"""The proposals of a first round without charges, again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, kernel, share_rows
from matchwood.factors.result import Plan
from matchwood.factors.rounds.cpu import (
    ANY,
    MOST_IN_VARIABLES,
    Adjacency,
    Proposals,
    Rule,
    bits_of,
    propose_by,
    rule_of,
)

Array = np.ndarray[Any, Any]


@kernel
def _pass(team: Team, rows: Adjacency, rule: Rule, places: Proposals, listed: Array) -> None:
    lo, hi = share_rows(team, rows.indptr)
    propose_by(team, listed[lo:hi], True, False, rule, rows, places)


class Pass:
    def __init__(self, view: Any, n: int, threads: int | None = None) -> None:
        self.neighbours = np.full((view.n, n), -1, view.indices.dtype)
        self.weights = np.zeros((view.n, n), view.data.dtype)
        self._team = crew(threads, work=view.nnz + view.n * n)
        state = np.full(view.n, ANY, np.uint8)
        self._args = (
            Adjacency(view.indptr, view.indices, bits_of(view.data)),
            rule_of(Plan(n, 1, 1, 0, 0, 0, False)),
            Proposals(state, self.neighbours.reshape(-1), bits_of(self.weights).reshape(-1)),
            np.arange(view.n, dtype=view.indices.dtype),
        )

    def __call__(self) -> tuple[Array, Array]:
        if self.weights.shape[1] > MOST_IN_VARIABLES:
            self.weights.fill(0)  # positive weights would count as confirmed
        self._team.run(_pass, *self._args)
        return self.neighbours, self.weights

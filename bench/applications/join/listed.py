"""The pairs that a join verifies, as a list: what all methods of verification are timed on."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join.candidates.cpu import (
    SLOTS,
    TOO_FEW,
    WINDOW,
    Corpus,
    Known,
    ProbeOrder,
    Rule,
    Sums,
    gather,
    members_of,
    settle,
    size_of,
    worth_verifying,
)
from matchwood.applications.join.candidates.cpu.index import SLACK
from matchwood.applications.join.cpu import Task
from matchwood.applications.join.verification.cpu import least_weight
from matchwood.engines.cpu import Team, crew, kernel, stopping


@kernel
def _list_pairs(
    team: Team,
    corpus: Corpus,
    places: ProbeOrder,
    rule: Rule,
    sums: Sums,
    known: Known,
    pairs: Any,
    used: Any,
) -> None:
    """Candidates that pass the filters, in `pairs`; used[0]: how many, also above its room."""
    for item in range(places.rows.size):
        if stopping(team):
            return
        row, last = places.rows[item], places.highs[item]
        size = size_of(corpus.left, row)
        for lo in range(places.lows[item], last, sums.found.size):
            hi = min(lo + sums.found.size, last)
            found = gather(team, corpus.left_lists, corpus.index, row, size, lo, hi, rule, sums)
            for c in range(found):
                other = places.right_rows[lo + sums.found[c]]
                theirs = size_of(corpus.right, other)
                if sums.bound[sums.found[c]] < rule.share * (size + theirs) - SLACK:
                    continue
                if rule.itself != 0 and other == row:
                    continue
                left, right = members_of(corpus.left, row), members_of(corpus.right, other)
                if rule.edit == 0:
                    need = least_weight(rule.share, size, theirs)
                    weight = settle(
                        corpus.elements, left, right, corpus.nearest, need, False, known
                    )
                    if weight == TOO_FEW:
                        continue
                if not worth_verifying(corpus, row, other, rule.share * (size + theirs), rule):
                    continue
                if used[0] < pairs.shape[0]:
                    swap = rule.itself != 0 and other < row
                    pairs[used[0], 0] = other if swap else row
                    pairs[used[0], 1] = row if swap else other
                used[0] += 1


def listed(prepared: Any, delta: float, most: int) -> np.ndarray:
    """Rows (left, right) of the pairs that reach verification at this threshold, int64.

    `most`: where there are more of them, so many are drawn.
    """
    task = Task(prepared, delta, "joint")
    right = task.corpus.right.starts.size - 1
    longest = max(int(np.diff(r.starts).max(initial=1)) for r in prepared.records)
    window = min(WINDOW, max(right, 1))
    sums = Sums(np.zeros(window), np.zeros(window), np.empty(window, np.int32))
    known = Known(
        np.zeros(SLOTS, np.uint64),
        np.empty(SLOTS, np.int64),
        np.empty(longest, np.int32),
        np.empty(longest, np.int32),
    )
    pairs, used = np.empty((0, 2), np.int64), np.zeros(1, np.int64)
    while True:
        used[0] = 0
        crew(1, work=1 << 20).run(
            _list_pairs, task.corpus, task.places, task.rule, sums, known, pairs, used
        )
        if used[0] <= pairs.shape[0]:
            break
        pairs = np.empty((int(used[0]), 2), np.int64)
    if len(pairs) > most:
        pairs = pairs[np.sort(np.random.default_rng(1).choice(len(pairs), most, replace=False))]
    return pairs

"""Verify a list of pairs on a team of threads."""

from __future__ import annotations

import numpy as np

from matchwood.applications.join.arrays import Elements, Records
from matchwood.applications.join.verification import scratch
from matchwood.applications.join.verification.cpu_pair import (
    NO_ROOM,
    least_weight,
    mine,
    verify_pair,
)
from matchwood.applications.join.verification.cpu_scratch import How, Scratch
from matchwood.engines.cpu import Team, advance, crew, expect, kernel, next_chunk
from matchwood.engines.cpu.crew import INLINE_WORK

CHUNK = 64  # pairs that a thread takes at a time


@kernel
def verify_pairs(
    team: Team,
    elements: Elements,
    left: Records,
    right: Records,
    pairs: np.ndarray,  # int64[count, 2]
    share: float,
    how: How,
    space: Scratch,
    verdicts: np.ndarray,  # int8[count]
    weights: np.ndarray,  # int64[count]
) -> None:
    """Write verdict and weight of each pair (left record, right record)."""
    own = mine(space, team.rank)
    if team.rank == 0:
        expect(team, pairs.shape[0])
    while True:
        first = next_chunk(team, pairs.shape[0], CHUNK)
        if first < 0:
            break
        last = min(first + CHUNK, pairs.shape[0])
        for k in range(first, last):
            i, j = pairs[k, 0], pairs[k, 1]
            r = left.elements[left.starts[i] : left.starts[i + 1]]
            s = right.elements[right.starts[j] : right.starts[j + 1]]
            need = least_weight(share, r.size, s.size)
            verdict, weight = verify_pair(team, elements, r, s, need, how, own)
            verdicts[k] = verdict
            weights[k] = weight
        advance(team, last - first)


def verify(
    elements: Elements,
    left: Records,
    right: Records,
    pairs: np.ndarray,
    share: float,
    how: How,
    *,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Verdict and weight of each pair.  Pairs without room are done again, one thread at a time."""
    pairs = np.ascontiguousarray(pairs, np.int64)
    verdicts = np.zeros(len(pairs), np.int8)
    weights = np.zeros(len(pairs), np.int64)
    team = crew(threads, work=max(left.elements.size + right.elements.size, INLINE_WORK))
    space = scratch(elements, left, right, how, team.size)
    team.run(verify_pairs, elements, left, right, pairs, share, how, space, verdicts, weights)
    while (large := np.flatnonzero(verdicts == NO_ROOM)).size:
        space = scratch(elements, left, right, how, 1, edges=int(weights[large].max()))
        again, found = verdicts[large], weights[large]
        crew(1, work=INLINE_WORK).run(  # large pairs: Ctrl-C must be heard
            verify_pairs, elements, left, right, pairs[large], share, how, space, again, found
        )
        verdicts[large], weights[large] = again, found
    return verdicts, weights

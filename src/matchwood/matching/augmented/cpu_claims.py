"""Who may make its exchange: the first at all the units that it touches.  The rule: __init__.py.

Gains are compared before tie words, in two steps, since both together are wider than a word.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, atomic_max, barrier, device, expanded, load_relaxed, share
from matchwood.matching.cpu_rows import Ties
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]


class Claims(NamedTuple):
    """Of each unit: the first exchange that touches it."""

    gain: Array  # (n,) int64, 0 for none
    tie: Array  # (n,) uint64


class Wanted(NamedTuple):
    """The candidates of a round, in any order."""

    unit: Array  # smaller end
    gain: Array
    x: Array  # new mate of the smaller end
    y: Array  # and of the other one
    unit_x: Array  # of x before the round; the own one where there is no x
    unit_y: Array
    won: Array


@device
def _tie_word(u: Any, ties: Ties) -> Any:
    """What decides between units of equal gain, larger first; one to one."""
    if ties.by_hash:
        return mix64(np.uint64(u) ^ mix64(np.uint64(ties.seed)))
    return ~np.uint64(u)


@expanded
def touched(wanted: Wanted, i: int) -> Any:
    """The units that candidate i touches."""
    return wanted.unit[i], wanted.unit_x[i], wanted.unit_y[i]


@expanded
def settle_claims(team: Team, ties: Ties, wanted: Wanted, claims: Claims, size: int) -> bool:
    """claim, rank, decide."""
    lo, hi = share(team, size)
    for i in range(lo, hi):
        for t in touched(wanted, i):
            atomic_max(claims.gain, t, wanted.gain[i])
    if barrier(team):
        return True
    for i in range(lo, hi):
        for t in touched(wanted, i):
            if load_relaxed(claims.gain, t) == wanted.gain[i]:
                atomic_max(claims.tie, t, _tie_word(wanted.unit[i], ties))
    if barrier(team):
        return True
    for i in range(lo, hi):
        won, word = True, _tie_word(wanted.unit[i], ties)
        for t in touched(wanted, i):
            won &= claims.gain[t] == wanted.gain[i] and claims.tie[t] == word
        wanted.won[i] = won
    return barrier(team)

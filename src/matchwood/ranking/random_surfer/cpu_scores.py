"""Scores out of what was pulled: the jumps, the change, and what vertices without arcs hold.

Each function works on a window of vertices whose sums (cpu_pull.py) lie in a buffer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device
from matchwood.engines.cpu.hints import select

Array = np.ndarray[Any, Any]


class Jumps(NamedTuple):
    """Where jumps lead: arrays, empty where it is the same everywhere."""

    jump: Any
    dangling: Any


@device
def _added_up(parts: Array) -> float:
    """The sum in float64, by four sums at once: each addition waits for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = parts.size & ~3
    for i in range(0, whole, 4):
        a += np.float64(parts[i])
        b += np.float64(parts[i + 1])
        c += np.float64(parts[i + 2])
        d += np.float64(parts[i + 3])
    for i in range(whole, parts.size):
        a += np.float64(parts[i])
    return (a + b) + (c + d)


@device
def score_window(sums: Array, scores: Array, share: Array, given: Array) -> float:
    """Take the new scores in `sums`; returns by how much they differ from the old ones."""
    for i in range(sums.size):
        score = sums[i]
        sums[i] = abs(score - scores[i])
        scores[i] = score
        given[i] = score * share[i]
    return _added_up(sums)


@device
def hand_on(sums: Array, share: Array, given: Array) -> None:
    """Give the new scores in `sums` on to the next iteration, without keeping them."""
    for i in range(sums.size):
        given[i] = sums[i] * share[i]


@device
def jump_window(
    sums: Array, jumps: Jumps, first: int, damping: Any, mass: float, even: float
) -> None:
    """Add the jumps to what was pulled; `mass` is what vertices without arcs hold, times d."""
    rest = 1.0 - np.float64(damping)
    if jumps.jump.size == 0 and jumps.dangling.size == 0:
        constant = sums.dtype.type(mass * even + rest * even)
        for i in range(sums.size):
            sums[i] = damping * sums[i] + constant
        return
    for i in range(sums.size):
        jump = even if jumps.jump.size == 0 else np.float64(jumps.jump[first + i])
        after = jump if jumps.dangling.size == 0 else np.float64(jumps.dangling[first + i])
        sums[i] = damping * sums[i] + sums.dtype.type(mass * after + rest * jump)


@device
def held(scores: Array, share: Array, buffer: Array, zero: Any) -> float:
    """What vertices without arcs hold.  Which they are nobody can foresee: so without a branch."""
    for i in range(scores.size):
        buffer[i] = select(share[i] == zero, scores[i], zero)
    return _added_up(buffer[: scores.size])


@device
def total(parts: Array) -> float:
    """The sum of the windows' sums, in their order."""
    found = 0.0
    for i in range(parts.size):
        found += parts[i]
    return found

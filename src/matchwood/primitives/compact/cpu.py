"""Compaction on a team: each member counts in its share, then writes behind the shares before.

The host needs the count to allocate, so there are two runs; each member writes its own stretch of
`kept`, and no two members write the same word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import Team, crew, device, kernel, share, stopping

Array = np.ndarray[Any, Any]

_LINE = 16  # words between the counts of two members, so that they share no cache line
_BLOCK = 64  # flags that are counted at once, in vector registers, and skipped when all are 0
_LOOK = 1 << 16  # flags between two checks of the stop word


@device
def _kept(flags: Any) -> int:
    kept = np.int64(0)
    for i in range(flags.size):
        kept += flags[i] != 0
    return kept


@kernel
def _count(team: Team, mask: Any, counts: Any) -> None:
    lo, hi = share(team, mask.size)
    kept = 0
    for start in range(lo, hi, _LOOK):
        if stopping(team):
            return
        kept += _kept(mask[start : min(start + _LOOK, hi)])
    counts[team.me, 0] = kept


@kernel
def _write(team: Team, mask: Any, values: Any, starts: Any, kept: Any) -> None:
    """Fill this member's part of `kept` from its share of `values`, or of positions if None."""
    lo, hi = share(team, mask.size)
    place, end = np.uint64(starts[team.me]), np.uint64(starts[team.me + 1])
    for start in range(lo, hi, _BLOCK):
        if (start - lo) % _LOOK == 0 and stopping(team):
            return
        flags = mask[start : min(start + _BLOCK, hi)]
        count = np.uint64(_kept(flags))
        if count == 0:
            continue
        last = place + count == end  # nothing is kept in this share after this block
        for i in range(flags.size):
            # Written whether kept or not, and overwritten by the next one: so a random mask costs
            # no mispredicted branches.  But never past the end of this member's part.
            if last and place == end:
                return
            if values is None:
                kept[place] = start + i
            else:
                kept[place] = values[np.uint64(start + i)]
            place += np.uint64(flags[i] != 0)


def compact(mask: Array, values: Array | None = None, *, threads: int | None = None) -> Array:
    mask = np.ascontiguousarray(mask)
    if mask.itemsize == 1:
        mask = mask.view(np.uint8)  # one signature for all flags of a byte
    if values is not None:
        values = np.ascontiguousarray(values)
    team = crew(threads, work=mask.size)
    counts = np.zeros((team.size, _LINE), np.int64)
    team.run(_count, mask, counts)
    starts = np.zeros(team.size + 1, np.int64)
    np.cumsum(counts[:, 0], out=starts[1:])
    kept = np.empty(starts[-1], index_type(mask.size) if values is None else values.dtype)
    team.run(_write, mask, values, starts, kept)
    return kept

"""The pairs of all members, put together by the team."""

from __future__ import annotations

from typing import Any

from matchwood.applications.join.candidates.cpu import Members, Raw
from matchwood.engines.cpu import Team, device, kernel, stopping

BLOCK = 1 << 16  # pairs that are copied between two looks at the stop word


@device
def _copy(source: Any, target: Any) -> None:
    for i in range(source.size):
        target[i] = source[i]


@kernel
def collect(team: Team, work: Members, starts: Any, filled: Any, pairs: Raw) -> None:
    """Each member copies what it wrote to where that starts among all pairs."""
    first, count = starts[team.rank], filled[team.rank]
    for at in range(0, count, BLOCK):
        if stopping(team):
            return
        end = min(at + BLOCK, count)
        _copy(work.left[team.rank, at:end], pairs.left[first + at : first + end])
        _copy(work.right[team.rank, at:end], pairs.right[first + at : first + end])
        _copy(work.weight[team.rank, at:end], pairs.weight[first + at : first + end])

"""Traffic matrices on a team.  Read cpu_walk.py (packets to sorted links), then cpu_runs.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from matchwood.applications.sensing.traffic.cpu_runs import (
    Rows,
    Run,
    destination_sums,
    keys_of_rows,
    merge,
    rows_of_run,
    run_of_sorted,
    source_sums,
)
from matchwood.applications.sensing.traffic.cpu_walk import Room, sorted_packets
from matchwood.engines.cpu import crew

__all__ = [
    "Rows",
    "Run",
    "destination_sums",
    "keys_of_rows",
    "merge",
    "rows_of_packets",
    "rows_of_run",
    "run_of_packets",
    "source_sums",
    "sum_runs",
]


def run_of_packets(
    src: Any, dst: Any, *, threads: int | None = None, room: Room | None = None
) -> Run:
    """The links of packets, in order."""
    if src.size == 0:
        return Run(np.empty(0, np.uint64), np.empty(0, np.int64))
    team = crew(threads, work=8 * src.size)
    return run_of_sorted(team, sorted_packets(team, src, dst, room or Room()))


def rows_of_packets(src: Any, dst: Any, *, threads: int | None = None) -> Rows:
    return rows_of_run(run_of_packets(src, dst, threads=threads), threads=threads)


def sum_runs(runs: Iterable[Run], *, threads: int | None = None) -> Run:
    """Runs added up as a binary tree: runs of the same level are merged as soon as there are two.

    So each link is moved once for each level, and about as many runs as levels are kept.
    """
    levels: list[Run | None] = []
    for run in runs:
        carry, level = run, 0
        while level < len(levels):
            other = levels[level]
            if other is None:
                break
            carry, levels[level] = merge(other, carry, threads=threads), None
            level += 1
        if level == len(levels):
            levels.append(None)
        levels[level] = carry
    total = Run(np.empty(0, np.uint64), np.empty(0, np.int64))
    for left in levels:
        if left is not None:
            total = merge(left, total, threads=threads)
    return total

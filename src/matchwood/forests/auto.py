"""Which method is the best: `method="auto"`."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew

VERTICES_ASKED = 1024  # sampled, to see how far their neighbours are
NEAR = 64  # difference of two vertex numbers; such a neighbour is usually in the cache
NEAR_SHARE = 0.4  # of the neighbours; if more are near, paths run along the numbering
FEW_THREADS = 2  # up to this number plain walks are faster where most neighbours are near


def best_method(engine: str, neighbours: Any, threads: int | None) -> str:
    """Splitters; on the CPU with few threads a plain walk where paths run along the numbering."""
    if engine != "cpu":
        return "splitters"
    members = crew(threads, work=2 * neighbours.shape[0]).size
    if members > FEW_THREADS or not _in_order(neighbours):
        return "splitters"
    return "walk" if members == 1 else "ranges"


def _in_order(table: Any) -> bool:
    """Do paths run along the numbering, so that a walk never waits for memory?

    Then leaving marks and coming back costs twice as much as walking."""
    asked = np.arange(0, table.shape[0], max(1, table.shape[0] // VERTICES_ASKED))
    distance = np.abs(table[asked].astype(np.int64) - asked[:, None])[table[asked] >= 0]
    return bool(distance.size) and float((distance <= NEAR).mean()) > NEAR_SHARE

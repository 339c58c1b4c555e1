"""Moves one after the other between k blocks: the definition, in plain Python (see __init__.py)."""

from __future__ import annotations

from typing import Any

from matchwood.partitioning.sweep.cpu import PASSES, PATIENCE, WORK


def moved(level: Any, labels: Any, limits: Any, fixed: Any, cut: int) -> int:
    """See matchwood.partitioning.sweep.sweep."""
    rows: list[dict[int, int]] = [{} for _ in range(level.n)]
    for v, row in enumerate(rows):
        for i in range(int(level.indptr[v]), int(level.indptr[v + 1])):
            row[int(level.indices[i])] = 1 if level.data is None else int(level.data[i])
    for _ in range(PASSES):
        gained = _pass(rows, level, labels, limits, fixed)
        cut -= gained
        if gained == 0:
            break
    return cut


def _pass(rows: list[dict[int, int]], level: Any, labels: Any, limits: Any, fixed: Any) -> int:
    weight = [0] * len(limits)
    for v in range(level.n):
        weight[labels[v]] += int(level.weights[v])

    def look(v: int) -> tuple[int, int]:
        """The gain and the block; without one, less what it is tied to its own, and -1."""
        ties: dict[int, int] = {}
        for u, w in rows[v].items():
            ties[int(labels[u])] = ties.get(int(labels[u]), 0) + w
        inside = ties.pop(int(labels[v]), 0)
        may = [c for c in ties if weight[c] + int(level.weights[v]) <= int(limits[c])]
        if not may:
            return -inside, -1
        best = min(may, key=lambda c: (-ties[c], weight[c], c))
        return ties[best] - inside, best

    free = {v for v in range(level.n) if not fixed[v]}
    found = {v: look(v) for v in free}
    bound = {v: gain for v, (gain, _) in found.items()}
    waiting = {v for v, (_, block) in found.items() if block >= 0}
    log: list[tuple[int, int]] = []
    gained = most = best = read = 0
    while waiting and len(log) - best < PATIENCE and read < WORK * len(level.indices):
        v = min(waiting, key=lambda v: (-bound[v], v))
        gain, block = look(v)
        read += len(rows[v])
        late = block >= 0 and gain < bound[v]
        bound[v] = gain
        if late:
            continue
        waiting.remove(v)
        if block < 0:
            continue
        free.remove(v)
        own = int(labels[v])
        weight[own] -= int(level.weights[v])
        weight[block] += int(level.weights[v])
        labels[v] = block
        log.append((v, own))
        gained += gain
        if gained > most:
            most, best = gained, len(log)
        for u, w in rows[v].items():
            if u in free:
                bound[u] += 2 * w if labels[u] == own else (-w if labels[u] == block else w)
                waiting.add(u)
    for v, own in log[best:]:
        labels[v] = own
    return most

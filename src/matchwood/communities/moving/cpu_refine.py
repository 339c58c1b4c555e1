"""Parts of communities that are well connected, on a team.  The rule: reference.refine.

A sub-round has three phases with barriers between them: singletons choose a part, all who chose
take its label, and then what is known of the parts is brought up to date.  That needs the labels of
all, since two neighbours may have joined the same part at once.

Races: as in cpu.py.  A part of one vertex whose turn it is takes nobody in, so a part that someone
joins has members that stay.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.cpu_subrounds import CHUNK, Split, split_of, split_round
from matchwood.communities.moving.plan import REFINEMENT, Plan
from matchwood.communities.weights import Level
from matchwood.engines.cpu import (
    atomic_add,
    barrier,
    device,
    expanded,
    interrupted,
    kernel,
    next_chunk,
    share,
)
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.tally.cpu import Rows, Sums, add_up, labels_around, rows_of, sums_of, word

Array = np.ndarray[Any, Any]


class Parts(NamedTuple):
    """What is known of vertices, of their parts, and of their communities."""

    labels: Array  # the community of a vertex
    strength: Array
    inside: Array  # weight from a vertex to the rest of its community
    part: Array
    volume: Array  # of a part
    size: Array
    outward: Array  # weight from a part to the rest of its community
    whole: Array  # the volume of a community
    target: Array
    before: Array  # weight from a vertex to the part that it joins
    movers: Array  # of each chunk
    scale: float  # resolution / total


@device
def _weight_to(rows: Rows, labels: Array, v: Any, c: Any) -> Any:
    """Weight from v to the vertices with label c."""
    total = np.int64(0)
    for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
        if labels[rows.indices[k]] == c:
            total += rows.data[k] if rows.data.size > 0 else 1
    return total


@device
def _tied(parts: Parts, weight: Any, volume: Any, community: Any) -> Any:
    """Something of that volume is well connected to the rest of its community."""
    rest = parts.whole[community] - volume
    return np.float64(weight) >= parts.scale * np.float64(volume) * np.float64(rest)


@expanded
def _best(rows: Rows, parts: Parts, sums: Sums, rank: int, number: Array, turn: int, v: Any) -> Any:
    """The part that v joins, or v."""
    own, strength = parts.labels[v], parts.strength[v]
    best, best_value, best_weight = v, 0.0, np.int64(0)
    mine = parts.scale * np.float64(strength)
    labels_around(sums, rank, rows, parts.part, v)
    entries = add_up(sums, rank, rows, v)
    total, label = sums.total[rank], sums.label[rank]
    for i in range(np.uint64(entries)):
        c = label[i]
        weight = np.int64(total[c])
        total[c] = 0
        if weight == 0 or parts.labels[c] != own:
            continue
        if parts.size[c] == 1 and number[c] == turn:
            continue
        value = np.float64(weight) - mine * np.float64(parts.volume[c])
        if value < best_value or (value == best_value and best == v):
            continue
        if value == best_value and mix64(np.uint64(best)) < mix64(np.uint64(c)):
            continue
        if _tied(parts, parts.outward[c], parts.volume[c], own):
            best, best_value, best_weight = c, value, weight
    parts.before[v] = best_weight
    return best


@device
def _choose(team: Any, rows: Rows, parts: Parts, sums: Sums, split: Split, turn: int) -> None:
    begin, end = split.begins[turn], split.begins[turn + 1]
    chunk = next_chunk(team, end - begin, CHUNK)
    while chunk >= 0:
        first = begin + chunk
        place = first
        for i in range(first, min(first + CHUNK, end)):
            v = split.order[i]
            if parts.size[v] != 1:
                continue
            if not _tied(parts, parts.inside[v], parts.strength[v], parts.labels[v]):
                continue
            target = _best(rows, parts, sums, team.rank, split.number, turn, v)
            if target != v:
                parts.target[v] = target
                split.order[place] = v
                place += 1
        parts.movers[chunk // CHUNK] = place - first
        chunk = next_chunk(team, end - begin, CHUNK)


@device
def _join(team: Any, rows: Rows, parts: Parts, split: Split, turn: int) -> bool:
    begin, end = split.begins[turn], split.begins[turn + 1]
    chunk = next_chunk(team, end - begin, CHUNK)
    while chunk >= 0:
        first = begin + chunk
        for i in range(first, first + parts.movers[chunk // CHUNK]):
            v = split.order[i]
            parts.part[v] = parts.target[v]
        chunk = next_chunk(team, end - begin, CHUNK)
    if barrier(team):
        return True
    chunk = next_chunk(team, end - begin, CHUNK)
    while chunk >= 0:
        first = begin + chunk
        for i in range(first, first + parts.movers[chunk // CHUNK]):
            v = split.order[i]
            c = parts.part[v]
            after = _weight_to(rows, parts.part, v, c)
            atomic_add(parts.outward, c, parts.inside[v] - parts.before[v] - after)
            atomic_add(parts.volume, c, parts.strength[v])
            atomic_add(parts.size, c, 1)
            parts.size[v] = 0
        chunk = next_chunk(team, end - begin, CHUNK)
    return barrier(team)


@kernel
def _refine(
    team: Any, rows: Rows, parts: Parts, split: Split, sums: Sums, round_number: int
) -> None:
    lo, hi = share(team, parts.labels.size)
    for v in range(lo, hi):
        parts.part[v] = v
        parts.volume[v] = parts.strength[v]
        parts.size[v] = 1
        parts.whole[v] = 0
    if barrier(team):
        return
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        inside = _weight_to(rows, parts.labels, np.uint64(v), parts.labels[v])
        parts.inside[v] = inside
        parts.outward[v] = inside
        atomic_add(parts.whole, parts.labels[v], parts.strength[v])
    if barrier(team) or split_round(team, split, round_number):
        return
    for turn in range(split.begins.size - 1):
        _choose(team, rows, parts, sums, split, turn)
        if barrier(team) or _join(team, rows, parts, split, turn):
            return


def refine(team: Any, level: Level, labels: Array, plan: Plan) -> Array:
    """See reference.refine."""
    n = level.n
    rows = rows_of(level.indptr, level.indices, level.data, word(level.total))
    kind = rows.indices.dtype
    part = np.empty(n, labels.dtype)
    scale = plan.resolution / float(level.total) if level.total else 0.0
    words = [np.empty(n, np.int64) for _ in range(5)]
    parts = Parts(
        labels.view(kind), level.strength, words[0], part.view(kind), words[1],
        np.empty(n, np.int32), words[2], words[3], np.empty(n, kind), words[4],
        np.empty(n // CHUNK + 1, np.int64), scale,
    )  # fmt: skip
    sums = sums_of(team.size, n, level.longest, rows, level.total)
    split = split_of(n, team.size, kind, plan.seed, level.indptr, level.tied)
    if n:
        team.run(_refine, rows, parts, split, sums, REFINEMENT)
    return part

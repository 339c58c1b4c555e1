"""Nested dissection as a recursion, on sets of vertices.  The rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.dissection import MERGED, in_postorder
from matchwood.partitioning.separator import Pieces, limits_of, separate_pieces
from matchwood.primitives.hashing.reference import hash2_number


def dissect(
    view: Any, leaf: int, tries: int, imbalance: float, seed: int, threads: int | None = None
) -> tuple[Any, Any, Any]:
    n = view.n
    rows = [set(view.indices[view.indptr[v] : view.indptr[v + 1]].tolist()) for v in range(n)]
    equal: dict[frozenset[int], list[int]] = {}
    for v in range(n):
        equal.setdefault(frozenset(rows[v] | {v}), []).append(v)
    if len(equal) > MERGED * n:
        groups = {v: [v] for v in range(n)}
    else:
        groups = {group[0]: group for group in equal.values()}
    node, parents, cuts = np.full(n, -1), [-1], [True]

    def component(start: int, inside: set[int]) -> set[int]:
        found, waiting = {start}, [start]
        while waiting:
            for v in rows[waiting.pop()] & inside - found:
                found.add(v)
                waiting.append(v)
        return found

    def weight(some: Any) -> int:
        return sum(len(groups[v]) for v in some)

    def separated(piece: list[int]) -> tuple[list[int], int]:
        place = {v: k for k, v in enumerate(piece)}
        inner = [[place[u] for u in sorted(rows[v]) if u in place] for v in piece]
        weights = np.array([len(groups[v]) for v in piece])
        pieces = Pieces(
            np.cumsum([0, *map(len, inner)]),
            np.array([u for row in inner for u in row], np.int32),
            weights,
            np.array([0, len(piece)]),
            limits_of(weights.sum(keepdims=True), imbalance),
            np.array([hash2_number(piece[0], len(piece), seed)], np.uint64),
        )
        side, lighter = separate_pieces(pieces, tries=tries, engine="reference")
        return side.tolist(), int(lighter[0])

    def put(vertices: Any, above: int, cut: bool) -> int:
        for v in vertices:
            node[groups[v]] = len(parents)
        parents.append(above)
        cuts.append(cut)
        return len(parents) - 1

    def split(sides: list[set[int]], above: int) -> None:
        """The parts of these sides of a separator: first their leaves, then what is cut again."""
        large = []
        for side in sides:
            small, rest = set(), set(side)
            while rest:
                found = component(min(rest), rest)
                rest -= found
                if weight(found) > leaf:
                    large.append(sorted(found))
                else:
                    small |= found
            if small:
                put(small, above, False)
        for piece in sorted(large):
            where, lighter = separated(piece)
            if lighter == 0:
                put(piece, above, False)
                continue
            parts = [{v for v, s in zip(piece, where, strict=True) if s == k} for k in range(3)]
            split(parts[:2], put(parts[2], above, True))

    split([set(groups)], 0)
    return in_postorder(node, parents, cuts)

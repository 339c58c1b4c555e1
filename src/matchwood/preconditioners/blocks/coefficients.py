"""The 2x2 blocks of a matrix along a linear forest of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines


def members_of(map: Any, mate: Any, forest: Any) -> Any:
    """(pairs, 2) array, pairs in the order of the forest: the smaller vertex, its mate or -1."""
    if engines.location(map) == "gpu":
        from matchwood.preconditioners.blocks import gpu

        return gpu.members(map, mate, forest.place)
    kind = mate.dtype
    vertices = np.arange(map.shape[0], dtype=kind)
    first = (mate < 0) | (vertices < mate)
    members = np.empty((forest.perm.shape[0], 2), kind)
    place = forest.place[map[first]]
    members[place, 0] = vertices[first]
    members[place, 1] = mate[first]
    return members


def blocks_of(
    G: Any, map: Any, forest: Any, members: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """dl, d, du of shape (pairs, 2, 2): the entries of G's matrix along the paths of pairs."""
    from matchwood.preconditioners.blocks import cpu, gpu

    view = G.directed_weights()
    kind = view.indices.dtype
    # place of each vertex's pair in the order; whether the path goes on to the next pair
    place = forest.place[map].astype(kind, copy=False)
    position = forest.position[forest.perm].astype(kind, copy=False)
    members = members.astype(kind, copy=False)
    if G.engine == "gpu":
        return gpu.blocks(view, place, position, members)
    return cpu.blocks(view, place, position, members, threads=threads)


def weight_inside(blocks: tuple[Any, Any, Any]) -> float:
    """Weight off the diagonal that the blocks hold."""
    if engines.location(blocks[1]) == "gpu":
        from matchwood.preconditioners.blocks import gpu

        return gpu.weight_inside(*blocks)
    d = blocks[1]
    total = sum(float(abs(block).sum(dtype=np.float64)) for block in blocks)
    return total - sum(float(abs(d[:, i, i]).sum(dtype=np.float64)) for i in (0, 1))

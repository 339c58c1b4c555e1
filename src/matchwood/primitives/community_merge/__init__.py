"""Communities that join a neighbour: one round, and the trees that it makes.

Read on in reference.py, cpu.py, gpu.py + gpu.cu.

A round, for communities with integer weights w between them and volumes k (the sum of a row, loops
included), 2m being the sum of all volumes:

    pick    of r: the neighbour u with the largest  w(r, u) - resolution k_r k_u / 2m,  if that is
            above 0; of equal ones the u whose name has the larger mix64
    join    r joins its pick u if  (k, mix64 of the name, name)  of r is the smaller one

The name of a community is the vertex that it began with; it stays the same in all rounds.  Since
every join goes up in the order of (k, mix64, name), joins form trees, and no two communities swap
places.  `rabbit_order` and `louvain(method="joining")` both contract these trees and go on until
none joins.

The difference is in float64, ``w - resolution * k_r * k_u / 2m`` from left to right without fused
multiplication: the same bits on every engine.

These functions are for arrays that have passed a gate; they check nothing.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines


def trusted_joins(
    pattern: tuple[Any, Any, Any], volume: Any, names: Any, total: int, *, resolution: float = 1.0,
    engine: str | None = None, threads: int | None = None,
) -> Any:  # fmt: skip
    """target[r]: the community that r joins in this round, or r itself.

    Parameters
    ----------
    pattern : (indptr, indices, weights)
        Symmetric, loops allowed and passed over; weights int64, or None where all are 1.
    volume : (n,) int64 array
        k of each community.
    names : (n,) array of the type of indices
    total : int
        The sum of all volumes, 2m; below 2^53.
    """
    where = engines.location(volume) if engine is None else engine
    return engines.load(__name__, where).joins(
        pattern, volume, names, total, float(resolution), threads=threads
    )


def trusted_trees(
    target: Any, *, engine: str | None = None, threads: int | None = None
) -> tuple[Any, Any]:
    """(label, root): the tree that each community is in, and the root of each tree.

    Trees are numbered by their roots, ascending.  `target` is not changed.
    """
    where = engines.location(target) if engine is None else engine
    found: tuple[Any, Any] = engines.load(__name__, where).trees(target, threads=threads)
    return found

"""Numbers for the roots of trees: 0, 1, 2, ... in the order of the vertices.

Where every vertex knows the root of its tree, the roots are counted and numbered, and each vertex
gets the number of its root.  Where the root is the smallest vertex of a tree, trees are numbered by
their smallest vertex.  A step of connected and strong components, and of Boruvka's rounds.

    check.py       are these the numbers?
    cpu.py         `flatten` links every vertex to its root, `number_roots` numbers; on a team
    number.cuh     the same numbering for the blocks of a grid
    gpu.py gpu.cu  labels numbered on the GPU
    ranks/         labels of vertices that ranks share

`number_labels` does it for any labels below n: their smallest vertices are the roots.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.arguments import INDEX, integers, vector

__all__ = ["number_labels"]


def number_labels(
    labels: Any, *, engine: str | None = None, threads: int | None = None
) -> tuple[int, Any]:
    """How many labels are in use, and for each vertex the number of its label.

    Labels get 0, 1, ... in the order of their smallest vertices.  `labels` are n
    integers in 0..n-1, int32 or int64; they are not changed.

    Raises
    ------
    TypeError, ValueError
        If a label is no integer or is not in 0..n-1.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.number import number_labels
    >>> count, numbers = number_labels(np.array([3, 1, 1, 3, 0]))
    >>> count, numbers.tolist()
    (3, [0, 1, 1, 0, 2])
    """
    call = "number_labels"
    home = engines.location(labels)
    where = engines.resolve(home, engine, call, threads)
    labels = vector(call, "labels", labels, INDEX)
    labels = engines.xp(labels).ascontiguousarray(
        integers(call, "labels", labels, low=0, high=labels.size - 1)
    )
    count, numbers = trusted_number_labels(
        engines.moved(labels, engines.home(where)), engine=where, threads=threads
    )
    return count, engines.moved(numbers, home)


def trusted_number_labels(
    labels: Any, *, engine: str | None = None, threads: int | None = None
) -> tuple[int, Any]:
    """`number_labels` for labels that have passed a gate, where the engine reads them."""
    where = engines.location(labels) if engine is None else engine
    found: tuple[int, Any] = engines.load(__name__, where).number_labels(labels, threads=threads)
    return found

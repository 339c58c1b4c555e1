"""Are these the numbers of the roots?  Decided without numbering anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed


def check_numbers(root: Any, numbers: Any, count: int) -> None:
    """Raise `CheckFailed` unless `numbers` are 0 .. count - 1, one a root, in the order of roots.

    `root` is the root of each vertex, of trees without depth: ``root[root[v]] == root[v]``.
    """
    answers.of_kind("check_numbers", "iu", root=root, numbers=numbers)
    if root.ndim != 1 or numbers.shape != root.shape:
        raise CheckFailed(
            f"numbers: must have {root.size} elements, as the roots, got shape {numbers.shape}"
        )
    n = root.size
    wrong = answers.first(root >= n)
    if wrong is None:
        wrong = answers.first(root[root] != root)
    if wrong is not None:
        raise CheckFailed(f"numbers: {root[wrong]}, above vertex {wrong}, is no root")
    roots = np.flatnonzero(root == np.arange(n))
    if roots.size != count:
        raise CheckFailed(f"numbers: there are {roots.size} roots, got a count of {count}")
    if (wrong := answers.first(numbers[roots] != np.arange(count))) is not None:
        v = int(roots[wrong])
        raise CheckFailed(f"numbers: root {v} must have number {wrong}, got {numbers[v]}")
    if (wrong := answers.first(numbers != numbers[root])) is not None:
        raise CheckFailed(
            f"numbers: vertex {wrong} has number {numbers[wrong]}, its root "
            f"{root[wrong]} has {numbers[root[wrong]]}"
        )

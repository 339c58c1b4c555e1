"""Are these the connected components?  Decided without a component algorithm of ours.

Labels are right when no edge joins two labels (so no component is split) and each label's
vertices are connected (so no two are merged).  The second is decided by growing, from the
smallest vertex of each label, along edges: near-linear, by breadth-first levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import csr
from matchwood.components.answers import count_and_labels
from matchwood.errors import CheckFailed
from matchwood.traversal.breadth_first import bfs


def check_connected_components(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` numbers the connected components of `A`.

    Parameters
    ----------
    A : as given to `connected_components`
    answer : Components, (count, labels) or labels

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(3)
    >>> matchwood.check.check_connected_components(A, [0, 0, 0])
    >>> matchwood.check.check_connected_components(A, [0, 0, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: components: edge (1, 2) joins labels 0 and 1
    """
    G = csr.as_graph(A, "check_connected_components").on("cpu")
    count, labels = count_and_labels(answer)
    n = G.n
    if labels.shape != (n,):
        raise CheckFailed(f"components: labels must have {n} elements, got shape {labels.shape}")
    found, first = np.unique(labels, return_index=True)
    if count is not None and count != found.size:
        raise CheckFailed(f"components: count is {count}, but there are {found.size} labels")
    if not np.array_equal(found, np.arange(found.size)):
        raise CheckFailed(f"components: labels must be 0..{found.size - 1} without gaps")
    late = np.flatnonzero(np.diff(first) < 0)
    if late.size:
        k = int(late[0])
        raise CheckFailed(
            f"components: label {k + 1} (smallest vertex {first[k + 1]}) must come before "
            f"label {k} (smallest vertex {first[k]})"
        )
    view = G.undirected_pattern()
    u, v = np.repeat(np.arange(n), np.diff(view.indptr)), view.indices
    split = np.flatnonzero(labels[u] != labels[v])
    if split.size:
        i, j = int(u[split[0]]), int(v[split[0]])
        raise CheckFailed(f"components: edge ({i}, {j}) joins labels {labels[i]} and {labels[j]}")
    lost = np.flatnonzero(bfs(G, first, directed=False).level < 0)
    if lost.size:
        i = int(lost[0])
        raise CheckFailed(
            f"components: no path joins vertex {i} to vertex {first[labels[i]]}, "
            f"though both have label {labels[i]}"
        )

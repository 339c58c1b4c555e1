"""What the right labels of joined sets are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from matchwood import answers
from matchwood.errors import CheckFailed


def check_union_find(n: int, u: Any, v: Any, label: Any) -> None:
    """Raise `CheckFailed` unless ``label[i]`` is the smallest vertex of the set of i.

    No label is larger than its vertex, and a label is its own label: so it is the smallest of those
    that share it.  The ends of an edge share theirs: so sets are whole.  And there are as many as
    SciPy counts components: so none are joined without an edge.
    """
    answers.of_kind("check_union_find", "iu", label=label)
    if label.shape != (n,):
        raise CheckFailed(f"union-find: {n} labels expected, got shape {label.shape}")
    if (i := answers.first((label < 0) | (label > np.arange(n)))) is not None:
        raise CheckFailed(f"union-find: label[{i}] = {label[i]} is not in 0 .. {i}")
    if (i := answers.first(label[label] != label)) is not None:
        raise CheckFailed(
            f"union-find: label[{i}] = {label[i]}, whose own label is {label[label[i]]}"
        )
    if (k := answers.first(label[u] != label[v])) is not None:
        raise CheckFailed(
            f"union-find: edge {k} joins {u[k]} and {v[k]} with labels {label[u[k]]}, {label[v[k]]}"
        )
    graph = sp.coo_array((np.ones(u.size, dtype=np.int8), (u, v)), shape=(n, n))
    count = csgraph.connected_components(graph, directed=False)[0] if n else 0
    found = np.count_nonzero(label == np.arange(n))
    if found != count:
        raise CheckFailed(f"union-find: {found} sets, but the edges leave {count}")

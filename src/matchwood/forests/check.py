"""Is this the linear forest of its factor?  Decided from the definition, with sorted pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, calls, engines
from matchwood.components import connected_components
from matchwood.errors import CheckFailed
from matchwood.factors.check import check_factor, within
from matchwood.forests.factor import mean_weights
from matchwood.gate import graph as csr

Array = np.ndarray[Any, Any]


def check_linear_forest(A: Any, forest: Any) -> None:
    """Raise `CheckFailed` unless `forest` is a linear forest of the graph of `A`.

    Every vertex is in exactly one path, which is named by its smaller end, at position 1;
    consecutive vertices of a path are edges of `A`.  The edges of the factor that the forest lacks
    are the weakest edges of its cycles, one of each.

    Parameters
    ----------
    A : as given to `linear_forest`
    forest : LinearForest

    Examples
    --------
    >>> import dataclasses
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> forest = matchwood.linear_forest(A)
    >>> matchwood.check.check_linear_forest(A, forest)
    >>> wrong = dataclasses.replace(forest, perm=forest.perm[::-1])
    >>> matchwood.check.check_linear_forest(A, wrong)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: linear forest: perm[0] is 3, but place[3] is 3
    """
    caller = "check_linear_forest"
    fields = ("perm", "path", "position", "place", "factor")
    answers.require(caller, "forest", forest, "LinearForest", *fields)
    G = calls.enter(A, caller, "cpu").graph
    n = G.n
    _arrays(forest, n, caller)
    check_factor(G, forest.factor)
    u, v, table = check_paths(forest, caller)
    if n == 0:
        return
    _check_edges(G, u, v)
    _check_cuts(forest, table, np.minimum(u, v) * n + np.maximum(u, v))


def _arrays(forest: Any, n: int, caller: str) -> dict[str, Array]:
    """The four arrays of a forest; floats and truth values are no vertices."""
    return {
        name: answers.integers(caller, "linear forest", name, getattr(forest, name), (n,), "cpu")
        for name in ("perm", "path", "position", "place")
    }


def check_paths(forest: Any, caller: str) -> tuple[Array, Array, Array]:
    """Raise `CheckFailed` unless the arrays of a forest describe paths, along edges of its factor.

    Returns the ends of these edges and the neighbours in the factor."""
    n = int(answers.array(caller, "perm", forest.perm).size)
    arrays = _arrays(forest, n, caller)
    for name, array in arrays.items():
        # positions go to n, and wide ones must not wrap
        if (k := answers.first((array < 0) | (array > n))) is not None:
            raise CheckFailed(f"linear forest: {name}[{k}] is {array[k]}, no vertex of 0..{n - 1}")
    perm, path, position, place = arrays.values()
    _check_order(perm, path, position, place)
    table = _check_table(getattr(forest.factor, "neighbours", None), n, caller)
    inside = path[perm[1:]] == path[perm[:-1]]
    u, v = perm[:-1][inside], perm[1:][inside]
    if (k := answers.first(~(table[u] == v[:, None]).any(axis=1))) is not None:
        raise CheckFailed(f"linear forest: edge ({u[k]}, {v[k]}) is not in the factor")
    return u, v, table


def _check_table(neighbours: Any, n: int, caller: str) -> Array:
    table = np.asarray(engines.moved(neighbours, "cpu"))
    if table.shape != (n, 2):
        raise CheckFailed(f"linear forest: the factor must have shape ({n}, 2), got {table.shape}")
    if table.dtype.kind not in "iu":
        raise TypeError(f"{caller}: the factor must hold integers, got dtype {table.dtype}")
    outside = (table < -1) | (table >= n)
    if outside.any():
        v, slot = np.argwhere(outside)[0].tolist()
        raise CheckFailed(
            f"linear forest: in the factor vertex {v} lists {table[v, slot]}, no vertex"
        )
    return table.astype(np.int64)


def _check_order(perm: Array, path: Array, position: Array, place: Array) -> None:
    n = perm.size
    if (k := answers.first((perm < 0) | (perm >= n))) is not None:
        raise CheckFailed(f"linear forest: perm[{k}] is {perm[k]}, no vertex of 0..{n - 1}")
    if (k := answers.first(place[perm] != np.arange(n))) is not None:
        raise CheckFailed(
            f"linear forest: perm[{k}] is {perm[k]}, but place[{perm[k]}] is {place[perm[k]]}"
        )
    ids, at = path[perm], position[perm]
    new_path = np.ones(n, bool)
    new_path[1:] = ids[1:] != ids[:-1]
    if (k := answers.first(ids[1:] < ids[:-1])) is not None:
        raise CheckFailed(
            f"linear forest: path {ids[k + 1]} comes after path {ids[k]} in the order"
        )
    start = np.maximum.accumulate(np.where(new_path, np.arange(n), 0))
    if (k := answers.first(at != np.arange(n) - start + 1)) is not None:
        raise CheckFailed(
            f"linear forest: vertex {perm[k]} has position {at[k]}, "
            f"but comes as number {k - start[k] + 1} of path {ids[k]}"
        )
    firsts = np.flatnonzero(new_path)
    lasts = np.append(firsts[1:], n) - 1
    smaller = np.minimum(perm[firsts], perm[lasts]) if n else firsts
    if (k := answers.first((perm[firsts] != smaller) | (ids[firsts] != smaller))) is not None:
        raise CheckFailed(
            f"linear forest: path {ids[firsts[k]]} runs from {perm[firsts[k]]} to "
            f"{perm[lasts[k]]}; it must have the name of the smaller end, and start there"
        )


def _check_edges(G: csr.Graph, u: Array, v: Array) -> None:
    view = G.undirected_pattern()
    edges = np.repeat(np.arange(G.n), np.diff(view.indptr)) * G.n + view.indices
    if (k := answers.first(~within(u * G.n + v, edges))) is not None:
        raise CheckFailed(f"linear forest: ({u[k]}, {v[k]}) is no edge of the matrix")


def _check_cuts(forest: Any, table: Array, kept: Array) -> None:
    """The edges of the factor that the forest lacks are the weakest of its cycles."""
    n = table.shape[0]
    weights = np.asarray(engines.moved(forest.factor.weights, "cpu")).astype(np.float64)
    if forest.factor.directed:
        weights = np.asarray(
            mean_weights(table, np.asarray(engines.moved(forest.factor.weights, "cpu")))
        ).astype(np.float64)
    u, slot = np.nonzero(table > np.arange(n)[:, None])
    v, w = table[u, slot], weights[u, slot]
    order = np.lexsort((v, u))
    u, v, w = u[order], v[order], w[order]
    keys = u * n + v
    is_kept = np.isin(keys, kept, assume_unique=True)
    label = connected_components((n, np.stack((u, v), axis=1))).labels
    cyclic = np.bincount(label[u], minlength=n)[label] == np.bincount(label, minlength=n)[label]
    # the weakest edge of each cycle: of its edges by (label, weight, ends) the first
    order = np.lexsort((v, u, w, label[u]))
    order = order[cyclic[u[order]]]
    first = np.ones(order.size, bool)
    first[1:] = label[u[order]][1:] != label[u[order]][:-1]
    weakest = np.zeros(u.size, bool)
    weakest[order[first]] = True
    if (k := answers.first(is_kept == weakest)) is not None:
        raise CheckFailed(
            f"linear forest: edge ({u[k]}, {v[k]}) is the weakest of a cycle and must be removed"
            if weakest[k]
            else f"linear forest: edge ({u[k]}, {v[k]}) of the factor is missing, "
            "and is not the weakest of a cycle"
        )
    removed = np.asarray(engines.moved(forest.removed, "cpu")).astype(np.int64)
    expected = np.stack((u[weakest], v[weakest]), axis=1)
    if removed.shape != expected.shape or (removed != expected).any():
        raise CheckFailed(
            f"linear forest: removed lists {removed[:3].tolist()}..., "
            f"but the edges cut are {expected[:3].tolist()}..."
        )

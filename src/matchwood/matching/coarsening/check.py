"""Is this the graph that the matching leaves?  Decided by passes over vertices and entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import answers, csr, engines
from matchwood.errors import CheckFailed
from matchwood.matching import mates
from matchwood.matching.coarsening import vertex_weights_of

ROUNDING = {"float32": 1e-5, "float64": 1e-12}  # of a sum of four weights, relative


def check_coarsening(A: Any, matching: Any, answer: Any, *, vertex_weights: Any = None) -> None:
    """Raise `CheckFailed` unless `answer` is what `coarsen` should give.

    Parameters
    ----------
    A, matching, vertex_weights : as given to `coarsen`
    answer : Coarsening

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.check import check_coarsening
    >>> A = matchwood.generators.path(4)
    >>> check_coarsening(A, [1, 0, 3, 2], matchwood.coarsen(A, [1, 0, 3, 2]))
    >>> check_coarsening(A, [1, 0, -1, -1], matchwood.coarsen(A, [1, 0, 3, 2]))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: coarsening: map[3] is 1, must be 2
    """
    caller = "check_coarsening"
    view = csr.as_graph(A, caller).on("cpu").undirected_weights(caller)
    n = view.n
    mate = mates.gate(caller, matching, n, "cpu", np.int64)
    map = answers.integers(caller, "coarsening", "map", answer.map, (n,), "cpu")
    v = np.arange(n)
    first = (mate < 0) | (mate > v)
    expected = (np.cumsum(first) - 1)[np.where(first, v, mate)] if n else v
    if (map != expected).any():
        at = int((map != expected).argmax())
        raise CheckFailed(f"coarsening: map[{at}] is {map[at]}, must be {expected[at]}")
    k = int(first.sum())
    members = vertex_weights_of(vertex_weights, n, "cpu", caller)
    _check_vertices(answer.vertex_weights, members, mate, first, caller)
    indptr, indices, data = answers.matrix(caller, "coarsening", answer.matrix, k)
    rows = np.repeat(np.arange(k), np.diff(indptr))
    found = sp.coo_array((data, (rows, indices)), shape=(k, k))
    _compare(found, _merged(view, map, k), _rounding(view))


def _check_vertices(weights: Any, members: Any, mate: Any, first: Any, caller: str) -> None:
    """Each coarse vertex weighs what its members do; integers to the last digit."""
    weights = engines.moved(answers.array(caller, "vertex_weights", weights), "cpu")
    if weights.dtype.kind not in "iuf" or (weights.dtype.kind == "f") != (
        members.dtype.kind == "f"
    ):
        raise TypeError(f"{caller}: vertex_weights must be {members.dtype}, got {weights.dtype}")
    other = np.where(mate >= 0, members[mate], members.dtype.type(0)) if mate.size else members
    with np.errstate(over="ignore"):
        wanted = (members + other)[first]
    if weights.shape != wanted.shape:
        raise CheckFailed(
            f"coarsening: vertex_weights must have {wanted.size} elements, got {weights.shape}"
        )
    wrong = ~(weights == wanted)
    if wrong.any():
        at = int(wrong.argmax())
        raise CheckFailed(
            f"coarsening: vertex_weights[{at}] is {weights[at]}, but its members weigh {wanted[at]}"
        )


def _rounding(view: csr.View) -> float:
    return ROUNDING[view.data.dtype.name]


def _merged(view: csr.View, map: Any, k: int) -> Any:
    """The coarse matrix, by SciPy."""
    rows, columns = np.repeat(map, np.diff(view.indptr)), map[view.indices]
    between = rows != columns
    data = view.data[between].astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = sp.coo_array((data, (rows[between], columns[between])), shape=(k, k)).tocsr()
    return wanted


def _compare(found: Any, wanted: Any, rounding: float) -> None:
    # keys of the entries, so that a missing one and a superfluous one can be named
    size = max(1, found.shape[0])
    wanted = wanted.tocoo()
    wanted.sum_duplicates()
    ours = found.row.astype(np.int64) * size + found.col
    theirs = wanted.row.astype(np.int64) * size + wanted.col
    ascending = np.sort(ours)
    twice = ascending[1:] == ascending[:-1]
    if twice.any():
        i, j = divmod(int(ascending[1:][twice][0]), size)
        raise CheckFailed(f"coarsening: entry ({i}, {j}) of the matrix is stored twice")
    for keys, text in (
        (np.setdiff1d(theirs, ours), "is missing"),
        (np.setdiff1d(ours, theirs), "joins nothing"),
    ):
        if keys.size:
            i, j = divmod(int(keys[0]), size)
            raise CheckFailed(f"coarsening: entry ({i}, {j}) of the matrix {text}")
    a, b = found.data[np.argsort(ours)], wanted.data[np.argsort(theirs)]
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = ~(np.abs(a - b) <= rounding * np.abs(b))  # also where one is NaN
    if wrong.any():
        at = int(wrong.argmax())
        i, j = divmod(int(np.sort(ours)[at]), size)
        raise CheckFailed(f"coarsening: entry ({i}, {j}) of the matrix is {a[at]}, must be {b[at]}")

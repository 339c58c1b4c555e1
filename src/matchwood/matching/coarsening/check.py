"""Is this the graph with matched vertices merged?  Decided by passes over vertices and entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.coarsening import vertex_weights_of
from matchwood.matching.methods import mates_in
from matchwood.primitives.contract.check import check_contracted


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
    answers.require(caller, "answer", answer, "Coarsening", "map", "vertex_weights", "matrix")
    view = csr.as_graph(A, caller).on("cpu").undirected_weights(caller)
    n = view.n
    mate = mates_in(caller, matching, n, "cpu", np.int64)
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
    matrix = answers.matrix(caller, "coarsening", answer.matrix, k)
    check_contracted(view, map, k, matrix, "coarsening")


def check_hierarchy(A: Any, answer: Any, *, vertex_weights: Any = None) -> None:
    """Raise `CheckFailed` unless each level of `answer` is the one before with pairs merged.

    Parameters
    ----------
    A, vertex_weights : as given to `coarsening_hierarchy`
    answer : Hierarchy

    Notes
    -----
    Which vertices are paired is not judged: by matching edges, or by a common neighbour.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.check import check_hierarchy
    >>> A = matchwood.generators.grid((6, 6))
    >>> check_hierarchy(A, matchwood.coarsening_hierarchy(A, until=5))
    """
    caller = "check_hierarchy"
    answers.require(caller, "answer", answer, "Hierarchy", "levels")
    for k, level in enumerate(answer.levels):
        n = csr.as_graph(A, caller).n
        map = answers.integers(caller, f"levels[{k}]", "map", level.map, (n,), "cpu")
        with answers.in_the_name_of(caller):
            check_coarsening(A, _mates(map, n, k), level, vertex_weights=vertex_weights)
        A, vertex_weights = level.matrix, level.vertex_weights


def _mates(map: Any, n: int, level: int) -> Any:
    """The other vertex with the same coarse vertex, or -1; at most two may share one."""
    order = np.argsort(map, kind="stable")
    same = map[order[1:]] == map[order[:-1]]
    crowded = same[1:] & same[:-1]
    if crowded.any():
        at = map[order[int(crowded.argmax())]]
        raise CheckFailed(f"hierarchy: level {level} merges more than two vertices into {at}")
    mate = np.full(n, -1, np.int64)
    first, second = order[:-1][same], order[1:][same]
    mate[first], mate[second] = second, first
    return mate


def _check_vertices(weights: Any, members: Any, mate: Any, first: Any, caller: str) -> None:
    """Raise unless each coarse vertex weighs exactly what its members do."""
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

"""What the check of spanning forests takes as an answer: edges, weights and a few numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, engines
from matchwood.errors import CheckFailed
from matchwood.spanning.forest import sum_of

PROBLEM = "spanning forest"
SUM_ERROR = 1e-12  # of a sum of many floats in any order, as a part of the sum of their sizes


class Given(NamedTuple):
    """Edges with the smaller end first, in the order that they came in, and their weights."""

    edges: Any  # (m, 2), int64
    weights: Any  # or None


def unpacked(caller: str, answer: Any, n: int) -> Given:
    """The edges of a `Forest`, a sparse matrix, (edges, weights) or edges, on the CPU."""
    if hasattr(answer, "tocoo"):
        return _of_matrix(caller, answer, n)
    weights = None
    if hasattr(answer, "edges") and hasattr(answer, "weights"):
        answer, weights = answer.edges, answer.weights
    elif isinstance(answer, tuple) and len(answer) == 2 and not _is_pair(answer):
        answer, weights = answer
    edges = answers.array(caller, "edges", answer)
    if edges.size == 0:
        edges = np.empty((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise CheckFailed(f"{PROBLEM}: edges must have shape (m, 2), got {edges.shape}")
    edges = answers.integers(caller, PROBLEM, "edges", edges, edges.shape, "cpu")
    u, v = edges[:, 0], edges[:, 1]
    outside = answers.first((u < 0) | (u >= n) | (v < 0) | (v >= n))
    if outside is not None:
        raise CheckFailed(f"{PROBLEM}: edge ({u[outside]}, {v[outside]}) leaves 0 .. {n - 1}")
    if weights is not None:
        if not hasattr(weights, "dtype") and len(weights) == 0:
            weights = np.empty(0)
        weights = answers.reals(
            caller, PROBLEM, "weights", weights, (edges.shape[0],), "cpu"
        )  # fmt: skip
    return Given(edges, weights)


def _is_pair(answer: tuple[Any, ...]) -> bool:
    """Two edges in a tuple, ((0, 1), (1, 2)), are no (edges, weights)."""
    ends = (int, np.integer)
    return all(
        isinstance(edge, tuple) and len(edge) == 2 and all(isinstance(v, ends) for v in edge)
        for edge in answer
    )


def _of_matrix(caller: str, matrix: Any, n: int) -> Given:
    """Every stored entry is an edge; (u, v) and (v, u), of the same weight, are one."""
    if matrix.shape != (n, n):
        raise CheckFailed(f"{PROBLEM}: the matrix must have shape {(n, n)}, got {matrix.shape}")
    coo = matrix.tocoo()
    rows, columns, weights = (
        np.asarray(engines.moved(array, "cpu")) for array in (coo.row, coo.col, coo.data)
    )
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"{caller}: weights must hold real numbers, got dtype {weights.dtype}")
    edges = np.stack([rows, columns], axis=1).astype(np.int64)
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((edges[:, 0], high, low))
    edges, weights, key = edges[order], weights[order], (low.astype(np.int64) * n + high)[order]
    again = np.zeros(key.size, bool)
    again[1:] = (key[1:] == key[:-1]) & (edges[1:, 0] != edges[:-1, 0])
    differ = answers.first(again[1:] & (weights[1:] != weights[:-1]))
    if differ is not None:
        u, v = edges[differ].tolist()
        raise CheckFailed(
            f"{PROBLEM}: entries ({u}, {v}) and ({v}, {u}) of the matrix differ: "
            f"{weights[differ]} and {weights[differ + 1]}"
        )
    return Given(edges[~again], weights[~again])


def same_weights(true: Any, given: Any) -> Any:
    """Which weights are equal, as numbers: integers are never rounded to compare them."""
    if true.dtype.kind == "f" or given.dtype.kind == "f":
        if true.dtype.kind == given.dtype.kind:
            return true == given
        whole, floating = (true, given) if given.dtype.kind == "f" else (given, true)
        floating = floating.astype(np.float64)
        fits = (np.floor(floating) == floating) & (np.abs(floating) < 2.0**63)
        return fits & (np.where(fits, floating, 0.0).astype(np.int64) == whole)
    high = np.iinfo(np.int64).max
    fits = given <= high if given.dtype == np.uint64 else np.ones(given.shape, bool)
    return fits & (np.where(fits, given, 0).astype(np.int64) == true)


def check_numbers(caller: str, answer: Any, n: int, edges: Any, weights: Any) -> None:
    """The order of the edges of a `Forest`, and the numbers that it has besides them."""
    check_order(n, edges)
    check_counts(caller, answer, n, edges.shape[0])
    if weights.dtype.kind == "i":
        check_whole_total(caller, answer.total, sum_of(weights))
        return
    total = answers.number(caller, "total", answer.total)
    # a power of two takes the sum away from where floats end
    most = float(np.abs(weights).max(initial=0.0))
    shift = math.frexp(most)[1] + weights.size.bit_length()
    scaled = np.ldexp(weights.astype(np.float64), -shift)
    exact, size = float(scaled.sum()), float(np.abs(scaled).sum())
    if total_is_wrong(total, exact, size, shift, weights.size):
        raise CheckFailed(f"{PROBLEM}: total is {total}, the weights give {sum_of(weights)}")


def check_order(n: int, edges: Any) -> None:
    """Edges have the smaller end first, and ascend."""
    turned = answers.first(edges[:, 0] >= edges[:, 1])
    if turned is not None:
        u, v = edges[turned].tolist()
        raise CheckFailed(f"{PROBLEM}: edge {turned} is ({u}, {v}): the smaller end must be first")
    keys = edges[:, 0] * np.int64(n) + edges[:, 1]
    k = answers.first(keys[1:] <= keys[:-1])
    if k is not None:
        raise CheckFailed(f"{PROBLEM}: edges must ascend, but edge {k + 1} comes before edge {k}")


def check_counts(caller: str, answer: Any, n: int, m: int) -> None:
    """The vertices and trees of a `Forest` of m edges."""
    vertices = answers.whole(caller, "n", answer.n)
    if vertices != n:
        raise CheckFailed(f"{PROBLEM}: n is {vertices}, but the graph has {n} vertices")
    trees = answers.whole(caller, "components", answer.components)
    if trees != n - m:
        raise CheckFailed(
            f"{PROBLEM}: {trees} components, but {n} vertices and {m} edges make {n - m}"
        )


def check_whole_total(caller: str, total: Any, true: int) -> None:
    """The total of integers is exact."""
    whole = answers.whole(caller, "total", total)
    if whole != true:
        raise CheckFailed(f"{PROBLEM}: total is {whole}, the weights give {true}")


def total_is_wrong(total: Any, exact: float, size: float, shift: int, count: int) -> bool:
    """Floats may be added up in any order.

    `exact` and `size` are the sums of the weights and of their sizes, times 2^-shift.
    """
    slack = size * min(SUM_ERROR, count * 2.0**-52)
    if math.isinf(total):  # the sum may be larger than any float
        return not (math.copysign(exact, total) == exact and _overflows(exact, slack, shift))
    return not abs(math.ldexp(total, -shift) - exact) <= slack


def _overflows(exact: float, slack: float, shift: int) -> bool:
    try:
        return math.isinf(math.ldexp(abs(exact) + slack, shift))
    except OverflowError:
        return True

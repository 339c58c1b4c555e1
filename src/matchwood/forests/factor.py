"""The factor of a forest: that of the user, checked, with its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.errors import CheckFailed
from matchwood.factors import Factor
from matchwood.factors.check import pairs_of
from matchwood.factors.plan import directed_magnitudes
from matchwood.factors.result import origin_of, sealed, unsealed
from matchwood.gate import graph as csr
from matchwood.primitives.wide_sums import mean_of_two


def as_factor(G: csr.Graph, H: csr.Graph, factor: Any, caller: str) -> Factor:
    """The user's [0,2]-factor of G, with weights; H is G on the engine of the call.

    Checked unless `degree_factor` made it for this same graph."""
    table = factor.neighbours if isinstance(factor, Factor) else factor
    shape = getattr(table, "shape", None) or np.shape(table)
    if len(shape) != 2 or shape[0] != G.n or shape[1] not in (1, 2):
        raise ValueError(
            f"{caller}: the factor must have shape ({G.n}, 2), as degree_factor(A, 2) gives, "
            f"got {shape}"
        )
    directed = isinstance(factor, Factor) and bool(factor.directed)
    if isinstance(factor, Factor) and not directed:
        views = H.undirected_weights(caller), G.undirected_weights(caller)
        if unsealed(factor, *views) is not None:
            return factor if shape[1] == 2 else _padded(factor)
    K = G.on("cpu").watched()
    view = directed_magnitudes(K, caller) if directed else K.undirected_weights(caller)
    try:
        pairs_of(view, factor)
    except CheckFailed as wrong:
        raise ValueError(
            f"{caller}: the factor must be one of A: {str(wrong).partition(': ')[2]}"
        ) from None
    neighbours, weights = _with_weights(view, np.asarray(engines.moved(table, "cpu")))
    here = [engines.moved(array, G.engine) for array in (neighbours, weights)]
    rounds, maximal, plan = 0, False, None
    if isinstance(factor, Factor):
        rounds, maximal, plan = factor.rounds, factor.maximal, origin_of(factor).plan
    made = sealed(here, rounds, maximal, directed, view, plan, K)
    return made if shape[1] == 2 else _padded(made)


def _with_weights(view: csr.View, table: Any) -> tuple[Any, Any]:
    """The neighbours, preferred ones first and -1 last, and the weights of their edges."""
    n = view.n
    neighbours = table.astype(view.indices.dtype)
    rows = np.repeat(np.arange(n), np.diff(view.indptr))
    keys, wanted = rows * n + view.indices, np.arange(n)[:, None] * n + neighbours
    at = np.searchsorted(keys, wanted).clip(max=max(keys.size - 1, 0))
    data = view.data if view.data.size else np.zeros(1, view.data.dtype)
    weights = np.where(neighbours >= 0, data[at], data.dtype.type(0))
    order = np.argsort(-weights, axis=1, kind="stable")
    return tuple(np.take_along_axis(a, order, 1) for a in (neighbours, weights))  # type: ignore[return-value]


def _padded(factor: Factor) -> Factor:
    xp = engines.xp(factor.neighbours)
    neighbours = xp.concatenate((factor.neighbours, xp.full_like(factor.neighbours, -1)), axis=1)
    weights = xp.concatenate((factor.weights, xp.zeros_like(factor.weights)), axis=1)
    view, _, graph = origin_of(factor)
    numbers = (factor.rounds, factor.maximal, factor.directed)
    return sealed((neighbours, weights), *numbers, view, None, graph)


def mean_weights(neighbours: Any, weights: Any) -> Any:
    """Of a directed factor: the mean of the two entries of each edge, the same at both ends."""
    xp = engines.xp(neighbours)
    rows = xp.arange(neighbours.shape[0], dtype=neighbours.dtype)[:, None]
    back = xp.zeros_like(weights)
    for slot in (0, 1):
        mine = neighbours[neighbours, slot] == rows
        back += xp.where(mine & (neighbours >= 0), weights[neighbours, slot], 0)
    return mean_of_two(weights, back)


def moved_to(factor: Factor, G: csr.Graph) -> Factor:
    if engines.location(factor.neighbours) == G.engine:
        return factor
    arrays = (engines.moved(array, G.engine) for array in unsealed(factor) or tuple(factor))
    origin: Any = origin_of(factor)
    return sealed(arrays, factor.rounds, factor.maximal, factor.directed, *origin)

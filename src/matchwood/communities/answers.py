"""What the checks of this family ask of an answer."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, engines
from matchwood.arguments import shown
from matchwood.communities.result import Communities
from matchwood.communities.weights import Level, level_of
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr


def counted(caller: str, problem: str, answer: Any) -> None:
    """Raise unless the counters of an answer of ours are numbers that a run may have."""
    if not isinstance(answer, Communities):
        return
    for name, least in (("levels", 1), ("rounds", 0)):
        value = answers.whole(caller, name, getattr(answer, name))
        if value < least:
            raise CheckFailed(f"{problem}: {name} is {value}, but must be at least {least}")


def stated(problem: str, right: float, value: Any) -> None:
    """Raise unless `value` is the right modularity, to 1e-9."""
    if not (isinstance(value, float) and math.isclose(value, right, abs_tol=1e-9)):
        raise CheckFailed(f"{problem}: modularity is {right:.12g}, got {shown(value)}")


def float_modularity(level: Level, labels: Any, resolution: float) -> float:
    """The definition, with NumPy's or CuPy's sums."""
    if level.total == 0:
        return 0.0
    xp = answers.module(labels)
    inside = 0.0 if level.inner is None else float(level.inner.sum())
    for begin, u, v in answers.arcs(csr.View(level.indptr, level.indices)):
        same = labels[u] == labels[v]
        if level.data is None:
            inside += int(xp.count_nonzero(same))
        else:
            inside += float(level.data[begin : begin + same.size][same].sum())
    volumes = xp.bincount(labels.astype(np.int64), weights=level.strength.astype(np.float64))
    return inside / level.total - resolution * float(((volumes / level.total) ** 2).sum())


class Around(NamedTuple):
    """Weights of the labels around vertices, K(v, c); loops are left out."""

    own: Any  # the weight of the label that vertex v has, by v
    vertex: Any  # v, c and K(v, c) of all other labels, sorted by v and c
    label: Any
    weight: Any


def weights_around(level: Level, labels: Any) -> Around:
    """Add up the weights between vertices and labels: integers, exact in double precision."""
    xp, n = answers.module(labels), level.n
    own = xp.zeros(n)
    pairs, weights = [], []
    for begin, u, v in answers.arcs(csr.View(level.indptr, level.indices)):
        w = None if level.data is None else level.data[begin : begin + u.size].astype(np.float64)
        same = labels[u] == labels[v]
        own += xp.bincount(u[same], None if w is None else w[same], n)
        pairs.append(u[~same].astype(np.int64) * n + labels[v[~same]])
        weights.append(w if w is None else w[~same])
    pair = xp.concatenate([xp.zeros(0, np.int64), *pairs])
    if level.data is None:
        distinct, sums = xp.unique(pair, return_counts=True)
    else:
        distinct, at = xp.unique(pair, return_inverse=True)
        sums = xp.bincount(at.reshape(-1), xp.concatenate([xp.zeros(0), *weights]))
    return Around(own.astype(np.int64), distinct // n, distinct % n, sums.astype(np.int64))


def replayed(
    caller: str, problem: str, answer: Any, labels: Any, G: csr.Graph, function: Any, options: Any
) -> None:
    """Raise unless the reference of that function gives this answer, bit for bit."""
    for name in ("engine", "threads"):
        if name in options:
            raise TypeError(f"{caller}: {name} is no option of a replay, which the reference does")
    answers.require_known(caller, function, options)
    right = function(G.on("cpu"), engine="reference", **options)
    v = answers.first(engines.moved(labels, "cpu") != right.labels)
    if v is not None:
        raise CheckFailed(
            f"{problem}: vertex {v} has label {labels[v]}, but the replay gives {right.labels[v]}"
        )
    if not isinstance(answer, Communities):
        return
    for name in ("modularity", "levels", "rounds"):
        value, wanted = getattr(answer, name), getattr(right, name)
        if value != wanted:
            raise CheckFailed(f"{problem}: {name} is {value}, but the replay gives {wanted}")


def no_replay(caller: str, options: Any) -> None:
    """Raise where options of a replay are given without one."""
    for name in options:
        raise TypeError(f"{caller}: {name} is for a replay; pass replay too")


def graph_and_level(A: Any, caller: str) -> tuple[csr.Graph, Level]:
    """The graph of an argument, and its weights as integers."""
    G = csr.as_graph(A, caller)
    return G, level_of(G, caller)

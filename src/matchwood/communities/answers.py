"""What the checks of this family ask of an answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import answers, csr
from matchwood.arguments import shown
from matchwood.communities.result import Communities
from matchwood.communities.weights import Level, level_of
from matchwood.errors import CheckFailed


def counted(caller: str, problem: str, answer: Any) -> None:
    """Raise unless the counters of an answer of ours are numbers that a run may have."""
    if not isinstance(answer, Communities):
        return
    for name, least in (("levels", 1), ("rounds", 0)):
        value = answers.whole(caller, name, getattr(answer, name))
        if value < least:
            raise CheckFailed(f"{problem}: {name} is {value}, but must be at least {least}")


def stated(problem: str, level: Level, labels: Any, resolution: float, value: Any) -> None:
    """Raise unless `value` is the modularity of the labels, added up in floats here."""
    right = float_modularity(level, labels, resolution)
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


def graph_and_level(A: Any, caller: str) -> tuple[csr.Graph, Level]:
    """The graph of an argument, and its weights as integers."""
    G = csr.as_graph(A, caller)
    return G, level_of(G, caller)

"""The problems that the demo and `matchwood bench` run.  To add one, add one entry to PROBLEMS.

Each runs on a prepared graph or on a matrix, has a peer in SciPy, a check, a few words about an
answer, and (if you like) a picture that it makes on a small graph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csgraph

import matchwood
from matchwood import engines
from matchwood.report import sketches


@dataclass(frozen=True)
class Problem:
    """What to call, whom to compare with, and how to tell and show the answer."""

    name: str  # in tables
    short: str  # on the command line
    ours: Callable[..., Any]  # (graph or matrix, threads) -> answer
    scipy: Callable[[Any], Any]  # (matrix) -> answer
    check: Callable[[Any, Any], None]  # (matrix, answer): raises CheckFailed if it is wrong
    say: Callable[[Any], str]  # the answer in a few words
    picture: Callable[[], sketches.Sketch] | None = None


PROBLEMS: tuple[Problem, ...] = (
    Problem(
        name="breadth-first search",
        short="bfs",
        ours=lambda G, threads: matchwood.bfs(G, 0, threads=threads),
        scipy=lambda A: csgraph.breadth_first_order(A, 0),
        check=lambda A, x: matchwood.check.check_bfs(A, 0, x),
        say=lambda x: f"{int((x.level >= 0).sum()):,} reached, {int(x.level.max()):,} levels",
        picture=sketches.levels,
    ),
    Problem(
        name="connected components",
        short="components",
        ours=lambda G, threads: matchwood.connected_components(G, threads=threads),
        scipy=lambda A: csgraph.connected_components(A, directed=False),
        check=lambda A, x: matchwood.check.check_connected_components(A, x),
        say=lambda x: f"{x.count:,} found, largest {int(np.bincount(x.labels).max()):,}",
        picture=sketches.components,
    ),
)


def same(one: Any, other: Any) -> bool:
    """True when the arrays of two answers are identical, wherever they live."""
    for field in dataclasses.fields(one):
        a, b = (getattr(answer, field.name) for answer in (one, other))
        if hasattr(a, "shape") and not np.array_equal(*(engines.moved(x, "cpu") for x in (a, b))):
            return False
    return True

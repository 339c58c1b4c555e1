"""The problems that the demo and `matchwood bench` run.  To add one, add one entry to PROBLEMS.

Each runs on a prepared graph or on a matrix, has a peer in SciPy (or None), a check, a few words
about an answer, and (if you like) a picture that it makes on a small graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.sparse import csgraph

import matchwood
from matchwood import engines
from matchwood.report import joins, sketches, traffic


@dataclass(frozen=True)
class Problem:
    """What to call, what to compare with, and how to describe and draw the answer."""

    name: str  # in tables
    short: str  # on the command line
    ours: Callable[..., Any]  # (graph or matrix, threads) -> answer: a result, arrays, an array
    check: Callable[[Any, Any], None]  # (matrix, answer): raises CheckFailed if it is wrong
    say: Callable[[Any], str]  # the answer in a few words
    scipy: Callable[[Any], Any] | None = None  # (matrix) -> answer; None: it has nothing like it
    picture: Callable[[], sketches.Sketch] | None = None
    place: int = 0  # which of the two graphs of a short demo
    slower: str = ""  # why SciPy may be the faster one


PROBLEMS: tuple[Problem, ...] = (
    Problem(
        name="breadth-first search",
        short="bfs",
        ours=lambda G, threads: matchwood.bfs(G, 0, threads=threads),
        scipy=lambda A: csgraph.breadth_first_order(A, 0),
        check=lambda A, x: matchwood.check.check_bfs(A, 0, x),
        say=lambda x: f"{int((x.level >= 0).sum()):,} reached, {int(x.level.max()):,} levels",
        picture=sketches.levels,
        slower="it numbers levels and takes the smallest parent, so threads wait for each "
        "other at each level; SciPy follows one queue.",
    ),
    Problem(
        name="connected components",
        short="components",
        ours=lambda G, threads: matchwood.connected_components(G, threads=threads),
        scipy=lambda A: csgraph.connected_components(A, directed=False),
        check=lambda A, x: matchwood.check.check_connected_components(A, x),
        say=lambda x: f"{x.count:,} found, largest {int(np.bincount(x.labels).max()):,}",
        picture=sketches.components,
        slower="threads are started, which such a small graph is not worth.",
    ),
    Problem(
        name="strong components",
        short="scc",
        ours=lambda G, threads: matchwood.strongly_connected_components(G, threads=threads),
        scipy=lambda A: csgraph.connected_components(A, directed=True, connection="strong"),
        check=lambda A, x: matchwood.check.check_strongly_connected_components(A, x),
        say=lambda x: f"{x.count:,} found, largest {int(np.bincount(x.labels).max()):,}",
        picture=sketches.sketch_strong,
        place=1,
        slower="it searches in both directions, again and again; SciPy goes once through the "
        "graph.",
    ),
    Problem(
        name="communities",
        short="communities",
        ours=lambda G, threads: matchwood.louvain(sketches.unweighted(G), threads=threads),
        check=lambda A, x: matchwood.check.check_communities(sketches.unweighted(A), x),
        say=lambda x: f"{x.count:,} found, modularity {x.modularity:.3f}",
        picture=sketches.sketch_groups,
    ),
    Problem(
        name="independent set",
        short="mis",
        ours=lambda G, threads: matchwood.maximal_independent_set(G, threads=threads),
        check=lambda A, x: matchwood.check.check_maximal_independent_set(A, x),
        say=lambda x: f"{int(x.sum()):,} members",
        picture=sketches.sketch_independent,
    ),
    Problem(
        name="spanning forest",
        short="mst",
        ours=lambda G, threads: matchwood.minimum_spanning_forest(G, threads=threads),
        scipy=csgraph.minimum_spanning_tree,
        check=lambda A, x: matchwood.check.check_spanning_forest(A, x),
        say=lambda x: f"{x.edges.shape[0]:,} edges, {x.components:,} trees",
        picture=sketches.sketch_spanning,
        place=1,
        slower="edges of equal weight are ordered by their ends, so that there is one answer.",
    ),
    Problem(
        name="weighted matching",
        short="matching",
        ours=lambda G, threads: matchwood.weighted_matching(G, threads=threads),
        check=lambda A, x: matchwood.check.check_locally_dominant(A, x),
        say=lambda x: f"{x.cardinality:,} edges, {x.quality:.1%} of the best or more",
        picture=sketches.matching,
        place=1,
    ),
    Problem(
        name="[0,2]-factor",
        short="factor",
        ours=lambda G, threads: matchwood.degree_factor(G, 2, ties="hash", threads=threads),
        check=lambda A, x: matchwood.check.check_factor(A, x),
        say=lambda x: f"{x.coverage:.0%} of the weight in {x.rounds} rounds",
        place=1,
    ),
    Problem(
        name="linear forest",
        short="forest",
        ours=lambda G, threads: matchwood.linear_forest(G, ties="hash", threads=threads),
        check=lambda A, x: matchwood.check.check_linear_forest(A, x),
        say=lambda x: f"{x.count:,} paths, {x.coverage:.0%} of the weight",
        picture=sketches.sketch_forests,
        place=1,
    ),
    Problem(
        name="reverse Cuthill-McKee",
        short="rcm",
        ours=lambda G, threads: matchwood.reverse_cuthill_mckee(G, threads=threads),
        scipy=csgraph.reverse_cuthill_mckee,
        check=lambda A, x: matchwood.check.check_rcm_order(A, x),
        say=lambda x: f"an order of {len(x):,} vertices",
        picture=sketches.sketch_orders,
        place=1,
        slower="it searches for a good start in each component; SciPy takes a vertex of least "
        "degree.",
    ),
    Problem(
        name="rabbit order",
        short="rabbit",
        ours=lambda G, threads: matchwood.locality_ordering(G, "rabbit", threads=threads),
        check=lambda A, x: matchwood.check.check_rabbit_order(A, x),
        say=lambda x: f"log gap {x.before.log_gap:,.0f} becomes {x.after.log_gap:,.0f}",
        picture=sketches.rabbit_sketch,
    ),
    Problem(
        name="pagerank",
        short="pagerank",
        ours=lambda G, threads: matchwood.pagerank(G, threads=threads),
        check=lambda A, x: matchwood.check.check_pagerank(A, x),
        say=lambda x: f"{x.iterations} iterations, highest score {float(x.scores.max()):.2g}",
        picture=sketches.sketch_ranks,
    ),
    Problem(
        name="traffic matrix",
        short="sensing",
        ours=traffic.ours,
        scipy=traffic.peer,
        check=traffic.check,
        say=traffic.say,
        picture=traffic.sketch,
        slower="it takes any 32-bit addresses; SciPy counts in rows, of which there are few here.",
    ),
    Problem(
        name="join of rows",
        short="join",
        ours=joins.ours,
        scipy=joins.peer,
        check=joins.check,
        say=joins.say,
        picture=joins.sketch,
        place=1,
        slower="it is made for elements that are only similar; SciPy multiplies matrices of "
        "equal ones.",
    ),
)

NEAR = 1e-12  # relative; sums of floats on a CPU and on a GPU differ by no more


def _parts(answer: Any) -> Any:
    """An array alone, those of a tuple, or the fields of a result."""
    if hasattr(answer, "dtype"):
        return (answer,)
    if isinstance(answer, tuple):
        return answer
    return [getattr(answer, field.name) for field in fields(answer)]


def same(one: Any, other: Any) -> bool:
    """True when the arrays of two answers are identical, wherever they live.

    Floats of two engines may differ by what their sums may.
    """
    for a, b in zip(_parts(one), _parts(other), strict=True):
        if not hasattr(a, "dtype"):
            continue
        apart = a.dtype.kind == "f" and engines.location(a) != engines.location(b)
        a, b = (engines.moved(x, "cpu") for x in (a, b))
        alike = np.allclose(a, b, rtol=0, atol=NEAR) if apart else np.array_equal(a, b)
        if not alike:
            return False
    return True

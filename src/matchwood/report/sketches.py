"""What the demo draws beside each problem, on graphs small enough to see every vertex."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import matchwood
from matchwood.report import pictures, svg
from matchwood.report.svg import FAINT, INK, MAIN, SECOND, Svg

KIND = np.float32  # of weights, as in the demo's graphs: nothing is compiled for a second type


class Sketch(NamedTuple):
    """Drawings that belong together, and the sentence below them."""

    drawings: tuple[Svg, ...]
    caption: str


def levels(n: int = 1500) -> Sketch:
    """Breadth-first levels on a triangulation, from the vertex nearest to the centre."""
    A = matchwood.generators.delaunay(n, rng=7)
    points = matchwood.generators.random_points(n, rng=7)
    centre = int(np.argmin(((points - 0.5) ** 2).sum(axis=1)))
    found = matchwood.bfs(A, centre)
    return Sketch(
        (
            pictures.mesh_levels(points, A, found.level, found.parent),
            pictures.level_sizes(found.level),
        ),
        f"Search from the red vertex in a triangulation of {n:,} random points. Colour is the "
        f"level, the number of edges from the source; lines in colour join each vertex to its "
        f"parent, always the neighbour of the level before with the smallest number.",
    )


def _sizes(sizes: Any) -> Svg:
    side = pictures.SIDE, pictures.SIDE + pictures.LEGEND
    words = "vertices", "components", "components of each size"
    return pictures.distribution(sizes, *words, *side)


def components(n: int = 1600) -> Sketch:
    """Components of a random geometric graph that is about to fall apart."""
    radius = float((4.0 / np.pi / n) ** 0.5)  # about four neighbours each
    A = matchwood.generators.random_geometric(n, radius, rng=5)
    points = matchwood.generators.random_points(n, rng=5)
    found = matchwood.connected_components(A)
    return Sketch(
        (
            pictures.coloured_parts(points, A, found.labels),
            _sizes(np.bincount(found.labels)),
        ),
        f"{n:,} random points, joined when closer than {radius:.3f}: {found.count:,} components. "
        f"The eight largest have a colour of their own, the others are grey.",
    )


def matching(n: int = 700) -> Sketch:
    """The greedy matching of a triangulation, short edges being heavy."""
    A = matchwood.generators.delaunay(n, rng=3)
    points = matchwood.generators.random_points(n, rng=3)
    ends = np.repeat(np.arange(n), np.diff(A.indptr))
    A.data = (1.0 / np.linalg.norm(points[ends] - points[A.indices], axis=1)).astype(KIND)
    found = matchwood.weighted_matching(A)
    free = int((found.mate < 0).sum())
    parts = matchwood.coarsening_hierarchy(A, until=8).map
    return Sketch(
        (
            pictures.matched_edges(points, A, found.mate),
            pictures.coloured_parts(points, A, parts, "merged again and again"),
        ),
        f"A triangulation of {n:,} random points in which short edges are heavy: of the "
        f"{found.cardinality:,} matched ones, no two meet; {free} vertices stay free. No matching "
        f"is heavier than {1 / found.quality:.2f} times this one, which a dual solution proves. "
        f"Right: pairs merged, matched and merged again, until eight vertices or fewer are left.",
    )


# Strong components


def one_way(A: Any, both: float) -> Any:
    """A symmetric matrix of which most edges keep one direction, drawn at random."""
    upper = sp.triu(A, 1).tocoo()
    draw = np.random.default_rng(1).random(upper.nnz)
    there, back = draw > (1 - both) / 2, draw < (1 + both) / 2
    rows = np.append(upper.row[there], upper.col[back])
    cols = np.append(upper.col[there], upper.row[back])
    return sp.csr_array((np.ones(rows.size), (rows, cols)), shape=A.shape)


def sketch_strong(n: int = 1500) -> Sketch:
    """A town of one-way streets: between which places can one drive both ways?"""
    streets = matchwood.generators.random_geometric(n, degree=6.5, rng=4)
    points = matchwood.generators.random_points(n, rng=4)
    town = one_way(streets, 0.1)
    found = matchwood.strongly_connected_components(town)
    sizes = np.bincount(found.labels)
    return Sketch(
        (
            pictures.coloured_parts(points, streets, found.labels, "strong components"),
            _sizes(sizes),
        ),
        f"{n:,} places joined by streets, nine in ten of them one-way: {found.count:,} strong "
        f"components, within which one can drive there and back. The largest has "
        f"{int(sizes.max()):,} places; {int((sizes == 1).sum()):,} places are on their own.",
    )


# Communities


def unweighted(A: Any) -> matchwood.Graph:
    """The graph without its weights, some of which are negative in the demo."""
    if isinstance(A, matchwood.Graph):
        return A.keep("unweighted", lambda: matchwood.graph(A, weight=None))
    return matchwood.graph(A, weight=None)


def sketch_groups(n: int = 1200) -> Sketch:
    """Louvain's communities and settled labels on random points."""
    A = matchwood.generators.random_geometric(n, degree=9.0, rng=11)
    points = matchwood.generators.random_points(n, rng=11)
    found = matchwood.louvain(A)
    labels = matchwood.label_propagation(A)
    return Sketch(
        (
            pictures.coloured_parts(points, A, found.labels, f"louvain: {found.count} communities"),
            pictures.coloured_parts(points, A, labels.labels, f"labels: {labels.count} of them"),
        ),
        f"{n:,} random points, joined when close. Left: {found.count:,} communities of modularity "
        f"{found.modularity:.3f}, by moving vertices and contracting what they form. Right: each "
        f"vertex has the label that weighs most around it, {labels.count:,} of them, modularity "
        f"{labels.modularity:.3f}. The eight largest have a colour of their own.",
    )


# PageRank


LARGEST = 9.0  # radius of the dot of the highest score


def sketch_ranks(n: int = 900) -> Sketch:
    """Random points; every edge is an arc towards the middle."""
    A = matchwood.generators.random_geometric(n, degree=9.0, rng=7)
    points = matchwood.generators.random_points(n, rng=7)
    coo = A.tocoo()
    far = np.hypot(*(points - 0.5).T)
    inward = far[coo.row] > far[coo.col]
    arcs = np.stack((coo.row[inward], coo.col[inward]), axis=1)
    found = matchwood.pagerank((n, arcs))
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, "pagerank")
    at = pictures.placed(points)
    picture.segments(at[arcs[:, 0]], at[arcs[:, 1]], color=FAINT, width=0.5, opacity=0.5)
    radius = np.maximum(1.0, LARGEST * np.sqrt(found.scores / found.scores.max()))
    step = np.minimum(radius.round().astype(int), int(LARGEST))
    for size in np.unique(step).tolist():
        picture.dots(at[step == size], color=svg.CATEGORIES[0], radius=float(size), opacity=0.8)
    return Sketch(
        (picture,),
        f"{n:,} random points, joined when close; every edge leads towards the middle. The area of "
        f"a dot is its score: where a random surfer spends the time. {found.iterations} "
        "iterations.",
    )


# Maximal independent sets


def sketch_independent(n: int = 700) -> Sketch:
    """The sets of two methods on a triangulation."""
    A = matchwood.generators.delaunay(n, rng=9)
    points = matchwood.generators.random_points(n, rng=9)
    sets = {
        method: matchwood.maximal_independent_set(A, method=method)
        for method in ("luby", "lexicographic")
    }
    drawings = [_drawn(points, A, *item) for item in sets.items()]
    return Sketch(
        tuple(drawings),
        f"No two of the vertices in colour are neighbours, and every other one is beside one of "
        f"them. By small degrees first (left) {int(sets['luby'].sum()):,} of {n:,} vertices, by "
        f"index (right) {int(sets['lexicographic'].sum()):,}.",
    )


def _drawn(points: Any, A: Any, method: str, members: Any) -> Svg:
    picture, at = pictures.on_points(points, A, f"independent set, {method}")
    picture.dots(at[~members], color=FAINT, radius=1.3)
    picture.dots(at[members], color=MAIN if method == "luby" else SECOND, radius=3.2)
    words = f"{method}: {int(members.sum()):,} members"
    picture.text(pictures.MARGIN, pictures.SIDE + 18, words, color=INK)
    return picture


# Minimum spanning forests


def sketch_spanning(n: int = 900, side: int = 28) -> Sketch:
    """The shortest network between points, and a maze."""
    A = matchwood.generators.delaunay(n, rng=5)
    points = matchwood.generators.random_points(n, rng=5)
    u = np.repeat(np.arange(n), np.diff(A.indptr))
    A.data = np.linalg.norm(points[u] - points[A.indices], axis=1).astype(KIND)
    found = matchwood.minimum_spanning_forest(A)
    longest = matchwood.minimum_spanning_forest(A, maximum=True).total
    grid = matchwood.generators.random_weights(matchwood.generators.grid((side, side)), rng=2)
    maze = matchwood.minimum_spanning_forest(grid)
    return Sketch(
        (_network(points, A, found), _maze(side, maze)),
        f"Left: the shortest network that joins {n:,} random points, {found.total:.1f} long (the "
        f"longest along the same lines: {longest:.1f}). Right: the spanning tree of a grid "
        f"with random weights is a maze; there is one way between any two places.",
    )


def _network(points: Any, A: Any, found: Any) -> Svg:
    picture, at = pictures.on_points(points, A, "minimum spanning tree")
    picture.segments(at[found.edges[:, 0]], at[found.edges[:, 1]], color=MAIN, width=1.6)
    words = f"{found.edges.shape[0]:,} of {A.nnz // 2:,} edges"
    picture.text(pictures.MARGIN, pictures.SIDE + 18, words, color=INK)
    return picture


def _maze(side: int, found: Any) -> Svg:
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, "a maze")
    places = np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(float)
    at = pictures.placed(places)
    ends = at[found.edges[:, 0]], at[found.edges[:, 1]]
    picture.segments(*ends, color=SECOND, width=7.0)
    picture.text(pictures.MARGIN, pictures.SIDE + 18, f"{side} x {side} places", color=INK)
    return picture


# Linear forests


def sketch_forests(n: int = 700, side: int = 26) -> Sketch:
    """Paths of short edges between points, and of strong entries of an anisotropic matrix."""
    A = matchwood.generators.delaunay(n, rng=5)
    points = matchwood.generators.random_points(n, rng=5)
    u = np.repeat(np.arange(n), np.diff(A.indptr))
    A.data = (1.0 / np.linalg.norm(points[u] - points[A.indices], axis=1)).astype(KIND)
    found = matchwood.linear_forest(A, rounds=None)
    grid = matchwood.generators.aniso(2, (side, side), dtype=KIND)
    along = matchwood.linear_forest(grid)
    places = np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(float)
    return Sketch(
        (
            _paths(points, A, found, "short edges"),
            _paths(places, grid, along, "strong along one diagonal"),
        ),
        f"Left: a triangulation of {n:,} random points in which short edges are heavy; "
        f"{found.count:,} paths with {found.coverage:.0%} of the weight. Right: a grid whose "
        f"matrix is strong along one diagonal; the paths follow it, though the order of the rows "
        f"does not show it. Edges in the other colour were removed: the weakest of their cycles.",
    )


def _paths(points: Any, A: Any, found: Any, title: str) -> Svg:
    picture, at = pictures.on_points(points, A, title)
    edges = found.edges()
    picture.segments(at[edges[:, 0]], at[edges[:, 1]], color=MAIN, width=2.0)
    cut = found.removed
    if len(cut):
        picture.segments(at[cut[:, 0]], at[cut[:, 1]], color=SECOND, width=2.0)
    words = f"{found.count:,} paths, {len(cut)} cycles cut, coverage {found.coverage:.0%}"
    picture.text(pictures.MARGIN, pictures.SIDE + 18, words, color=INK)
    return picture


# Orders


def sketch_orders(n: int = 3000) -> Sketch:
    """A triangulation numbered at random, before and after."""
    A = matchwood.generators.delaunay(n, rng=4)
    shuffled = matchwood.permute(A, np.random.default_rng(4).permutation(n))
    found = matchwood.rcm_ordering(shuffled)
    drawings = (
        pictures.spy(shuffled, title="in the order as given"),
        pictures.spy(matchwood.permute(shuffled, found), title="reverse Cuthill-McKee"),
    )
    return Sketch(
        drawings,
        f"The matrix of a triangulation of {n:,} points, numbered at random (left) and by reverse "
        f"Cuthill-McKee (right): the bandwidth falls from {found.before.bandwidth:,} to "
        f"{found.after.bandwidth:,}, the profile from {found.before.profile:,} to "
        f"{found.after.profile:,}.",
    )


def rabbit_sketch(n: int = 3000) -> Sketch:
    """The same triangulation by rabbit order: communities within communities."""
    A = matchwood.generators.delaunay(n, rng=4)
    shuffled = matchwood.permute(A, np.random.default_rng(4).permutation(n))
    found = matchwood.locality_ordering(shuffled, "rabbit")
    gaps = A.nnz - n
    before, after = found.before.log_gap / gaps, found.after.log_gap / gaps
    return Sketch(
        (
            pictures.spy(shuffled, title="in the order as given"),
            pictures.spy(matchwood.permute(shuffled, found.perm), title="rabbit order"),
        ),
        f"The matrix of a triangulation of {n:,} points, numbered at random (left) and by rabbit "
        f"order (right): communities are squares on the diagonal, with smaller ones inside. From "
        f"one neighbour of a vertex to the next it is {before:.1f} bits in the one order, "
        f"{after:.1f} in the other.",
    )

"""The starts of a small graph on the GPU, on the host: orders are those of the definition.

What is compared of them, and which is kept, is the GPU engine's own code, its kernels compiled for
the host.
"""

from __future__ import annotations

import contextlib
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beyond_on_host
import matchwood
from beyond_on_host import Array
from graphs import complete, disjoint, from_edges, grid, path, rmat, shuffled, star
from matchwood import engines
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.gpu import start
from matchwood.ordering.rcm.gpu.leveled import Levels

pytestmark = pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")

TYPES = [np.int32, np.int64]
NONE = np.empty(0, np.int64)


def device(array):
    return np.ascontiguousarray(array).view(Array)


def fake_cupy():
    fake = beyond_on_host.fake_cupy()
    for name in ("arange", "argsort", "full", "zeros"):
        made = getattr(np, name)
        setattr(fake, name, lambda *a, made=made, **o: np.asarray(made(*a, **o)).view(Array))
    return fake


def place_levels(view, starts, total, *, caller):
    """The definition, level by level, in place of the kernel; counts the orders that are made."""
    place_levels.calls += 1
    n, kind = view.n, view.indptr.dtype
    neighbours = reference._neighbours(view)
    if isinstance(starts, int):
        least = (u for u in range(n) if neighbours[u])
        starts = [starts if starts >= 0 else min(least, key=lambda u: (len(neighbours[u]), u))]
    order = [int(v) for v in starts]
    owner = np.full(n, n, kind)
    owner[order] = -1
    at, depth, level = 0, -1, []
    while at < len(order):
        level, at, depth = order[at:], len(order), depth + 1
        for place, u in enumerate(level, at - len(level)):
            children = [w for w in neighbours[u] if owner[w] == n]
            owner[children] = place
            order += sorted(children, key=lambda w: (len(neighbours[w]), w))
    far = min(level, key=lambda u: (len(neighbours[u]), u))
    found = beyond_on_host.empty(n, kind)
    found[: len(order)] = order
    width = -1  # nobody asks
    return Levels(found, device(owner), True, len(order), depth, width, order[0], far)


@contextlib.contextmanager
def host_engine():
    """Within, the GPU engine's host code runs with kernels on the host."""

    def levels(graph, starts):
        found = np.full(graph.view.n, -1, graph.view.indptr.dtype)
        for begun in starts.tolist():
            for u, level in reference._levels(reference._neighbours(graph.view), begun).items():
                found[u] = level
        return device(found)

    place_levels.calls = 0
    with (
        beyond_on_host.on_host(start),
        mock.patch.object(engines, "cupy", return_value=fake_cupy()),
        mock.patch(
            "matchwood.engines.gpu.empty", lambda size, kind, _: beyond_on_host.empty(size, kind)
        ),
        mock.patch.object(start, "place_levels", place_levels),
        mock.patch.object(start, "_levels", levels),
    ):
        yield


class OnDevice:
    """A graph whose pattern lies on the device."""

    def __init__(self, A, kind):
        self.graph = matchwood.graph((A.indptr, A.indices), index_dtype=kind)
        view = self.graph.undirected_pattern()
        self.view = view._replace(indptr=device(view.indptr), indices=device(view.indices))

    def undirected_pattern(self):
        return self.view


def check_one(A, kind):
    """The order, its start and the number of tries, by way of one component."""
    G = OnDevice(A, kind)
    levels, tried = start.connected(G.view, "test")
    order, counters = reference.order(G.graph, NONE, "serial", False)
    assert levels.order.tolist() == order.tolist()
    assert levels.start == order[0]
    assert tried == counters["searches"]
    assert place_levels.calls == tried  # none is made twice, and the best one is kept
    place_levels.calls = 0


def check_several(A, kind, closed=()):
    """The starts of all components, of which some are closed."""
    G = OnDevice(A, kind)
    neighbours = reference._neighbours(G.view)
    count, label = matchwood.connected_components(G.graph)
    parts = reference._components(neighbours)
    first = [reference._least(neighbours, part) for part in parts]
    wanted, searches = list(first), 0
    for c, part in enumerate(parts):
        if c in closed:
            wanted[c] = first[c] = part[-1]
        else:
            wanted[c], rounds = reference.find_start(neighbours, part, small=True)
            searches += rounds
    made = start.Parts(count, device(label.astype(kind)), device(np.array(first, kind)))
    start.several(G, made, np.array(closed, np.int64), "test")
    assert made.start.tolist() == wanted
    assert made.start.dtype == kind
    assert made.searches == searches


CONNECTED = {
    "edge": lambda: path(2),
    "path": lambda: shuffled(path(50)),
    "star": lambda: star(70, centre=7),
    "complete": lambda: complete(34),
    "grid": lambda: shuffled(grid(13, 12)),
    "cycle": lambda: shuffled(from_edges(45, np.arange(45), (np.arange(45) + 1) % 45)),
}
SEVERAL = {
    "rmat": lambda: rmat(8, 3),
    "mixed": lambda: shuffled(disjoint([path(9), star(7), grid(6, 5), complete(5)]), isolated=7),
    "edges": lambda: disjoint([path(2)] * 40),
    "alone": lambda: shuffled(disjoint([path(3)]), isolated=60),
    "large and small": lambda: disjoint([path(2), shuffled(grid(11, 10)), path(33)]),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", CONNECTED)
def test_connected(name, kind):
    with host_engine():
        check_one(CONNECTED[name](), kind)
        check_several(CONNECTED[name](), kind)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", SEVERAL)
def test_several(name, kind):
    with host_engine():
        A = SEVERAL[name]()
        assert start.connected(OnDevice(A, kind).view, "test") == (None, 0)
        check_several(A, kind)
        check_several(A, kind, closed=(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.floats(0, 3), st.integers(0, 2**32))
def test_any(n, density, seed):
    rng = np.random.default_rng(seed)
    child = np.arange(1, n)
    more = rng.integers(0, n, (2, int(density * n)))
    more = more[:, more[0] != more[1]]
    tree = (rng.random(n - 1) * child).astype(int)
    with host_engine():
        check_one(from_edges(n, np.append(child, more[0]), np.append(tree, more[1])), np.int32)
        if more.size:
            check_several(from_edges(n, *more), np.int32)


def test_all_closed():
    with host_engine():
        check_several(disjoint([path(4), path(3)]), np.int32, closed=(0, 1))
        assert place_levels.calls == 0


@pytest.mark.parametrize("isolated", [1, 5])
def test_no_edges(isolated):
    with host_engine():
        A = from_edges(isolated, NONE, NONE)
        assert start.connected(OnDevice(A, np.int32).view, "test") == (None, 0)
        check_several(A, np.int32)


def test_a_pattern_that_is_not_symmetric():
    """Everything is reached from vertex 0, and nothing from the vertex that is the farthest."""
    with host_engine():
        view = OnDevice(path(4), np.int32).view
        view = view._replace(
            indptr=device(np.array([0, 1, 3, 5, 5], np.int32)),
            indices=device(np.array([1, 2, 3, 2, 3], np.int32)),
        )
        with pytest.raises(ValueError, match="symmetric"):
            start.connected(view, "test")

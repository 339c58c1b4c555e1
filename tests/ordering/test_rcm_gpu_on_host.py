"""Kernels of Cuthill-McKee on the GPU, compiled for the host: one warp, and CuPy played by NumPy.

Levels that have launches of their own, small components beside a large one, and how all are merged.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
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
from matchwood.ordering.rcm import gpu as largest
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.gpu import leveled
from matchwood.primitives.scan import gpu as scan

pytestmark = pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")

TYPES = [np.int32, np.int64]
# Headers have what clusters of blocks do; nothing of that is called here.
UNUSED = [(r'asm volatile\((?:"[^"]*"|[^;"])*\);', ""), (r"__reduce_max_sync\(ALL, ", "(")]


def device(array):
    return np.ascontiguousarray(array).view(Array)


def fake_cupy():
    fake = beyond_on_host.fake_cupy()
    for name in (
        "argsort", "array", "ascontiguousarray", "full", "minimum", "searchsorted", "zeros",
    ):  # fmt: skip
        made = getattr(np, name)
        setattr(fake, name, lambda *a, made=made, **o: np.asarray(made(*a, **o)).view(Array))
    fake.ndarray = fake.cuda.memory = None
    return fake


@contextlib.contextmanager
def host_engine():
    """Within, the GPU engine's host code runs with kernels on the host."""

    def workspace(what, **arrays):
        return mock.Mock(**{name: beyond_on_host.empty(*given) for name, given in arrays.items()})

    with (
        mock.patch.object(beyond_on_host, "PTX", [*beyond_on_host.PTX, *UNUSED]),
        beyond_on_host.on_host(SimpleNamespace(SOURCE=leveled.HUGE_SOURCE), largest, scan),
        mock.patch.object(engines, "cupy", return_value=fake_cupy()),
        mock.patch("matchwood.engines.gpu.workspace", workspace),
        mock.patch(
            "matchwood.engines.gpu.empty", lambda size, kind, _: beyond_on_host.empty(size, kind)
        ),
        mock.patch.object(largest, "compact", lambda mask, engine: device(np.flatnonzero(mask))),
    ):
        yield


@pytest.fixture
def on_host():
    with host_engine():
        yield


def pattern(A, kind=np.int32):
    view = matchwood.graph((A.indptr, A.indices), index_dtype=kind).undirected_pattern()
    return view._replace(indptr=device(view.indptr), indices=device(view.indices))


LEVELED = {
    "rmat": lambda: rmat(8, 8),
    "dense": lambda: rmat(7, 40),
    "star": lambda: star(300, centre=7),
    "complete": lambda: complete(70),
    "grid": lambda: shuffled(grid(13, 12)),
}


def levels_of(view, start):
    """The order from a vertex, where its levels end, and the place of each vertex's owner."""
    neighbours = reference._neighbours(view)
    order = reference.place_from(neighbours, start)
    level = reference._levels(neighbours, start)
    ends = np.cumsum(np.bincount([level[v] for v in order])).tolist()
    place = {v: at for at, v in enumerate(order)}
    return order, ends, [min((place[w] for w in neighbours[v]), default=-1) for v in order]


@pytest.mark.parametrize("name", LEVELED)
@pytest.mark.parametrize("key_bits", [0, 64])
@pytest.mark.parametrize("few", [0, 1 << 22])
def test_a_level_of_its_own(on_host, monkeypatch, name, key_bits, few):
    """The frontier offers, free vertices seek, and seek after some were offered."""
    monkeypatch.setattr(leveled, "KEY_BITS", key_bits)
    monkeypatch.setattr(leveled, "FEW_ENTRIES", few)
    monkeypatch.setattr(leveled, "FAR_VERTICES", 0)
    view = pattern(LEVELED[name]())
    n, degree = view.n, np.diff(view.indptr)
    hub = int(degree.argmax())
    order, ends, owners = levels_of(view, hub)
    for d, tail in enumerate(ends):
        head = ends[d - 1] if d else 0
        following = ends[d + 1] if d + 1 < len(ends) else tail
        free = np.ones(n, bool)
        free[order[:tail]] = False
        for sought in (0, int(degree[free].sum())):
            found = device(np.full(n, -1, np.int32))
            found[:tail] = order[:tail]
            owner = device(np.full(n, n, np.int32))
            owner[order[:tail]] = owners[:tail]
            owner[hub] = -1
            place = device(np.full(n, n, np.int32))
            children, longest = leveled.place_level(
                view, found, head, tail, owner, place, sought, "test"
            )
            assert children == following - tail
            assert found[:following].tolist() == order[:following]
            assert owner[order[tail:following]].tolist() == owners[tail:following]
            assert (owner[order[following:]] == n).all()
            assert longest == degree[order[tail:following]].max(initial=0)


def some_graph(n, rng):
    """A connected graph of n vertices."""
    child = np.arange(1, n)
    more = rng.integers(0, n, (2, rng.integers(0, n + 1)))
    more = more[:, more[0] != more[1]]
    parent = (rng.random(n - 1) * child).astype(int)
    return from_edges(n, np.append(child, more[0]), np.append(parent, more[1]))


def small_components(seed, count, most):
    rng = np.random.default_rng(seed)
    return [some_graph(int(rng.integers(2, most + 1)), rng) for _ in range(count)]


def expected(view):
    with mock.patch.object(reference, "SMALL_GRAPH_EDGES", -1):  # as in large graphs
        G = matchwood.graph((np.asarray(view.indptr), np.asarray(view.indices)))
        return reference.order(G, np.empty(0, np.int64), "serial", False)[0]


def check_tiny(A, kind):
    view = pattern(A, kind)
    listed = largest.tiny(view, device(np.arange(view.n, dtype=kind)), "test")
    assert listed.vertices.tolist() == expected(view).tolist()
    _, label = matchwood.connected_components((np.asarray(view.indptr), np.asarray(view.indices)))
    first = np.unique(label, return_index=True)[1]
    assert listed.keys.tolist() == first[label[listed.vertices]].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_tiny_components(on_host, kind):
    for parts in (
        [path(2)] * 5, [path(32), star(32), complete(32), grid(4, 8)],
        [path(9), star(7, centre=3), grid(3, 5), complete(6), path(2)],
    ):  # fmt: skip
        check_tiny(disjoint(parts), kind)
        check_tiny(shuffled(disjoint(parts)), kind)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 32))
def test_any_tiny_components(seed, count, most):
    with host_engine():
        check_tiny(shuffled(disjoint(small_components(seed, count, most)), seed=seed), np.int32)


def test_components_that_are_not_tiny(on_host):
    for large in (path(33), star(40), complete(34)):
        view = pattern(shuffled(disjoint([path(3), large, path(2)])))
        assert largest.tiny(view, device(np.arange(view.n, dtype=np.int32)), "test") is None


def test_a_pattern_that_is_not_symmetric(on_host):
    """Vertices 0 and 1 both lead to 2, which leads to neither."""
    view = pattern(path(3))
    view = view._replace(
        indptr=device(np.array([0, 1, 2, 2], np.int32)), indices=device(np.array([2, 2], np.int32))
    )
    with pytest.raises(ValueError, match="symmetric"):
        largest.tiny(view, device(np.arange(3, dtype=np.int32)), "test")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("seed", range(6))
def test_merged(on_host, kind, seed):
    """The largest component, small ones and vertices alone: all at their places."""
    parts = [*small_components(seed, 9, 6), rmat(7, 8), *small_components(seed + 9, 5, 32)]
    view = pattern(shuffled(disjoint(parts), isolated=40, seed=seed), kind)
    n = view.n
    _, label = matchwood.connected_components((np.asarray(view.indptr), np.asarray(view.indices)))
    inside = label == np.bincount(label).argmax()
    whole = expected(view)
    part = device(whole[inside[whole]].astype(kind))
    for owner in (None, device(np.where(inside, np.arange(n) % 7 - 1, n).astype(kind))):
        others, smallest = largest.rest(view, owner, part)
        degree = np.diff(view.indptr)
        assert others.tolist() == np.flatnonzero(~inside & (degree > 0)).tolist()
        assert smallest == np.flatnonzero(inside)[0]
        alone = device(np.flatnonzero(degree == 0).astype(kind))
        lists = (largest.KeyedVertices(alone, alone), largest.tiny(view, others, "test"))
        assert largest.merged(view, part, smallest, lists, "test").tolist() == whole.tolist()

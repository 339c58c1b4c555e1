"""Maximal independent sets on the GPU: what the definition gives, bit for bit.

Only the GPU engine and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import complete, disjoint, from_edges, grid, path, rmat, shuffled, star
from matchwood.gate import graph as csr
from matchwood.independent import gpu as engine
from matchwood.independent import order, reference
from support import pattern_on_gpu

pytestmark = pytest.mark.gpu

METHODS = ("luby", "lexicographic", "luby_sampling")


def chain(n):
    """A path along the order of "luby"."""
    along = np.lexsort((reference_hash(n), np.zeros(n)))
    return from_edges(n, along[:-1], along[1:])


def reference_hash(n):
    from matchwood.primitives.hashing.reference import mix64_array

    return mix64_array(np.uint64(order.start_of(0)) ^ np.arange(n, dtype=np.uint64))


def spider(legs):
    """A centre and legs of two edges: all feet join, so the centre does, after all its entries."""
    knee = np.arange(1, legs + 1)
    return from_edges(
        2 * legs + 1, np.append(np.zeros(legs, int), knee), np.append(knee, knee + legs)
    )


LARGER = {
    "grid": lambda: grid(90, 101),
    "shuffled grid": lambda: shuffled(grid(90, 101), isolated=50),
    "path": lambda: path(4000),
    "shuffled path": lambda: shuffled(path(20_000)),
    "worst path": lambda: chain(3000),
    "star": lambda: star(30_000, centre=29_999),
    "star, centre first": lambda: star(30_000),
    "spider": lambda: spider(20_000),
    "spiders": lambda: shuffled(disjoint([spider(17_000), star(20_000), spider(16_384)])),
    "rmat 13": lambda: rmat(13, 6),
    "dense": lambda: rmat(8, 200),
    "complete": lambda: complete(300),
    "two stars": lambda: disjoint([star(5000), star(6000, centre=77), complete(40)]),
    "cliques": lambda: shuffled(disjoint([complete(5)] * 2000)),
}


def expected(G, method, rng=0):
    view = G.undirected_pattern()
    view = csr.View(view.indptr.get(), view.indices.get())
    return reference.choose(view, method, rng)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("method", METHODS)
def test_zoo(zoo_graph, method, index_dtype):
    G = pattern_on_gpu(zoo_graph, index_dtype)
    for rng in (0, 5):
        found = matchwood.maximal_independent_set(G, method=method, rng=rng)
        assert found.dtype == np.bool_
        assert np.array_equal(found.get(), expected(G, method, rng)[0])


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LARGER)
def test_larger(name, method, index_dtype):
    G = pattern_on_gpu(LARGER[name](), index_dtype)
    members, rounds = expected(G, method)
    for _ in range(3):  # other schedules
        found, taken = engine.choose(G.undirected_pattern(), method, 0)
        assert np.array_equal(found.get(), members)
        assert taken == rounds


@pytest.mark.parametrize("method", METHODS)
def test_several_launches(method, monkeypatch):
    """Stopped after a moment, and after every round, it goes on where it was."""
    monkeypatch.setattr(engine, "CYCLES_PER_LAUNCH", 2000)
    monkeypatch.setattr(engine, "ROUNDS_PER_LAUNCH", 1)
    for make in (lambda: path(500), lambda: rmat(10, 4), lambda: spider(20_000)):
        G = pattern_on_gpu(make())
        members, rounds = expected(G, method)
        found, taken = engine.choose(G.undirected_pattern(), method, 0)
        assert np.array_equal(found.get(), members)
        assert taken == rounds


def test_moved_when_asked():
    A = grid(20, 20)
    found = matchwood.maximal_independent_set(A, engine="gpu")
    assert isinstance(found, np.ndarray)
    view = matchwood.graph(A).on("gpu").undirected_pattern()
    assert np.array_equal(found, engine.choose(view, "luby", 0)[0].get())


def test_input_is_not_changed():
    A = rmat(9, 6)
    G = pattern_on_gpu(A)
    for method in METHODS:
        matchwood.maximal_independent_set(G, method=method)
    assert np.array_equal(G.indptr.get(), A.indptr)
    assert np.array_equal(G.indices.get(), A.indices)

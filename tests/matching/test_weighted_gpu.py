"""Weighted matching on the GPU: every method gives what the definition gives, bit for bit.

Only the GPU engines and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

import matchwood
from graphs import complete, disjoint, from_edges, grid, path, random_graph, rmat, shuffled, star
from matching_graphs import SEED, subnormal, two_hubs, weighted
from matchwood.gate import graph as csr
from matchwood.matching.dominant import reference
from matchwood.matching.weighted import weighted_matching

pytestmark = pytest.mark.gpu

METHODS = ("dominant", "suitor", "greedy")


def engine(method):
    return importlib.import_module(f"matchwood.matching.{method}.gpu")


LARGER = {
    "grid": lambda kind: weighted(grid(60, 61), kind),
    "equal weights": lambda kind: weighted(grid(50, 61), kind, 1),
    "few weights": lambda kind: weighted(rmat(11, 8), kind, 3),
    "shuffled grid": lambda kind: weighted(shuffled(grid(40, 61), isolated=50), kind, 2),
    "rmat": lambda kind: weighted(rmat(12, 8), kind),
    "ascending path": lambda kind: from_edges(
        800, np.arange(799), np.arange(1, 800), np.arange(1, 800), dtype=kind
    ),
    "star": lambda kind: weighted(star(9000, centre=8999), kind),
    "equal star": lambda kind: weighted(star(9000, centre=0), kind, 1),
    "two hubs": lambda kind: weighted(two_hubs(9000), kind),
    "two hubs, few weights": lambda kind: weighted(two_hubs(9000), kind, 2),
    "complete graphs": lambda kind: weighted(disjoint([complete(90), complete(200)]), kind, 40),
    "subnormal weights": lambda kind: subnormal(weighted(grid(20, 20), kind, 9)),
}


def weight_of(A, mate):
    u = np.flatnonzero(mate > np.arange(mate.size))
    return float(A[u, mate[u]].astype(np.float64).sum())


def view_of(A, index_dtype):
    return csr.View(
        A.indptr.astype(index_dtype), A.indices.astype(index_dtype), np.ascontiguousarray(A.data)
    )


def on_gpu(view):
    cupy = pytest.importorskip("cupy")
    return csr.View(*(cupy.asarray(array) for array in view))


def assert_same(found, mate, weight, index_dtype):
    assert found.mate.dtype == index_dtype
    assert np.array_equal(found.mate.get(), mate)
    assert found.weight == pytest.approx(weight, rel=1e-12, abs=0)


@pytest.mark.parametrize("name", LARGER)
def test_larger(name):
    """The types of weights and indices do not change the definition's answer."""
    view = view_of(LARGER[name](np.float64), np.int32)
    expected = {by_hash: reference.match(view, SEED, by_hash) for by_hash in (True, False)}
    for index_dtype, kind in itertools.product((np.int32, np.int64), (np.float32, np.float64)):
        A = LARGER[name](kind)
        view = view_of(A, index_dtype)
        assert view.data.dtype == kind
        there = on_gpu(view)
        for by_hash, right in expected.items():
            weight = weight_of(A, right.mate)
            for method in METHODS:
                for _ in range(3):  # other schedules
                    found = engine(method).match(there, SEED, by_hash)
                    assert_same(found, right.mate, weight, index_dtype)
                if method == "dominant":
                    assert found.rounds == right.rounds


def test_suitor_beyond_the_caches(monkeypatch):
    """First edges of rows are listed, or few neighbours are asked; the answer is the same."""
    suitor = engine("suitor")
    monkeypatch.setattr(suitor, "CACHED_BYTES", 0)
    for name, kind, by_hash in itertools.product(LARGER, (np.float32, np.float64), (True, False)):
        A = LARGER[name](kind)
        right = reference.match(view_of(A, np.int32), SEED, by_hash)
        for index_type, lists in ((np.int32, by_hash), (np.int64, not by_hash)):
            there = on_gpu(view_of(A, index_type))
            with monkeypatch.context() as patched:
                if lists:  # for giants, too
                    patched.setattr(suitor, "has_giants", lambda view: False)
                else:
                    patched.setattr(suitor, "MOST_VERTICES", 0)
                found = suitor.match(there, SEED, by_hash)
            assert_same(found, right.mate, weight_of(A, right.mate), index_type)


def test_suitor_by_lists_over_and_over(monkeypatch):
    """Many vertices that try all their listed edges, chains of displacements, other schedules."""
    monkeypatch.setattr(engine("suitor"), "CACHED_BYTES", 0)
    for levels in (2, 1 << 20):
        A = weighted(random_graph(60_000, 900_000), np.float32, levels)
        view = view_of(A, np.int32)
        expected = engine("dominant").match(on_gpu(view), SEED, True).mate.get()
        for _ in range(20):
            found = engine("suitor").match(on_gpu(view), SEED, True)
            assert np.array_equal(found.mate.get(), expected)


def test_zoo(zoo_graph):
    cupy = pytest.importorskip("cupy")
    A = abs(zoo_graph)
    A.sum_duplicates()
    arrays = tuple(cupy.asarray(array) for array in (A.indptr, A.indices, A.data))
    G = matchwood.graph(arrays)
    view = G.undirected_weights()
    expected = reference.match(csr.View(*(array.get() for array in view)), SEED, True)
    for method in METHODS:
        found = weighted_matching(G, method=method, rng=SEED)
        assert np.array_equal(found.mate.get(), expected.mate)
        assert found.weight == pytest.approx(expected.weight, rel=1e-12)


def test_no_edges():
    for method, n in itertools.product(METHODS, (0, 1, 5)):
        view = csr.View(np.zeros(n + 1, np.int32), np.zeros(0, np.int32), np.zeros(0))
        found = engine(method).match(on_gpu(view), SEED, True)
        assert found.mate.tolist() == [-1] * n
        assert found.weight == 0


def test_many_launches(monkeypatch):
    """More rounds than one launch is given."""
    monkeypatch.setattr(engine("dominant"), "ROUNDS_PER_LAUNCH", 7)
    monkeypatch.setattr(engine("greedy"), "ROUNDS_PER_LAUNCH", 7)
    view = view_of(LARGER["ascending path"](np.float64), np.int32)
    expected = reference.match(view, SEED, True)
    for method in ("dominant", "greedy"):
        found = engine(method).match(on_gpu(view), SEED, True)
        assert_same(found, expected.mate, expected.weight, np.int32)


def test_larger_than_one_wave():
    """The three agree where thousands of blocks would be needed."""
    A = weighted(path(300_000), np.float32, 1000)
    view = on_gpu(view_of(A, np.int32))
    found = [engine(method).match(view, SEED, True) for method in METHODS]
    assert bool((found[0].mate == found[1].mate).all())
    assert bool((found[0].mate == found[2].mate).all())

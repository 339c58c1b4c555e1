"""Connected components on the GPU: every method gives what the definition gives, bit for bit.

Only the GPU engine and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO, complete, disjoint, grid, path, rmat, shuffled, star
from matchwood.components.connected import gpu as engine
from matchwood.components.connected import reference
from matchwood.gate import graph as csr
from support import pattern_on_gpu

pytestmark = pytest.mark.gpu

METHODS = ("auto", "afforest", "fastsv", "bfs")
LARGER = {
    "grid": lambda: grid(90, 101),
    "shuffled grid": lambda: shuffled(grid(90, 101), isolated=50),
    "shuffled path": lambda: shuffled(path(20_000)),
    "long path": lambda: path(30_000),
    "star": lambda: star(30_000, centre=29_999),
    "rmat 13": lambda: rmat(13, 6),
    "rmat 13, directed": lambda: rmat(13, 6, symmetric=False),
    "no largest": lambda: shuffled(disjoint([complete(5)] * 2000)),
    "two large": lambda: disjoint([rmat(11, 8), star(5000), rmat(11, 8)]),
}


def expected(A):
    count, labels, _ = reference.label(csr.View(A.indptr, A.indices), False, "")
    return count, labels


def assert_same(found, count, labels, index_dtype):
    assert found.count == count
    assert found.labels.dtype == index_dtype
    assert np.array_equal(found.labels.get(), labels)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("method", METHODS)
def test_zoo(zoo_graph, method, index_dtype):
    G = pattern_on_gpu(zoo_graph, index_dtype)
    found = matchwood.connected_components(G, method=method)
    assert_same(found, *expected(zoo_graph), index_dtype)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("name", LARGER)
def test_larger(name, method, index_dtype):
    A = LARGER[name]()
    G = pattern_on_gpu(A, index_dtype)
    answer = expected(A)
    for _ in range(3):  # other schedules
        assert_same(matchwood.connected_components(G, method=method), *answer, index_dtype)


@pytest.mark.parametrize("method", METHODS[1:3])
def test_symmetry_not_known(method):
    """A raw matrix: all entries are used, rows in any order, duplicates and loops among them."""
    cupy = pytest.importorskip("cupy")
    for name in ("grid", "rmat", "duplicates, unsorted", "self loops", "rmat, directed"):
        A = ZOO[name]()
        raw = (cupy.asarray(A.indptr), cupy.asarray(A.indices))
        found = matchwood.connected_components(raw, method=method)
        assert_same(found, *expected(A), np.int32)


def test_rounds_of_fastsv_do_not_depend_on_scheduling():
    G = pattern_on_gpu(shuffled(grid(90, 101)))
    rounds = {matchwood.connected_components(G, method="fastsv").rounds for _ in range(5)}
    assert len(rounds) == 1


def test_more_rounds_than_a_batch(monkeypatch):
    monkeypatch.setattr(engine, "ROUNDS_PER_CHECK", 1)
    A = path(5000)
    found = matchwood.connected_components(pattern_on_gpu(A), method="fastsv")
    assert found.count == 1
    assert found.rounds > 4


def test_input_is_not_changed():
    A = ZOO["rmat"]()
    G = pattern_on_gpu(A)
    for method in METHODS:
        matchwood.connected_components(G, method=method)
    assert np.array_equal(G.indptr.get(), A.indptr)
    assert np.array_equal(G.indices.get(), A.indices)

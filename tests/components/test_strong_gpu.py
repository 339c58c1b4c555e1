"""Strong components on the GPU: every method gives what the definition gives, bit for bit.

Only the GPU engine and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO, random_graph
from matchwood.components.strong import gpu as engine
from matchwood.components.strong import reference
from matchwood.components.strong.condensation import reference as levels_reference
from matchwood.gate import graph as csr
from strong_graphs import HARD, chain_of_cycles, directed_cycle, directed_path
from support import pattern_on_gpu

pytestmark = pytest.mark.gpu

METHODS = ("auto", "forward_backward", "multistep", "propagation")


def expected(A):
    count, labels, _ = reference.label(csr.View(A.indptr, A.indices), None, True, "")
    return count, labels


def assert_same(found, count, labels, index_dtype=np.int32):
    assert found.count == count
    assert found.labels.dtype == index_dtype
    assert np.array_equal(found.labels.get(), labels)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("method", METHODS)
def test_zoo(zoo_graph, method, index_dtype):
    G = pattern_on_gpu(zoo_graph, index_dtype)
    found = matchwood.strongly_connected_components(G, method=method)
    assert_same(found, *expected(zoo_graph), index_dtype)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name, index_dtype):
    A = HARD[name]()
    G = pattern_on_gpu(A, index_dtype)
    answer = expected(A)
    for method in METHODS[1:]:
        for _ in range(3):  # other schedules
            found = matchwood.strongly_connected_components(G, method=method)
            assert_same(found, *answer, index_dtype)


def test_random_graphs():
    for seed in range(30):
        n = 20 + 13 * seed
        A = random_graph(n, n * (1 + seed % 4), symmetric=False, seed=seed)
        G = pattern_on_gpu(A)
        for method in METHODS:
            found = matchwood.strongly_connected_components(G, method=method)
            assert_same(found, *expected(A))


def test_raw_matrix():
    cupy = pytest.importorskip("cupy")
    for name in ("rmat, directed", "duplicates, unsorted", "self loops", "0x0"):
        A = ZOO[name]()
        raw = (cupy.asarray(A.indptr), cupy.asarray(A.indices))
        assert_same(matchwood.strongly_connected_components(raw), *expected(A))


@pytest.mark.parametrize("method", METHODS[1:])
def test_rounds_are_few(method):
    """Deep graphs take far fewer passes than the longest way has arcs."""
    for A in (directed_path(20_000), directed_cycle(20_000), chain_of_cycles(2000, 10)):
        found = matchwood.strongly_connected_components(pattern_on_gpu(A), method=method)
        assert found.rounds < 4000
        assert_same(found, *expected(A))


@pytest.mark.parametrize("method", METHODS[1:])
def test_many_launches(monkeypatch, method):
    monkeypatch.setattr(engine, "PASSES_PER_LAUNCH", 1)
    for name in ("big and small", "chain of cycles", "oriented grid"):
        A = HARD[name]()
        found = matchwood.strongly_connected_components(pattern_on_gpu(A), method=method)
        assert_same(found, *expected(A))


def test_only_where_it_is():
    with pytest.raises(ValueError, match="'tarjan' is for the 'cpu' engine"):
        matchwood.strongly_connected_components(pattern_on_gpu(directed_path(3)), method="tarjan")


def test_input_is_not_changed():
    A = ZOO["rmat, directed"]()
    G = pattern_on_gpu(A)
    for method in METHODS:
        matchwood.strongly_connected_components(G, method=method)
    assert np.array_equal(G.indptr.get(), A.indptr)
    assert np.array_equal(G.indices.get(), A.indices)


@pytest.mark.parametrize("name", [*ZOO, *HARD])
def test_condensation(name):
    A = {**ZOO, **HARD}[name]()
    found = matchwood.condensation(pattern_on_gpu(A))
    assert found.count == expected(A)[0]
    arcs = found.graph.tocoo()
    u, v = arcs.row.get(), arcs.col.get()
    assert (u < v).all()
    answer = matchwood.condensation(A, engine="reference")
    assert np.array_equal(found.labels.get(), answer.labels)
    assert np.array_equal(found.graph.indices.get(), answer.graph.indices)
    assert np.array_equal(found.graph.indptr.get(), answer.graph.indptr)
    right = levels_reference.levels(answer.graph.indptr, answer.graph.indices)
    assert np.array_equal(found.levels.get(), right)

"""Breadth-first search on the GPU gives what the definition gives, bit for bit.

Only the GPU engine and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import matchwood
from graphs import ZOO, grid, path, rmat, shuffled, star
from matchwood.engines import gpu
from matchwood.gate import graph as csr
from matchwood.traversal.breadth_first import gpu as engine
from matchwood.traversal.breadth_first import reference
from support import pattern_on_gpu

pytestmark = pytest.mark.gpu

LARGER = {
    "grid 60": lambda: grid(60, 61),
    "long path": lambda: path(5000),
    "small star": lambda: star(3000),  # the parent of the centre may be at the end of its row
    "star": lambda: star(40_000),  # a row of many pieces, a frontier too large for a cluster
    "shuffled grid": lambda: shuffled(grid(70, 80), isolated=40),
    "rmat 13": lambda: rmat(13, 12),  # goes backwards and forwards again
    "rmat 13, directed": lambda: rmat(13, 12, symmetric=False),
}


def prepared(A, index_dtype=np.int32):
    """The graph on the GPU, and its patterns forwards and backwards as NumPy arrays."""
    G = pattern_on_gpu(A, index_dtype)
    view = G.directed_pattern()
    return G, csr.View(view.indptr.get(), view.indices.get())


def assert_same(found, expected):
    level, parent, rounds = expected
    assert found.level.dtype == level.dtype
    assert np.array_equal(found.level.get(), level)
    assert np.array_equal(found.parent.get(), parent)
    assert found.rounds == rounds


def starts(n):
    return [[0], [n - 1], sorted({0, n // 3, n - 1})]


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_zoo(zoo_graph, index_dtype):
    G, view = prepared(zoo_graph, index_dtype)
    for sources in starts(G.n) if G.n else [[]]:
        expected = reference.search(view, None, np.array(sources, np.int64), G.n)
        assert_same(matchwood.bfs(G, sources), expected)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", LARGER)
def test_larger(name, index_dtype):
    G, view = prepared(LARGER[name](), index_dtype)
    for sources in starts(G.n):
        expected = reference.search(view, None, np.array(sources, np.int64), G.n)
        assert_same(matchwood.bfs(G, sources), expected)


@pytest.mark.parametrize("name", ["directed", "rmat, directed", "upper triangle", "directed path"])
def test_without_transpose(name):
    """Parents are then offered along arcs, and the search never goes backwards."""
    G, view = prepared(ZOO[name]())
    for sources in starts(G.n):
        start = np.array(sources, np.int64)
        expected = reference.search(view, None, start, G.n)
        found = engine.search(G.directed_pattern(), None, start, G.n)
        assert np.array_equal(found[0].get(), expected[0])
        assert np.array_equal(found[1].get(), expected[1])
        assert found[2] == expected[2]


@pytest.mark.parametrize("limit", [0, 1, 5, 10**12])
@pytest.mark.parametrize("name", ["grid", "rmat", "path", "directed"])
def test_depth_limit(name, limit):
    G, view = prepared(ZOO[name]())
    expected = reference.search(view, None, np.array([0]), limit)
    assert_same(matchwood.bfs(G, 0, depth_limit=limit), expected)


def test_no_sources():
    G, _ = prepared(ZOO["grid"]())
    found = matchwood.bfs(G, [])
    assert found.rounds == 0
    assert (found.level.get() == -1).all()
    assert (found.parent.get() == -1).all()


def test_goes_on_after_a_pause(monkeypatch):
    """A launch ends after so many rounds, the next one takes up where it ended."""
    for name in ("long path", "grid", "rmat", "star"):
        G, view = prepared(ZOO[name]())
        expected = reference.search(view, None, np.array([0]), G.n)
        for most_rounds in (1, 3):
            monkeypatch.setattr(engine, "ROUNDS_PER_LAUNCH", most_rounds)
            assert_same(matchwood.bfs(G, 0), expected)


def test_input_is_not_changed():
    G, view = prepared(ZOO["rmat"]())
    matchwood.bfs(G, 0)
    assert np.array_equal(G.indptr.get(), view.indptr)
    assert np.array_equal(G.indices.get(), view.indices)


def test_several_threads_at_once():
    """Searches on streams of their own, more blocks than the device runs at once."""
    cupy = pytest.importorskip("cupy")
    A = rmat(13, 12)
    G, view = prepared(A)
    wanted = [reference.search(view, None, np.array([s]), G.n) for s in range(4)]
    wrong = []

    def body(source):
        with cupy.cuda.Stream(non_blocking=True):
            for _ in range(20):
                found = matchwood.bfs(G, source)
                if not np.array_equal(found.parent.get(), wanted[source][1]):
                    wrong.append(source)

    cupy.cuda.Device().synchronize()
    members = [threading.Thread(target=body, args=(s,)) for s in range(4)]
    for member in members:
        member.start()
    for member in members:
        member.join()
    assert wrong == []


def test_out_of_memory_is_named(monkeypatch):
    G = matchwood.graph(matchwood.generators.star(3_000_000)).on("gpu")
    matchwood.bfs(G, 0)  # what the gate finds out is kept: only the search allocates from here on
    monkeypatch.setattr(gpu, "free_bytes", lambda: 16)
    cupy = pytest.importorskip("cupy")
    cupy.get_default_memory_pool().free_all_blocks()
    # ends of blocks that other tests use cannot be given back: as if there were none
    monkeypatch.setattr(cupy, "get_default_memory_pool", cupy.cuda.MemoryPool)
    with pytest.raises(matchwood.OutOfMemory, match=r"bfs needs .* bytes on the GPU"):
        matchwood.bfs(G, 0)

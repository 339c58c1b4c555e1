"""Maximal matching on the GPU: the mates and the rounds of the definition, bit for bit.

Only the GPU engine and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import matchwood
from graphs import complete, cycle, disjoint, grid, path, rmat, shuffled, star
from matchwood.errors import EngineUnavailable
from matchwood.matching import maximal_matching
from matchwood.matching.proposal import gpu as engine
from matchwood.primitives.hashing import bit_barrier

pytestmark = pytest.mark.gpu

WEIGHTED = [False, True]
LARGER = {
    "mixed": lambda: shuffled(
        disjoint([rmat(10, 6), path(3000), star(700), grid(40, 50)]), isolated=100
    ),
    "rmat 12": lambda: rmat(12, 6),
    "stars": lambda: disjoint([star(500, centre=3)] * 20),
    "complete": lambda: complete(150),
}


def resident(A, index_dtype=np.int32, value_dtype=np.float64):
    cupy = pytest.importorskip("cupy")
    data = cupy.asarray(A.data.astype(value_dtype))
    arrays = (cupy.asarray(A.indptr), cupy.asarray(A.indices), data)
    return matchwood.graph(arrays, index_dtype=index_dtype)


def assert_same(found, expected):
    assert np.array_equal(found.mate.get(), expected.mate)
    assert found.matched_by_round == expected.matched_by_round
    assert math.isclose(found.weight, expected.weight, rel_tol=1e-12)


def expected_of(A, value_dtype=np.float64, **given):
    G = matchwood.graph((A.indptr, A.indices, A.data.astype(value_dtype)))
    return maximal_matching(G, engine="reference", **given)


def test_zoo(zoo_graph):
    for weighted in WEIGHTED:
        expected = expected_of(zoo_graph, weighted=weighted, rng=5)
        for index_dtype in (np.int32, np.int64):
            found = maximal_matching(resident(zoo_graph, index_dtype), weighted=weighted, rng=5)
            assert_same(found, expected)
            assert found.mate.dtype == index_dtype


def test_preferences_of_the_zoo(zoo_graph):
    for prefer in ("hash", "degree"):
        expected = expected_of(zoo_graph, prefer=prefer, rng=5)
        for index_dtype in (np.int32, np.int64):
            found = maximal_matching(resident(zoo_graph, index_dtype), prefer=prefer, rng=5)
            assert_same(found, expected)
            assert found.mate.dtype == index_dtype


@pytest.mark.parametrize("name", LARGER)
def test_preferences_of_larger_graphs(name, monkeypatch):
    A = LARGER[name]()
    expected = {prefer: expected_of(A, prefer=prefer) for prefer in ("hash", "degree")}
    G = resident(A)
    for blocks in (None, 2, 1):  # other schedules
        if blocks:
            few = lambda self, block=256, shared_mem=0, blocks=blocks: blocks  # noqa: E731
            monkeypatch.setattr(engine.gpu.Kernel, "resident", few)
        for prefer, right in expected.items():
            assert_same(maximal_matching(G, prefer=prefer), right)


@pytest.mark.parametrize("name", LARGER)
def test_larger(name):
    A = LARGER[name]()
    pattern = expected_of(A)  # the same for all types of values
    for value_dtype in (np.float32, np.float64):
        heavy = expected_of(A, value_dtype=value_dtype, weighted=True)
        G = resident(A, value_dtype=value_dtype)
        for _ in range(3):  # other schedules
            assert_same(maximal_matching(G), pattern)
            assert_same(maximal_matching(G, weighted=True), heavy)


@pytest.mark.parametrize("p", [1e-300, 0.1, 0.9, 1 - 2**-53])
def test_always_ends(p):
    graphs = (path(2), star(300), star(300, centre=299), cycle(3000))
    for A, weighted in itertools.product(graphs, WEIGHTED):
        expected = expected_of(A, blue_probability=p, weighted=weighted)
        assert_same(maximal_matching(resident(A), blue_probability=p, weighted=weighted), expected)


def test_more_rounds_than_a_launch(monkeypatch):
    A = cycle(3000)
    expected = expected_of(A, blue_probability=1e-300)
    assert expected.rounds > 4
    for rounds in (1, 2, 3):
        monkeypatch.setattr(engine, "ROUNDS_PER_LAUNCH", rounds)
        assert_same(maximal_matching(resident(A), blue_probability=1e-300), expected)


@pytest.mark.parametrize("name", ["mixed", "rmat 12"])
def test_few_blocks(name, monkeypatch):
    """Each block has many tiles, as in large graphs."""
    monkeypatch.setattr(engine.gpu.Kernel, "resident", lambda self, block=256, shared_mem=0: 2)
    for weighted in WEIGHTED:
        expected = expected_of(LARGER[name](), weighted=weighted)
        assert_same(maximal_matching(resident(LARGER[name]()), weighted=weighted), expected)


def test_engines_move_what_was_asked():
    A = grid(20, 30)
    found = maximal_matching(A, engine="gpu")
    assert isinstance(found.mate, np.ndarray)
    assert np.array_equal(found.mate, maximal_matching(A, engine="reference").mate)


def test_serial_has_no_gpu_engine():
    with pytest.raises(EngineUnavailable, match=r"method='serial'.*engine='cpu'"):
        maximal_matching(resident(path(4)), method="serial")


def test_memory():
    """At most 24 bytes a vertex besides the graph, the result included."""
    cupy = pytest.importorskip("cupy")
    G = matchwood.graph(matchwood.generators.grid((1500, 1500), engine="gpu"))
    view = G.undirected_pattern()
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        mate = engine.match(view, "proposal", 0, bit_barrier(0.5))[0]
        assert 4 * G.n < pool.total_bytes() <= 24 * G.n
        del mate

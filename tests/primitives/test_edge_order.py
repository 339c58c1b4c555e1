"""The order of edges: one order on every engine, without ties, heavy first."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.engines.cpu import crew, kernel
from matchwood.errors import CheckFailed
from matchwood.primitives.edge_order import order_edges
from matchwood.primitives.edge_order.check import check_order
from matchwood.primitives.edge_order.cpu import prefers
from matchwood.primitives.edge_order.reference import edge_key
from support import THREADS, looped

WEIGHTS = {
    "distinct": lambda rng, m: rng.permutation(m) + 0.5,
    "random": lambda rng, m: rng.random(m),
    "equal": lambda rng, m: np.ones(m),
    "few": lambda rng, m: rng.integers(0, 4, m).astype(np.float64),
    "tiny": lambda rng, m: np.where(rng.random(m) < 0.5, 5e-324, 1e-310),
    "some equal": lambda rng, m: np.round(rng.random(m), 2),
}


def edges(m: int, kind: type = np.int32, *, n: int = 300, ordered: bool = False):
    rng = np.random.default_rng(m)
    u, v = rng.integers(0, n, (2, m)).astype(kind)
    if ordered:
        u, v = np.minimum(u, v), np.maximum(u, v)
        by_ends = np.lexsort((v, u))
        u, v = u[by_ends], v[by_ends]
    return u, v


@looped("ties", ["hash", "index"])
@looped("ordered", [False, True])
@looped("weights", WEIGHTS)
def test_equals_the_reference(weights, ordered, ties):
    for m in (0, 1, 2, 3, 700):
        u, v = edges(m, ordered=ordered)
        w = WEIGHTS[weights](np.random.default_rng(1), m)
        expected = order_edges(u, v, w, seed=5, ties=ties, engine="reference")
        check_order(u, v, w, expected, seed=5, ties=ties)
        for threads in THREADS:
            found = order_edges(u, v, w, seed=5, ties=ties, threads=threads)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype == np.int32


@looped("kind", [np.int32, np.int64])
@looped("weight", [np.float32, np.float64])
def test_types_do_not_matter(kind, weight):
    u, v = edges(500, kind, ordered=True)
    w = np.random.default_rng(2).integers(1, 50, 500).astype(weight)
    expected = order_edges(*edges(500, np.int32, ordered=True), w.astype(np.float64))
    np.testing.assert_array_equal(order_edges(u, v, w), expected)


def test_ends_may_be_turned_round():
    u, v = edges(400)
    w = np.ones(400)
    expected = order_edges(u, v, w, threads=1)
    for threads in THREADS:
        np.testing.assert_array_equal(order_edges(v, u, w, threads=threads), expected)


def test_minus_zero_is_zero():
    w = np.array([-0.0, 0.0, -0.0, 0.0])
    u, v = np.array([0, 0, 0, 0]), np.array([4, 3, 2, 1])
    assert order_edges(u, v, w, ties="index").tolist() == [3, 2, 1, 0]


def test_index_ties_are_column_order():
    """For a vertex anywhere among its neighbours, the smaller neighbour comes first."""
    for v, a, b in itertools.permutations(range(4), 3):
        first, second = (edge_key(1.0, v, w, by_hash=False) for w in (a, b))
        assert (first < second) == (a < b)


def test_the_seed_shuffles_ties():
    u, v = edges(300, ordered=True)
    one, other = (order_edges(u, v, np.ones(300), seed=seed) for seed in (1, 2))
    assert not np.array_equal(one, other)


@kernel
def _compare(team, w, u, v, seed, by_hash, out):
    for i in range(w.size):
        for j in range(w.size):
            out[i, j] = prefers(w[i], u[i], v[i], w[j], u[j], v[j], seed, by_hash)


@looped("by_hash", [True, False])
def test_the_device_function_is_the_rule(by_hash):
    rng = np.random.default_rng(3)
    w, (u, v) = rng.integers(1, 4, 40).astype(np.float32), edges(40, n=12)
    out = np.zeros((40, 40), np.bool_)
    crew(1, work=1).run(_compare, w, u, v, np.uint64(9), by_hash, out)
    triples = zip(w.tolist(), u.tolist(), v.tolist(), strict=True)
    keys = [edge_key(*edge, 9, by_hash) for edge in triples]
    for i, j in np.ndindex(out.shape):
        assert out[i, j] == (keys[i] < keys[j])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), max_size=40))
def test_random_edges(triples):
    u, v, w = (np.array([t[k] for t in triples], dtype=np.int64) for k in range(3))
    for ties in ("hash", "index"):
        perm = order_edges(u, v, w.astype(np.float32), ties=ties, threads=2)
        check_order(u, v, w, perm, ties=ties)


def test_bad_input():
    u, v, w = np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0])
    with pytest.raises(ValueError, match=r"v must have the size of u, got 1 and 2"):
        order_edges(u, v[:1], w)
    with pytest.raises(TypeError, match=r"w must be float32 or float64, got int64"):
        order_edges(u, v, u)
    with pytest.raises(TypeError, match=r"of one type, got int64 and int32"):
        order_edges(u, v.astype(np.int32), w)
    with pytest.raises(ValueError, match=r"ties must be one of .*, got 'none'"):
        order_edges(u, v, w, ties="none")
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match=r"w must not be negative or NaN"):
            order_edges(u, v, np.array([1.0, bad]))


def test_the_check_sees_what_is_broken():
    u, v, w = np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([1.0, 3.0, 2.0])
    check_order(u, v, w, np.array([1, 2, 0]))
    with pytest.raises(CheckFailed, match=r"edge 1 is at place 1, but comes before"):
        check_order(u, v, w, np.array([2, 1, 0]))
    with pytest.raises(CheckFailed, match=r"each of 0 .. 2 once"):
        check_order(u, v, w, np.array([1, 1, 0]))

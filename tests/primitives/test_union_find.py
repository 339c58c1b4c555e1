"""Union-find: the smallest vertex names the set, whatever the order of edges and members."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import ZOO
from matchwood.engines.cpu import atomic_add, barrier, crew, kernel, share
from matchwood.errors import CheckFailed
from matchwood.primitives.union_find import union_find
from matchwood.primitives.union_find.check import check_union_find
from matchwood.primitives.union_find.cpu import compress, find, link
from matchwood.primitives.union_find.reference import union_find as by_definition
from support import THREADS, looped


@looped("name", ZOO)
def test_every_graph_of_the_zoo(engine, name):
    edges = ZOO[name]().tocoo()
    n, u, v = edges.shape[0], edges.row.astype(np.int32), edges.col.astype(np.int32)
    label = union_find(n, u, v, engine=engine)
    check_union_find(n, u, v, label)
    assert label.dtype == u.dtype


@looped("kind", [np.int32, np.int64])
@looped(("n", "m"), [(0, 0), (1, 0), (1, 3), (2, 1), (500, 300), (500, 2000)])
def test_engines_equal_the_definition(engine, kind, n, m):
    u, v = np.random.default_rng(m).integers(0, max(n, 1), (2, m)).astype(kind)
    label = union_find(n, u, v, engine=engine)
    assert label.dtype == kind
    np.testing.assert_array_equal(label, by_definition(n, u, v))
    check_union_find(n, u, v, label)


def chain(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A path whose edges come in random order: long trees, many hooks at once."""
    order = np.random.default_rng(0).permutation(n - 1).astype(np.int32)
    return order, order + 1


def star_of_stars(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Everybody hooks to few vertices, from large to small."""
    v = np.arange(n - 1, 0, -1, dtype=np.int32)
    return v, v // 100


@looped("edges", [chain, star_of_stars])
def test_threads_do_not_matter(edges):
    n = 60_000
    u, v = edges(n)
    for threads in (*THREADS, *THREADS, *THREADS):  # the order of hooks differs from run to run
        assert (union_find(n, u, v, threads=threads) == 0).all()


def test_random_sets_at_any_number_of_threads():
    n = 50_000
    u, v = np.random.default_rng(7).integers(0, n, (2, n // 2)).astype(np.int64)
    label = union_find(n, v[::-1], u[::-1], threads=1)
    check_union_find(n, u, v, label)
    for threads in THREADS:
        np.testing.assert_array_equal(union_find(n, u, v, threads=threads), label)


@given(st.integers(1, 30), st.data())
def test_random_edges(n, data):
    vertex = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(vertex, vertex), max_size=60))
    u, v = (np.array([pair[k] for pair in pairs], dtype=np.int32) for k in (0, 1))
    label = union_find(n, u, v, threads=2)
    np.testing.assert_array_equal(label, by_definition(n, u, v))


@kernel
def _count_sets(team, u, v, parent, joined, root):
    lo, hi = share(team, u.size)
    for k in range(lo, hi):
        if link(parent, u[k], v[k]):
            atomic_add(joined, 0, 1)
    if barrier(team):
        return
    lo, hi = share(team, parent.size)
    for i in range(lo, hi):
        root[i] = find(parent, i)
    if barrier(team):
        return
    compress(parent, lo, hi)


def test_device_functions():
    """Every join is counted once, and find and compress agree."""
    n = 20_000
    u, v = np.random.default_rng(8).integers(0, n, (2, n)).astype(np.int32)
    for threads in THREADS:
        parent, root = np.arange(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        joined = np.zeros(1, dtype=np.int64)
        crew(threads, work=n).run(_count_sets, u, v, parent, joined, root)
        check_union_find(n, u, v, parent)
        np.testing.assert_array_equal(root, parent)
        assert n - joined[0] == np.unique(parent).size


@looped("name", ["reference", "cpu"])
def test_bad_input(name):
    u, v = np.array([0, 3, 1]), np.array([1, 1, 4])
    with pytest.raises(ValueError, match=r"u\[1\] and v\[1\] must be in 0 .. n - 1 with n = 3"):
        union_find(3, u, v, engine=name)
    with pytest.raises(ValueError, match=r"u\[2\] and v\[2\]"):
        union_find(4, u, v, engine=name)
    with pytest.raises(ValueError, match=r"u\[0\] and v\[0\]"):
        union_find(9, -u - 1, v, engine=name)
    with pytest.raises(ValueError, match="size of u, got 2 and 3"):
        union_find(9, u, v[:2], engine=name)
    with pytest.raises(TypeError, match="one type, got int64 and int32"):
        union_find(9, u, v.astype(np.int32), engine=name)
    with pytest.raises(TypeError, match="u must be int32 or int64, got float64"):
        union_find(9, u / 2, v, engine=name)
    with pytest.raises(ValueError, match="n must be at least 0"):
        union_find(-1, u, v, engine=name)
    with pytest.raises(ValueError, match="does not fit the vertices' type int32"):
        union_find(2**40, u.astype(np.int32), v.astype(np.int32), engine=name)


def test_the_check_sees_what_is_broken():
    u, v = np.array([1, 2, 5]), np.array([2, 4, 6])
    right = union_find(7, u, v)
    assert right.tolist() == [0, 1, 1, 3, 1, 5, 5]
    check_union_find(7, u, v, right)
    cases = {
        "7 labels expected": right[:6],
        "is not in 0": [0, 2, 2, 3, 2, 5, 5],  # not the smallest
        "whose own label": [0, 1, 1, 3, 2, 5, 5],
        "edge 1 joins": [0, 1, 1, 3, 4, 5, 5],
        "3 sets, but the edges leave 4": [0, 1, 1, 3, 1, 0, 0],
    }
    for message, broken in cases.items():
        with pytest.raises(CheckFailed, match=message):
            check_union_find(7, u, v, np.array(broken))

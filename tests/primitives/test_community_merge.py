"""Rounds of joins: the same on every engine, and trees that are numbered by their roots."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO, complete, disjoint, rmat, star
from matchwood.primitives.community_merge import trusted_joins, trusted_trees
from matchwood.primitives.community_merge.check import check_joins
from support import looped


def cases(A):
    view = matchwood.graph(A).undirected_pattern()
    rng = np.random.default_rng(view.n)
    names = np.sort(rng.permutation(3 * view.n)[: view.n]).astype(view.indices.dtype)
    for weights in (None, rng.integers(1, 9, view.nnz)):
        rows = np.repeat(np.arange(view.n), np.diff(view.indptr))
        volume = np.bincount(rows, weights=weights, minlength=view.n).astype(np.int64)
        for resolution in (1.0, 0.3):
            graph = (view.indptr, view.indices, weights)
            yield (graph, volume, names, int(volume.sum())), {"resolution": resolution}


@pytest.mark.slow
@looped("name", ZOO)
def test_equals_the_reference(name):
    for given, options in cases(ZOO[name]()):
        expected = trusted_joins(*given, **options, engine="reference")
        check_joins(*given, expected, **options)
        label, root = trusted_trees(expected, engine="reference")
        for threads in (1, 2, 3, 7):
            found = trusted_joins(*given, **options, threads=threads)
            assert np.array_equal(found, expected)
            for mine, right in zip(
                trusted_trees(found, threads=threads), (label, root), strict=True
            ):
                assert np.array_equal(mine, right)


@pytest.mark.gpu
@looped("name", ZOO)
def test_the_gpu_gives_the_same(name):
    cupy = pytest.importorskip("cupy")
    for (graph, volume, names, total), options in cases(ZOO[name]()):
        there = tuple(None if a is None else cupy.asarray(a) for a in graph)
        found = trusted_joins(there, cupy.asarray(volume), cupy.asarray(names), total, **options)
        expected = trusted_joins(graph, volume, names, total, **options)
        assert np.array_equal(found.get(), expected)
        for mine, right in zip(trusted_trees(found), trusted_trees(expected), strict=True):
            assert np.array_equal(mine.get(), right)


@pytest.mark.gpu
def test_the_gpu_gives_the_same_for_long_rows():
    """Rows of one piece and of several, beside short ones; and ties between pieces."""
    cupy = pytest.importorskip("cupy")
    for A in (star(30_000), rmat(15, 8), complete(1200), disjoint([star(1024), star(1026)])):
        for (graph, volume, names, total), options in cases(A):
            there = tuple(None if a is None else cupy.asarray(a) for a in graph)
            arrays = (there, cupy.asarray(volume), cupy.asarray(names), total)
            found = trusted_joins(*arrays, **options)
            expected = trusted_joins(graph, volume, names, total, **options)
            assert np.array_equal(found.get(), expected)


@pytest.mark.gpu
def test_long_chains_on_the_gpu():
    cupy = pytest.importorskip("cupy")
    for n in (1, 2, 33, 34, 40_000):
        for last in (n - 1, n // 2):
            target = np.minimum(np.arange(1, n + 1), last).astype(np.int32)
            target[last:] = np.arange(last, n)
            found = trusted_trees(cupy.asarray(target))
            for mine, right in zip(found, trusted_trees(target), strict=True):
                assert np.array_equal(mine.get(), right)


def test_a_long_chain_is_one_tree():
    target = np.append(np.arange(1, 100_000), 99_999).astype(np.int32)
    for threads in (1, 2, 7):
        label, root = trusted_trees(target, threads=threads)
        assert root.tolist() == [99_999]
        assert not label.any()


def test_the_check_finds_faults():
    (given, options) = next(iter(cases(ZOO["grid"]())))
    right = trusted_joins(*given, **options)
    wrong = right.copy()
    wrong[5] = 5 if right[5] != 5 else 4
    with pytest.raises(matchwood.CheckFailed, match="joins: 5 must join"):
        check_joins(*given, wrong, **options)

"""Measures and permutations on the GPU give what the definitions give."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO, grid, rmat, shuffled, star
from matchwood.gate import graph as csr
from matchwood.ordering.measure import gpu as engine
from matchwood.ordering.measure import reference
from matchwood.ordering.permutation import gpu as permute_engine
from matchwood.ordering.permutation import reference as permute_reference

pytestmark = pytest.mark.gpu

NAMES = ("bandwidth", "profile", "max_wavefront", "rms_wavefront")


def on_gpu(view):
    cupy = pytest.importorskip("cupy")
    return csr.View(*(None if array is None else cupy.asarray(array) for array in view))


def orders(n):
    rng = np.random.default_rng(3)
    return [None, np.arange(n)[::-1].copy(), rng.permutation(n)]


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_measures(zoo_graph, index_dtype):
    cupy = pytest.importorskip("cupy")
    view = matchwood.graph(zoo_graph, index_dtype=index_dtype).undirected_pattern()
    if view.n == 0:
        return
    for place in orders(view.n):
        there = None if place is None else cupy.asarray(place.astype(index_dtype))
        found = engine.measure(on_gpu(view), there, NAMES)
        assert found == reference.measure(view, place, NAMES)


@pytest.mark.parametrize(
    "make", [lambda: grid(40, 41), lambda: rmat(11, 8), lambda: shuffled(star(5000))]
)
def test_larger(make):
    view = matchwood.graph(make()).undirected_pattern()
    for which in (NAMES, NAMES[:1], NAMES[3:]):
        found = engine.measure(on_gpu(view), None, which)
        assert found == pytest.approx(measured(view, which), rel=1e-12)


def measured(view, which):
    """As the reference, without its quadratic count."""
    at = np.arange(view.n)
    rows = np.repeat(at, np.diff(view.indptr))
    first = at.copy()
    np.minimum.at(first, rows, view.indices)
    front = np.cumsum(np.bincount(first, minlength=view.n)) - at
    answers = {
        "bandwidth": (at - first).max(),
        "profile": (at - first).sum(),
        "max_wavefront": front.max(),
        "rms_wavefront": np.sqrt((front.astype(float) ** 2).mean()),
    }
    return {name: answers[name] for name in which}


def test_public_functions():
    cupy = pytest.importorskip("cupy")
    A = ZOO["grid"]()
    G = matchwood.graph((cupy.asarray(A.indptr), cupy.asarray(A.indices)))
    perm = cupy.asarray(orders(G.n)[2])
    view = G.undirected_pattern()
    host = csr.View(view.indptr.get(), view.indices.get())
    place = np.argsort(perm.get())
    answer = reference.measure(host, place, NAMES)
    assert matchwood.bandwidth(G, perm) == answer["bandwidth"]
    assert matchwood.matrix_profile(G, perm) == answer["profile"]
    assert matchwood.max_wavefront(G, perm) == answer["max_wavefront"]
    assert matchwood.rms_wavefront(G, perm) == answer["rms_wavefront"]


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_permute(zoo_graph, index_dtype):
    G = matchwood.graph(zoo_graph, index_dtype=index_dtype)
    for view in (G.directed_pattern(), G.directed_weights()):
        for perm in orders(G.n)[1:]:
            perm = perm.astype(index_dtype)
            place = np.empty_like(perm)
            place[perm] = np.arange(G.n, dtype=index_dtype)
            expected = permute_reference.permute(view, perm, place)
            cupy = pytest.importorskip("cupy")
            found = permute_engine.permute(on_gpu(view), cupy.asarray(perm), cupy.asarray(place))
            for mine, theirs in zip(found, expected, strict=True):
                if theirs is None:
                    assert mine is None
                else:
                    assert mine.dtype == theirs.dtype
                    assert np.array_equal(mine.get(), theirs)


def test_permute_makes_a_matrix():
    cupy = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    A = ZOO["grid"]()
    perm = orders(A.shape[0])[2]
    B = matchwood.permute(sparse.csr_matrix(A), cupy.asarray(perm))
    assert np.array_equal(B.get().toarray(), A.toarray()[perm][:, perm])

"""Chains of preferences on the GPU: what is matched ahead is part of the greedy matching."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import disjoint, from_edges, grid, path, rmat, shuffled
from matchwood.gate import graph as csr
from matchwood.matching.greedy import reference
from matchwood.matching.suitor import gpu as suitor

pytestmark = pytest.mark.gpu

SEED = 7


def random_tree(n: int, levels: int):
    """Every vertex is joined to one before it, mostly to the last; weights are few."""
    rng = np.random.default_rng(SEED)
    ends = np.arange(1, n)
    back = np.where(rng.random(n - 1) < 0.8, 1, rng.integers(1, n, n - 1))
    return from_edges(n, ends, np.maximum(ends - back, 0), rng.integers(1, levels + 1, n - 1))


def ascending(n: int):
    """The last edge is the heaviest: the matching starts there and goes on one by one."""
    return from_edges(n, np.arange(n - 1), np.arange(1, n), np.arange(1, n))


def equal(n: int):
    """Vertices 0 and 1 are matched, then 2 and 3, and so on."""
    return from_edges(n, np.arange(n - 1), np.arange(1, n), np.ones(n - 1))


GRAPHS = {
    "path of equal weights": (lambda: equal(20_001), 20_000),
    "path": (lambda: path(20_001), 10_000),
    "ascending path": (lambda: ascending(5000), 5000),
    "shuffled paths": (lambda: shuffled(disjoint([path(n) for n in range(2, 90)]), isolated=9), 2),
    "tree": (lambda: random_tree(4000, 1), 1),
    "tree, few weights": (lambda: random_tree(4000, 3), 2),
    "grid": (lambda: grid(40, 41), 40),
    "rmat": (lambda: rmat(9, 6), 2),
}


@pytest.mark.parametrize("types", [(np.int32, np.float32), (np.int64, np.float64)],
                         ids=lambda types: f"{types[0].__name__}, {types[1].__name__}")  # fmt: skip
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_the_reference(name: str, types) -> None:
    import cupy

    make, least = GRAPHS[name]
    A = make()
    index_type, kind = types
    arrays = (A.indptr.astype(index_type), A.indices.astype(index_type), A.data.astype(kind))
    view = csr.View(*(cupy.asarray(array) for array in arrays))
    expected = reference.match(csr.View(*arrays), SEED, False)

    mate = cupy.full(view.n, -1, index_type)
    want, offer = cupy.zeros(view.n, kind), cupy.zeros(view.n, kind)
    suitor.match_ahead(view, mate, want, offer)
    ahead = mate.get()
    matched = ahead >= 0
    assert int(matched.sum()) >= least
    assert np.array_equal(ahead[matched], expected.mate[matched])
    assert np.array_equal(want.get() > 0, matched)
    assert np.array_equal(offer.get(), want.get())

    found = suitor.match(view, SEED, False)
    assert np.array_equal(found.mate.get(), expected.mate)
    assert found.weight == pytest.approx(expected.weight, rel=1e-12)

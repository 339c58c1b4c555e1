"""Short augmentations on the GPU: what the definition gives, bit for bit, in as many rounds."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import matchwood
from graphs import complete, disjoint, grid, rmat, shuffled, star
from matching_graphs import SEED, subnormal, two_hubs, weighted
from matchwood.gate import graph as csr
from matchwood.matching import weighted_matching
from matchwood.matching.augmented import reference

pytestmark = pytest.mark.gpu


LARGER = {
    "grid": lambda kind: weighted(grid(40, 41), kind, 1 << 20),
    "equal weights": lambda kind: weighted(grid(30, 41), kind, 1),
    "few weights": lambda kind: weighted(rmat(10, 8), kind, 3),
    "shuffled grid": lambda kind: weighted(shuffled(grid(30, 41), isolated=50), kind, 2),
    "rmat": lambda kind: weighted(rmat(11, 8), kind, 1 << 20),
    "star": lambda kind: weighted(star(5000, centre=4999), kind, 9),
    "two hubs": lambda kind: weighted(two_hubs(5000), kind, 1 << 20),
    "two hubs, few weights": lambda kind: weighted(two_hubs(5000), kind, 2),
    "complete graphs": lambda kind: weighted(disjoint([complete(60), complete(90)]), kind, 40),
    "subnormal weights": lambda kind: subnormal(weighted(grid(20, 20), kind, 9)),
}


@functools.cache
def expected_of(name, by_hash):
    return reference.match(view_of(LARGER[name](np.float64), np.int32), SEED, by_hash)


def view_of(A, index_dtype):
    return csr.View(
        A.indptr.astype(index_dtype), A.indices.astype(index_dtype), np.ascontiguousarray(A.data)
    )


@pytest.mark.parametrize("types", [(np.int32, np.float32), (np.int64, np.float64),
                                   (np.int32, np.float64), (np.int64, np.float32)],
                         ids=lambda types: f"{types[0].__name__}, {types[1].__name__}")  # fmt: skip
@pytest.mark.parametrize("name", LARGER)
def test_larger(name, types):
    cupy = pytest.importorskip("cupy")
    from matchwood.matching.augmented import gpu

    index_dtype, kind = types
    view = view_of(LARGER[name](kind), index_dtype)
    there = csr.View(*(cupy.asarray(array) for array in view))
    for by_hash in (True, False):
        expected = expected_of(name, by_hash)
        for _ in range(3):  # other schedules
            found = gpu.match(there, SEED, by_hash)
            assert found.mate.dtype == index_dtype
            assert np.array_equal(found.mate.get(), expected.mate)
            assert found.rounds == expected.rounds


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("name", ["grid", "rmat", "two hubs, few weights"])
def test_fewer_rounds(name, rounds):
    cupy = pytest.importorskip("cupy")
    from matchwood.matching.augmented import gpu

    view = view_of(LARGER[name](np.float32), np.int32)
    expected = reference.match(view, SEED, True, rounds=rounds)
    found = gpu.match(csr.View(*(cupy.asarray(array) for array in view)), SEED, True, rounds=rounds)
    assert np.array_equal(found.mate.get(), expected.mate)
    assert found.rounds == expected.rounds == rounds


def test_zoo(zoo_graph):
    cupy = pytest.importorskip("cupy")
    A = abs(zoo_graph)
    A.sum_duplicates()
    G = matchwood.graph(tuple(cupy.asarray(array) for array in (A.indptr, A.indices, A.data)))
    found = weighted_matching(G, method="augmented", rng=SEED)
    view = csr.View(*(array.get() for array in G.undirected_weights()))
    expected = reference.match(view, SEED, True)
    assert np.array_equal(found.mate.get(), expected.mate)
    assert found.weight == pytest.approx(expected.weight, rel=1e-12)
    assert found.rounds == expected.rounds

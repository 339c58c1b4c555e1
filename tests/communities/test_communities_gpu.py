"""Communities on the GPU: the same labels as by definition, or as on CPU threads, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matchwood
from graphs import ZOO, complete, disjoint, grid, rmat, shuffled, star
from matchwood.primitives.contract import contract
from matchwood.primitives.number import number_labels

pytestmark = pytest.mark.gpu

FUNCTIONS: dict[str, Any] = {
    "moving": lambda G, **o: matchwood.louvain(G, method="moving", **o),
    "joining": lambda G, **o: matchwood.louvain(G, method="joining", **o),
    "leiden": matchwood.leiden,
    "labels": matchwood.label_propagation,
}
NEGATIVE = ("mixed signs", "skew-symmetric")
LARGER = {
    "grid": lambda: grid(150, 160, 1.0),
    "shuffled grid": lambda: shuffled(grid(150, 160), isolated=50),
    "rmat 15": lambda: rmat(15, 8),  # rows of every class, hubs among them
    "star": lambda: star(30_000),
    "cliques": lambda: shuffled(disjoint([complete(40)] * 60)),
    "dense": lambda: complete(700),
    "mesh": lambda: matchwood.generators.mesh((20, 20, 20)),
    "two hubs": lambda: disjoint([star(3000), star(5000), rmat(11, 8)]),
}


def on_gpu(A: Any, index_dtype: Any = np.int32) -> Any:
    cupy = pytest.importorskip("cupy")
    A.sum_duplicates()
    data = A.data.astype(np.float64) if A.dtype.kind in "bi" else A.data
    arrays = (cupy.asarray(A.indptr), cupy.asarray(A.indices), cupy.asarray(data))
    return matchwood.graph(arrays, index_dtype=index_dtype)


def assert_same(found: Any, expected: Any) -> None:
    assert np.array_equal(found.labels.get(), expected.labels)
    for field in ("count", "modularity", "levels", "rounds"):
        assert getattr(found, field) == getattr(expected, field), field


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zoo(name: str) -> None:
    for graph, make in ZOO.items():
        if graph in NEGATIVE:
            continue
        A = make()
        expected = FUNCTIONS[name](A, rng=3, engine="reference")
        for index_dtype in (np.int32, np.int64):
            assert_same(FUNCTIONS[name](on_gpu(A, index_dtype), rng=3), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("graph", LARGER)
def test_larger(name: str, graph: str) -> None:
    A = LARGER[graph]()
    options = {"max_rounds": 60} if name == "labels" else {}
    expected = FUNCTIONS[name](A, **options)
    G = on_gpu(A)
    for _ in range(3):  # other schedules
        assert_same(FUNCTIONS[name](G, **options), expected)


def test_careful_rounds_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    from matchwood.communities.propagation import gpu, reference

    for module in (gpu, reference):
        monkeypatch.setattr(module, "SPLIT_ROUNDS", 0)
    for graph in ("grid", "bipartite", "cycle", "few weights", "rmat", "star"):
        A = ZOO[graph]()
        expected = matchwood.label_propagation(A, engine="reference")
        assert_same(matchwood.label_propagation(on_gpu(A)), expected)


def test_layers() -> None:
    from matchwood.communities.propagation import layer
    from matchwood.gate import graph as csr

    for A in (ZOO["rmat"](), grid(30, 31)):
        options = {"caller": "x", "max_rounds": 30, "tol": 0.0, "seed": 1}
        G = csr.as_graph(A, "x", weight=None)
        for gamma in (0.0, 1 / 16, 1.0):
            expected, rounds = layer(G, gamma, engine="reference", **options)
            found, taken = layer(G.on("gpu"), gamma, engine="gpu", **options)
            assert taken == rounds
            assert np.array_equal(found.get(), expected)


def test_checks_run_there() -> None:
    G = on_gpu(rmat(12, 6))
    matchwood.check.check_communities(G, matchwood.louvain(G))
    matchwood.check.check_communities(G, matchwood.leiden(G))
    found = matchwood.label_propagation(G)
    matchwood.check.check_label_propagation(G, found)
    matchwood.check.check_modularity(G, found.labels, found.modularity)
    small = on_gpu(abs(ZOO["few weights"]()))
    matchwood.check.check_communities(small, matchwood.louvain(small), replay="louvain")
    matchwood.check.check_label_propagation(small, matchwood.label_propagation(small), replay=True)
    with pytest.raises(matchwood.CheckFailed, match="of 121 vertices gain by moving"):
        matchwood.check.check_communities(small, np.arange(121))


def test_modularity_is_the_same_number() -> None:
    rng = np.random.default_rng(1)
    for graph in ("rmat", "self loops", "few weights", "only self loops", "no edges"):
        A = ZOO[graph]()
        labels = rng.integers(-9, 9, A.shape[0])
        expected = matchwood.modularity(A, labels)
        assert matchwood.modularity(on_gpu(A), labels) == expected
        assert matchwood.modularity(A, labels, engine="gpu") == expected


def test_contraction_and_numbers() -> None:
    rng = np.random.default_rng(3)
    for A in (rmat(12, 8), grid(40, 41), ZOO["no edges"]()):
        n = A.shape[0]
        count = max(1, n // 7)
        labels = rng.integers(0, count, n).astype(np.int32)
        inner = rng.integers(-(2**50), 2**50, n)
        for data in (None, np.ceil(1e5 * A.data).astype(np.int64)):
            arrays = (A.indptr, A.indices, data, labels, count)
            options: Any = {"loops": True, "inner": inner}
            expected = contract(*arrays, **options)
            found = contract(*arrays, **options, engine="gpu")
            assert all(map(np.array_equal, found, expected))
        cupy = pytest.importorskip("cupy")
        names = rng.integers(0, n, n).astype(np.int32)
        count, numbers = number_labels(names)
        again, there = number_labels(cupy.asarray(names))
        assert again == count
        assert np.array_equal(there.get(), numbers)


def test_input_is_not_changed() -> None:
    A = ZOO["rmat"]()
    G = on_gpu(A)
    for function in FUNCTIONS.values():
        function(G)
    assert np.array_equal(G.indices.get(), A.indices)
    assert np.array_equal(G.data.get(), A.data)

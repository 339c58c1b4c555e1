"""Orders that keep neighbours together: one order on every engine, checks, errors."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, grid, path, rmat, shuffled
from matchwood import check
from matchwood.ordering import (
    degree_order,
    hub_order,
    layered_label_propagation_order,
    locality_ordering,
    rabbit,
    rabbit_order,
    shingle_order,
)
from strategies import graphs
from support import REST, some

FEW = (1, 0.25, 0)  # layers
ORDERS: dict[str, tuple[Callable[..., Any], Callable[..., None] | None]] = {
    "shingle": (functools.partial(shingle_order, rng=3),
                lambda A, perm: check.check_shingle_order(A, perm, rng=3)),
    "degree": (degree_order, check.check_degree_order),
    "hub, sort": (hub_order, check.check_hub_order),
    "hub, cluster": (functools.partial(hub_order, method="cluster"),
                     functools.partial(check.check_hub_order, method="cluster")),
    "hub, group": (functools.partial(hub_order, method="group"),
                   functools.partial(check.check_hub_order, method="group")),
    "rabbit": (rabbit_order, None),
    "llp": (functools.partial(layered_label_propagation_order, gammas=FEW, rng=5), None),
}  # fmt: skip


@pytest.fixture(autouse=True)
def teams_for_small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get the team that is asked for."""
    monkeypatch.setattr(rabbit, "LONE_ENTRIES", 0)


@pytest.mark.parametrize("name", some(ZOO))
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    for order, verify in ORDERS.values():
        expected = order(A, engine="reference")
        assert expected.dtype == np.int32 or A.indices.dtype == np.int64
        if verify is not None:
            verify(A, expected)
        for threads in (1, 2, 3, 7):
            assert np.array_equal(order(A, threads=threads), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("which", ORDERS)
def test_the_gpu_gives_the_same(zoo_graph: sp.csr_array, which: str) -> None:
    order = ORDERS[which][0]
    assert np.array_equal(order(zoo_graph, engine="gpu"), order(zoo_graph))


@pytest.mark.gpu
def test_the_gpu_gives_the_same_on_larger_graphs() -> None:
    for A in (shuffled(grid(60, 70)), shuffled(rmat(12, 8)), path(40_000)):
        for order, _ in ORDERS.values():
            assert np.array_equal(order(A, engine="gpu"), order(A))


@pytest.mark.slow
@given(graphs(max_n=30, max_m=80))
def test_random_graphs(A: sp.csr_array) -> None:
    for order, _ in ORDERS.values():
        assert np.array_equal(order(A, threads=2), order(A, engine="reference"))
    check.check_rabbit_order(A, locality_ordering(A, "rabbit"))


@pytest.mark.slow
@pytest.mark.parametrize("rest", REST)
def test_results_are_right(rest: bool) -> None:
    for name in list(ZOO)[rest::2]:
        results_are_right(ZOO[name]())


def results_are_right(A: sp.csr_array) -> None:
    found = locality_ordering(A, "rabbit")
    check.check_rabbit_order(A, found)
    check.check_gaps(A, found.before)
    check.check_gaps(A, found.after, found.perm)
    assert np.array_equal(found.perm, rabbit_order(A))
    if A.shape[0] < 200:
        check.check_layered_order(A, locality_ordering(A, "llp"))


def test_gaps_of_shuffled_graphs() -> None:
    """Neighbours lie close: the numbers of the documentation."""
    for A, most in ((grid(150, 150), 3.3), (matchwood.generators.mesh((20, 20, 20)), 2.7)):
        G = matchwood.graph(shuffled(sp.csr_array(A)))
        count = G.nnz - G.n
        assert matchwood.log_gap(G, rabbit_order(G)) / count < most


def test_refined_orders() -> None:
    A = shuffled(grid(12, 12))
    for method in ("rabbit", "shingle", "llp", "degree", "hub"):
        plain = locality_ordering(A, method)
        found = locality_ordering(A, method, refine="log_gap", fraction=1.0)
        assert found.after.log_gap < plain.after.log_gap
        assert found.counters["kept"] > 0
        assert found.tree is None
        assert found.layers is None
        assert {"order", "refine", "measure"} == set(found.seconds)


def spoiled(perm: np.ndarray) -> list[np.ndarray]:
    swapped, repeated = perm.copy(), perm.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    repeated[0] = repeated[1]
    return [swapped, repeated, perm[:-1], np.append(perm, 0)]


def test_the_checks_find_every_fault() -> None:
    A = shuffled(rmat(6, 4))
    for order, verify in ORDERS.values():
        if verify is not None:
            for wrong in spoiled(order(A)):
                with pytest.raises(matchwood.CheckFailed):
                    verify(A, wrong)
    for method, verify in (
        ("rabbit", check.check_rabbit_order),
        ("llp", check.check_layered_order),
    ):
        found = locality_ordering(A, method)
        for wrong in spoiled(found.perm):
            with pytest.raises(matchwood.CheckFailed):
                verify(A, dataclasses.replace(found, perm=wrong))
        with pytest.raises(TypeError, match="answer must be a LocalityOrdering"):
            verify(A, found.perm)
    with pytest.raises(TypeError, match="perm must hold integers"):
        check.check_degree_order(A, degree_order(A).astype(float))


def test_wrong_trees_are_seen() -> None:
    A = shuffled(grid(6, 7))
    found = locality_ordering(A, "rabbit")
    rng = np.random.default_rng(0)
    for name in ("parent", "round"):
        for _ in range(40):
            array = getattr(found.tree, name).copy()
            v = rng.integers(array.size)
            array[v] = (array[v] + rng.integers(1, 5)) % array.size
            tree = dataclasses.replace(found.tree, **{name: array})
            with pytest.raises(matchwood.CheckFailed, match="rabbit order"):
                check.check_rabbit_order(A, dataclasses.replace(found, tree=tree))


def test_wrong_layers_are_seen() -> None:
    A = shuffled(grid(6, 7))
    found = locality_ordering(A, "llp")
    turned = dataclasses.replace(found.layers, labels=found.layers.labels[::-1])
    outside = dataclasses.replace(found.layers, labels=found.layers.labels + 100)
    for layers, message in ((turned, "smaller log_gap"), (outside, "labels must be vertices")):
        with pytest.raises(matchwood.CheckFailed, match=message):
            check.check_layered_order(A, dataclasses.replace(found, layers=layers))


def test_layers_are_replayed() -> None:
    """Layers that fit together and are not those of label propagation; of another seed too."""
    A = shuffled(grid(6, 7))
    found = locality_ordering(A, "llp")
    with pytest.raises(matchwood.CheckFailed, match="has label"):
        check.check_layered_order(A, found, rng=1)
    n = A.shape[0]
    alone = dataclasses.replace(found.layers, labels=np.tile(np.arange(n), (12, 1)))
    gammas = (*(2.0**-k for k in range(11)), 0.0)  # one log_gap: as they came
    order = dataclasses.replace(alone, gammas=gammas)
    whole = dataclasses.replace(found, perm=np.arange(n), layers=order)
    with pytest.raises(matchwood.CheckFailed, match="vertex 0 has label 0 in layer 0, not"):
        check.check_layered_order(A, whole)
    check.check_layered_order(A, whole, replay=False)
    turned = dataclasses.replace(whole, perm=np.arange(n)[::-1])
    with pytest.raises(matchwood.CheckFailed, match="has place 0, not"):
        check.check_layered_order(A, turned, replay=False)
    rounds = (found.layers.rounds[0] + 1, *found.layers.rounds[1:])
    late = dataclasses.replace(found.layers, rounds=rounds)
    with pytest.raises(matchwood.CheckFailed, match=r"layer 0 took \d+ rounds, not"):
        check.check_layered_order(A, dataclasses.replace(found, layers=late))


def test_bad_arguments() -> None:
    A = path(4)
    for call, error, message in [
        (lambda: hub_order(A, method="x"), ValueError, "hub_order: method must be one of 'sort'"),
        (lambda: locality_ordering(A, "x"), ValueError, "locality_ordering: method must be one of"),
        (lambda: locality_ordering(A, refine="x"), ValueError, "refine must be one of None"),
        (lambda: locality_ordering(A, refine="log_gap", fraction=0.0), ValueError,
         "locality_ordering: fraction must be above 0"),
        (lambda: locality_ordering(A, rng="x"), TypeError, "locality_ordering: rng must be an int"),
        (lambda: shingle_order(A, rng=-1), ValueError, "shingle_order: rng must lie in 0"),
        (lambda: shingle_order(A, rng=1.5), TypeError, "shingle_order: rng must be an integer"),
        (lambda: layered_label_propagation_order(A, gammas=(-1,)), ValueError,
         "layered_label_propagation_order: gammas must be finite and at least 0, got -1"),
        (lambda: layered_label_propagation_order(A, gammas=(float("nan"),)), ValueError,
         "gammas must be finite"),
        (lambda: layered_label_propagation_order(A, gammas=()), ValueError, "at least one number"),
        (lambda: layered_label_propagation_order(A, gammas=1.0), TypeError, "a sequence"),
        (lambda: rabbit_order(sp.csr_array((2, 3))), ValueError, "rabbit_order: .*square"),
        (lambda: rabbit_order(A, threads=0), ValueError, "threads"),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            call()


def test_yes_or_no() -> None:
    A = shuffled(grid(5, 6))
    found = locality_ordering(A, "rabbit")
    assert check.is_rabbit_order(A, found)
    assert not check.is_rabbit_order(grid(5, 6), found)
    assert check.is_degree_order(A, degree_order(A))
    assert not check.is_degree_order(A, np.arange(30))


def test_the_best_of_the_cheap_orders(engine, monkeypatch):
    """The one with the smallest log gap, of the whole graph or of a sample."""
    whole = sp.diags_array([np.ones(400)] * 9, offsets=range(-4, 5), shape=(400, 400)).tocsr()
    mixed = matchwood.permute(whole, np.random.default_rng(1).permutation(400))
    for B, wanted in ((whole, "natural"), (mixed, "rabbit")):
        found = locality_ordering(B, "auto", engine=engine)
        tried = found.counters["tried"]
        assert found.counters["method"] == wanted == min(tried, key=tried.get)
        assert found.after.log_gap == tried[wanted]
        assert set(tried) == {"natural", "rabbit", "shingle", "hub", "degree"}
        monkeypatch.setattr("matchwood.ordering.locality.SAMPLE", 100)
        part = locality_ordering(B, "auto", engine=engine)
        assert part.counters["method"] == wanted
        assert part.counters["tried"][wanted] < tried[wanted]
        assert np.array_equal(part.perm, found.perm)
        monkeypatch.undo()
    with pytest.raises(ValueError, match="hub must be one of"):
        locality_ordering(whole, "hub", hub="best")
    empty = locality_ordering(sp.csr_array((0, 0)), "auto")
    assert len(empty.perm) == 0

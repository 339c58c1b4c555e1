"""Factors on simulated devices: the same arrays as everywhere, whatever the devices and lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, grid, rmat, star
from matching_graphs import weighted
from matchwood import Devices, EngineUnavailable, OutOfMemory
from matchwood.engines.devices import plan as plans
from simulated_devices import simulated
from strategies import graphs
from support import looped

PLENTY = 1 << 30
SHAPES = list(itertools.product((1, 2, 3, 4), (1, 3, 5, 10, 40), (0, 1, 4, 16)))


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch):
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)


def on(A, n, devices=1, memory=PLENTY, options=None, **factor):
    with simulated(memory * devices):
        engine = Devices((0,) * devices, memory=memory, **(options or {}))
        return matchwood.degree_factor(A, n, engine=engine, **factor)


def assert_same(found, expected):
    assert found.neighbours.dtype == expected.neighbours.dtype
    assert found.weights.dtype == expected.weights.dtype
    np.testing.assert_array_equal(found.neighbours, expected.neighbours)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert (found.rounds, found.maximal) == (expected.rounds, expected.maximal)


CASES = [
    {"n": 2}, {"n": 1, "rounds": None, "ties": "index"}, {"n": 3, "uncharged": 2, "rng": 5},
    {"n": 2, "rounds": None, "period": 1}, {"n": 2, "directed": True, "rounds": None},
]  # fmt: skip


@pytest.mark.slow
@looped("name", ZOO)
def test_zoo(name):
    """Shapes of devices, batches and lists in turn, with the arguments of the factor in turn."""
    assert_all_shapes(name, SHAPES[list(ZOO).index(name) % 7 :: 7])


@pytest.mark.slow
@looped("name", ZOO)
def test_zoo_in_every_shape(name):
    assert_all_shapes(name, SHAPES)


def assert_all_shapes(name, shapes):
    G = matchwood.graph(ZOO[name]())
    expected = [matchwood.degree_factor(G, **case) for case in CASES]
    for turn, (devices, batches, lists) in enumerate(shapes):
        case = CASES[turn % len(CASES)]
        found = on(G, devices=devices, options={"batches": batches, "lists": lists}, **case)
        try:
            assert_same(found, expected[turn % len(CASES)])
        except AssertionError as error:
            error.add_note(f"{devices} devices, {batches} batches, lists of {lists}, {case}")
            raise


@pytest.mark.slow
@given(
    graphs(), st.integers(1, 4), st.sampled_from((None, 1, 3, 10)),
    st.sampled_from(("auto", 0, 1, 4)), st.integers(1, 3), st.sampled_from(("hash", "index")),
    st.booleans(),
)  # fmt: skip
def test_random_graphs(A, devices, batches, lists, n, ties, directed):
    G = matchwood.graph(A)
    case = {"n": n, "ties": ties, "directed": directed, "rounds": None}
    expected = matchwood.degree_factor(G, engine="reference", **case)
    found = on(G, devices=devices, options={"batches": batches, "lists": lists}, **case)
    assert_same(found, expected)


def test_long_lists_send_less():
    A = weighted(rmat(10, 16), np.float32)
    shares = []
    for lists in (2, 4, 8, 16, 32):
        found = on(A, 2, options={"batches": 3, "lists": lists})
        assert_same(found, matchwood.degree_factor(A, 2))
        shares.append(found.stats.graph_sizes)
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 1.1
    everything = on(A, 2, options={"lists": 0})
    assert everything.stats.graph_sizes == everything.rounds


def test_least_memory():
    A = weighted(rmat(8, 6), np.float32)
    with pytest.raises(OutOfMemory, match="degree_factor: memory of at least") as told:
        on(A, 2, memory=1)
    least = int(str(told.value).split(" bytes")[0].rpartition(" ")[2].replace(",", ""))
    found = on(A, 2, memory=least)
    assert_same(found, matchwood.degree_factor(A, 2))
    assert max(found.stats.memory) <= least


def test_greedy_has_no_such_engine():
    with pytest.raises(EngineUnavailable, match="no engine for Devices"):
        on(grid(4, 4), 2, method="greedy")


def test_awkward():
    for A in (star(200), complete(40), grid(15, 15, 1.0)):
        for devices, lists in itertools.product((1, 4), (1, 3, "auto")):
            found = on(A, 2, devices, options={"lists": lists}, rounds=None)
            assert_same(found, matchwood.degree_factor(A, 2, rounds=None))
            assert found.stats.rounds[0].entries == A.nnz

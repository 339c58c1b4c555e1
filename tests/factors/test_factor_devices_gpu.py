"""Factors on CUDA's devices, with partitions on one of them: the same arrays as everywhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import matchwood
from graphs import ZOO, complete, grid, rmat, star
from matching_graphs import weighted
from matchwood import Devices
from matchwood.engines.devices import plan as plans
from simulated_devices import simulated

pytestmark = pytest.mark.gpu

CASES = [
    {"n": 2}, {"n": 1, "rounds": None, "ties": "index"}, {"n": 3, "uncharged": 2, "rng": 5},
    {"n": 2, "directed": True, "rounds": None},
]  # fmt: skip
SHAPES = list(itertools.product((1, 2, 4), (1, 3, 10), (0, 1, 4, 16)))


def on(A, devices=1, options=None, **factor):
    engine = Devices((0,) * devices, **(options or {}))
    return matchwood.degree_factor(A, engine=engine, **factor)


def assert_same(found, expected):
    np.testing.assert_array_equal(found.neighbours, expected.neighbours)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert (found.rounds, found.maximal) == (expected.rounds, expected.maximal)


@pytest.mark.parametrize(("place", "name"), list(enumerate(ZOO)))
def test_zoo(place, name, monkeypatch):
    """Each graph in a third of all shapes, the next one in others."""
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)
    plain = ZOO[name]()
    G = matchwood.graph(plain)
    expected = [matchwood.degree_factor(G, engine="cpu", **case) for case in CASES]
    for turn in range(place % 3, len(SHAPES), 3):
        devices, batches, lists = SHAPES[turn]
        case = turn % len(CASES)
        options = {"batches": batches, "lists": lists}
        A = (G, plain)[turn % 2]
        assert_same(on(A, devices, options, **CASES[case]), expected[case])


def test_larger():
    for A in (rmat(12, 16), grid(90, 91), star(9000), complete(300)):
        for kind in (np.float32, np.float64):
            G = matchwood.graph(weighted(A, kind))
            for case in CASES:
                expected = matchwood.degree_factor(G, engine="cpu", **case)
                for devices, lists in ((1, "auto"), (1, 2), (3, 4)):
                    options = {"batches": 5, "lists": lists}
                    assert_same(on(G, devices, options, **case), expected)


def test_the_same_travels_as_in_the_simulation():
    A = weighted(rmat(12, 16), np.float32)
    for devices, lists in itertools.product((1, 3), (2, 16)):
        engine = Devices((0,) * devices, batches=5, lists=lists, stats=True)
        found = matchwood.degree_factor(A, 2, engine=engine).stats
        with simulated(1 << 30):
            told = matchwood.degree_factor(A, 2, engine=engine).stats
        for one, other in zip(found.rounds, told.rounds, strict=True):
            assert (one.entries, one.rows) == (other.entries, other.rows)
            assert one.words_exchanged == other.words_exchanged

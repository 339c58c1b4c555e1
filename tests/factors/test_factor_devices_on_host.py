"""The GPU engine of factors on `Devices`, with its kernels compiled for the host."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import beyond_on_host
import matchwood
from beyond_on_host import on_host
from graphs import grid, rmat, star
from matching_graphs import weighted
from matchwood import Devices
from matchwood.engines.devices import plan as plans
from matchwood.factors.rounds.devices import gpu
from simulated_devices import simulated

pytestmark = pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")

CASES = [
    {"n": 2}, {"n": 1, "rounds": None, "ties": "index"}, {"n": 3, "uncharged": 2, "rng": 5},
    {"n": 2, "directed": True, "rounds": 3},
]  # fmt: skip
GRAPHS = [rmat(4, 4), star(20), grid(3, 4)]


@pytest.mark.slow
def test_same_factors(monkeypatch):
    """Lists too short and long enough; prepared or not; threads in both orders."""
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)
    cases = itertools.product(GRAPHS, CASES)
    for k, (pattern, case) in enumerate(cases):
        A = weighted(pattern, np.float32, 3 if k % 3 == 0 else 1 << 20)
        G = matchwood.graph(A) if k % 2 else A
        expected = matchwood.degree_factor(A, **case)
        options = {"batches": 1 + k % 3, "lists": (1, 3, 0, 8)[k % 4], "stats": k % 5 == 0}
        engine = Devices((0,) * (1 + k % 3), memory=1 << 30, **options)
        with on_host(gpu, last_first=k % 4 > 1):
            found = matchwood.degree_factor(G, engine=engine, **case)
        np.testing.assert_array_equal(found.neighbours, expected.neighbours)
        np.testing.assert_array_equal(found.weights, expected.weights)
        assert (found.rounds, found.maximal) == (expected.rounds, expected.maximal)
        with simulated(1 << 32):
            told = matchwood.degree_factor(G, engine=engine, **case).stats
        for one, other in zip(found.stats.rounds, told.rounds, strict=True):
            counts = ("pointed", "entries", "rows", "words_exchanged")
            assert [getattr(one, c) for c in counts] == [getattr(other, c) for c in counts]

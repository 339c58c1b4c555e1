"""The GPU engine of components on `Devices`, with its kernels compiled for the host."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import beyond_on_host
import matchwood
from beyond_on_host import on_host
from graphs import disjoint, from_edges, grid, path, rmat, star
from matchwood import Devices
from matchwood.components.connected.devices import gpu
from matchwood.engines.devices import plan as plans
from simulated_devices import simulated

pytestmark = pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")

GRAPHS = [
    rmat(4, 4), star(20, centre=19), disjoint([grid(3, 4), path(4), star(5)]),
    from_edges(30, [24], [25], [1.0]), rmat(4, 2, symmetric=False),
]  # fmt: skip


@pytest.mark.slow
def test_same_labels(monkeypatch):
    """Prepared, so that few rows travel, and not; threads in both orders."""
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)
    for k, (A, devices) in enumerate(itertools.product(GRAPHS, (1, 3))):
        for G in (A, matchwood.graph(A)):
            expected = matchwood.connected_components(G)
            engine = Devices((0,) * devices, memory=1 << 30, batches=3, stats=k % 3 == 0)
            with on_host(gpu, last_first=k % 2 == 1):
                found = matchwood.connected_components(G, engine=engine)
            assert found.count == expected.count
            np.testing.assert_array_equal(found.labels, expected.labels)
            with simulated(1 << 32):
                told = matchwood.connected_components(G, engine=engine).stats
            assert found.stats.rounds[0].entries == told.rounds[0].entries
            assert found.stats.words_exchanged == told.words_exchanged

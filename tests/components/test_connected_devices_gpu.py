"""Connected components on CUDA's devices: the same labels as everywhere, and little travels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import matchwood
from graphs import grid, rmat, shuffled
from matchwood import Devices
from matchwood.engines.devices import plan as plans
from simulated_devices import simulated

pytestmark = pytest.mark.gpu


def on(A, devices=1, **options):
    return matchwood.connected_components(A, engine=Devices((0,) * devices, **options))


def test_zoo(zoo_graph, monkeypatch):
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)
    G = matchwood.graph(zoo_graph)
    expected = matchwood.connected_components(G, engine="reference")
    for devices, batches, A in itertools.product((1, 2, 4), (None, 3, 40), (zoo_graph, G)):
        found = on(A, devices, batches=batches)
        assert found.count == expected.count
        np.testing.assert_array_equal(found.labels, expected.labels)


def test_larger():
    for A in (rmat(13, 16), shuffled(grid(150, 150), isolated=99)):
        G = matchwood.graph(A)
        expected = matchwood.connected_components(G, engine="cpu")
        for devices in (1, 3):
            engine = Devices((0,) * devices, batches=5)
            found = matchwood.connected_components(G, engine=engine)
            np.testing.assert_array_equal(found.labels, expected.labels)
            with simulated(1 << 30):
                told = matchwood.connected_components(G, engine=engine).stats
            assert found.stats.rounds[0].entries == told.rounds[0].entries

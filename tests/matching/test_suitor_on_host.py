"""The suitor kernels of the GPU, compiled for the host: both ways to find a first edge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import beyond_on_host
import matchwood
from beyond_on_host import Array, library
from graphs import complete, rmat, star
from matching_graphs import weighted
from matchwood.matching.suitor import gpu

pytestmark = pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")

GRAPHS = {
    "rmat": weighted(rmat(5, 10), np.float32),
    "few weights": weighted(rmat(5, 10), np.float32, 3),
    "complete": weighted(complete(40), np.float32, 5),
}


def on_host(array):
    return np.ascontiguousarray(array).view(Array)


def mates(view, by_hash, name, kernels):
    n = view.n
    mate, giants = on_host(np.full(n, -1, np.int32)), on_host(np.zeros(4, np.int32))
    want, offer = on_host(np.zeros(n, np.float32)), on_host(np.zeros(n, np.float32))
    count, rows = on_host(np.zeros(1, np.uint64)), [on_host(array) for array in view]
    kernels.list_giants(n, (n, rows[0], giants, count))
    arguments = (n, *rows, 0, by_hash, giants, count, mate, want, offer)
    getattr(kernels, name)(None, arguments, grid=2)
    return np.asarray(mate)


@pytest.mark.slow
def test_a_giant():
    kernels = library(gpu.SOURCE, (("I", "int32"), ("W", "float32")))
    G = matchwood.graph(weighted(star(gpu.GIANT_ROW + 9), np.float32, 9))
    expected = matchwood.weighted_matching(G, method="dominant").mate
    for far in ("", "_far"):
        found = mates(G.undirected_weights(), True, f"make_proposals8{far}", kernels)
        np.testing.assert_array_equal(found, expected)


def test_same_mates():
    kernels = library(gpu.SOURCE, (("I", "int32"), ("W", "float32")))
    turn = itertools.count()
    for name, A in GRAPHS.items():
        G = matchwood.graph(A)
        for ties in ("hash", "index"):
            expected = matchwood.weighted_matching(G, method="dominant", ties=ties).mate
            for width, far in itertools.product(gpu.WIDTHS, ("", "_far")):
                kernels.set_order(next(turn) % 2)
                kernel = f"make_proposals{width}{far}"
                found = mates(G.undirected_weights(), ties == "hash", kernel, kernels)
                np.testing.assert_array_equal(found, expected, f"{name}, {ties}, {kernel}")

"""The suitor kernels of the GPU, compiled for the host: with rows and with lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import beyond_on_host
import matchwood
from beyond_on_host import Array, library
from graphs import complete, disjoint, grid, path, rmat, shuffled, star
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
    found, _, _ = by_lists(G.undirected_weights(), True, 8, "int32")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
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


def by_lists(view, by_hash, width, index_type):
    """Mates, and how many vertices tried all that was listed."""
    n = view.n
    kernels = library(gpu.SOURCE, (("I", index_type), ("F", "float32")))
    rows = [on_host(array.astype(index_type)) for array in view[:2]] + [on_host(view.data)]
    words, lists = (on_host(np.full(size, -1).view(np.uint64)) for size in (n, gpu.LISTED * n))
    words[:] = 0
    mate, giants = (on_host(np.full(size, -1, index_type)) for size in (n, 4))
    want, sums = on_host(np.zeros(n, np.float32)), on_host(np.zeros(2))
    count, rest = (on_host(np.zeros(1, np.uint64)) for _ in range(2))
    kernels.list_giants(n, (n, rows[0], giants, count))
    list_edges = getattr(kernels, f"list_first_edges{width}")
    list_edges(n * width, (n, *rows, 0, by_hash, lists))
    kernels.propose_from_lists(None, (n, 0, by_hash, lists, words, mate, rest), grid=2)
    the_rest = getattr(kernels, f"propose_the_rest{width}")
    the_rest(
        None, (*rows, 0, by_hash, lists, mate, rest, giants, count, words, want), grid=2
    )  # fmt: skip
    kernels.read_mates(None, (n, words, mate, sums), grid=2)
    return np.asarray(mate), float(sums.sum()) / 2, int(rest[0])


LISTED_GRAPHS = {
    **GRAPHS,
    "isolated vertices": weighted(shuffled(disjoint([path(5), star(7)]), isolated=30), np.float32),
    "rows shorter than lists": weighted(path(70), np.float32),
    "few weights in short rows": weighted(grid(9, 8), np.float32, 2),
    "one row of a whole warp": weighted(star(200), np.float32, 2),
    "many ties": weighted(rmat(8, 8), np.float32, 2),
    "long rows": weighted(complete(150), np.float32),
}


@pytest.mark.slow
@pytest.mark.parametrize("index_type", ["int32", "int64"])
def test_lists_give_the_same_mates(index_type):
    kernels = library(gpu.SOURCE, (("I", index_type), ("F", "float32")))
    turn, left = itertools.count(), 0
    for name, A in LISTED_GRAPHS.items():
        G = matchwood.graph(A)
        for ties, width in itertools.product(("hash", "index"), gpu.WIDTHS):
            expected = matchwood.weighted_matching(G, method="dominant", ties=ties)
            kernels.set_order(next(turn) % 2)
            found, weight, rest = by_lists(
                G.undirected_weights(), ties == "hash", width, index_type
            )
            np.testing.assert_array_equal(found, expected.mate, f"{name}, {ties}, {width}")
            assert weight == pytest.approx(expected.weight)
            left += rest
    assert left > 0  # rows were read again


@pytest.mark.slow
def test_a_list_has_the_first_edges_of_its_row():
    kernels = library(gpu.SOURCE, (("I", "int32"), ("F", "float32")))
    for few in (0, 5):
        A = weighted(complete(150), np.float32, few) if few else weighted(rmat(7, 12), np.float32)
        view = matchwood.graph(A).undirected_weights()
        rows = [on_host(array) for array in view]
        for width in gpu.WIDTHS:
            lists = on_host(np.zeros(gpu.LISTED * view.n, np.uint64))
            list_edges = getattr(kernels, f"list_first_edges{width}")
            list_edges(view.n * width, (view.n, *rows, 0, False, lists))
            for u, listed in enumerate(np.asarray(lists).reshape(view.n, -1)):
                row = slice(view.indptr[u], view.indptr[u + 1])
                order = np.lexsort((view.indices[row], -view.data[row]))[: gpu.LISTED]
                expected = np.zeros(gpu.LISTED, np.uint64)
                bits = view.data[row][order].view(np.uint32).astype(np.uint64) << np.uint64(32)
                expected[: order.size] = bits | view.indices[row][order].astype(np.uint64)
                if few:  # of equal weights the order of edges decides, which is not that of columns
                    listed, expected = (a >> np.uint64(32) for a in (listed, expected))
                np.testing.assert_array_equal(listed, expected)

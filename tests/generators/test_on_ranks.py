"""Graphs made by all ranks together are those that one machine makes."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from matchwood import dist, generators
from matchwood.errors import EngineUnavailable
from spread_graphs import blocks, compare, tried, whole

GRIDS = ("1x1", "2x1", "2x3", "4x4")
CASES = [
    ("rmat", (8,), {"weights": "uniform"}),
    ("rmat", (7, 5.5), {"directed": True, "permute": False, "rng": 3}),
    ("rmat", (0,), {}),
    ("erdos_renyi", (100, 400), {"weights": "integers", "dtype": np.float64}),
    ("erdos_renyi", (50, 70), {"directed": True}),
    ("dense_random", (60, 0.3), {}),
    ("dense_random", (40, 0.2), {"directed": True, "weights": "uniform"}),
    ("stencil", ([[0, -1, 0.5], [-2, 4, -1], [0, 0, 3]], (9, 7)), {}),
    ("grid", ((11, 13),), {}),
    ("grid", ((4, 5, 6),), {"dtype": np.float64}),
    ("grid", ((0, 3),), {}),
    ("mesh", ((5, 6, 7),), {}),
    ("aniso", (1, (8, 9)), {}),
    ("aniso", (3, (8, 9)), {"dtype": np.float32}),
    ("path", (50,), {}),
    ("path", (1,), {}),
    ("path", (0,), {}),
    ("cycle", (3,), {}),
    ("cycle", (40,), {}),
    ("star", (30,), {}),
    ("star", (0,), {}),
    ("complete", (17,), {}),
    ("mycielskian", (5,), {}),
    ("random_geometric", (300,), {"degree": 8, "weights": "distance"}),
    ("random_geometric", (200, 0.2), {"dim": 3, "weights": "integers"}),
    ("random_geometric", (0, 0.2), {}),
    ("delaunay", (200,), {"weights": "distance", "dtype": np.float64}),
]


@pytest.mark.parametrize(("name", "args", "options"), CASES)
def test_the_graph_is_that_of_one_machine(name, args, options):
    make = getattr(generators, name)
    expected = whole(matchwood.graph(make(*args, **options)))
    for k, grid in enumerate(GRIDS):
        order = ("given", "hashed")[k % 2]
        ranks = np.prod([int(side) for side in grid.split("x")])
        found = dist.run(
            lambda comm, grid=grid, order=order: blocks(
                make(*args, **options, comm=comm, grid=grid, order=order)
            ),
            int(ranks),
        )
        compare(found, expected)


def test_every_generator_of_graphs_takes_ranks():
    import inspect

    without = {"packets", "random_points", "random_weights"}
    for name in generators.__all__:
        takes = "comm" in inspect.signature(getattr(generators, name)).parameters
        assert takes is (name not in without), name


@pytest.mark.slow
def test_many_batches(monkeypatch):
    from matchwood.gate.distributed import collecting
    from matchwood.generators import result

    monkeypatch.setattr(result, "EDGES", 50)
    monkeypatch.setattr(collecting, "BATCH", 100)
    for name, args, options in [CASES[0], CASES[5], CASES[11], CASES[23]]:
        make = getattr(generators, name)
        expected = whole(matchwood.graph(make(*args, **options)))
        compare(dist.run(lambda comm, make=make, args=args, options=options: blocks(
            make(*args, **options, comm=comm)), 6), expected)  # fmt: skip


def test_numbers_with_structure_are_spread_by_auto():
    """Without its permutation R-MAT has its heavy vertices in front, and rank 0 most entries."""

    def largest(comm, order):
        G = generators.rmat(12, permute=False, comm=comm, order=order)
        counts = comm.allgather(np.array([G.directed_pattern().nnz]))
        return G.order is not None, float(counts.max() / counts.mean())

    given = dist.run(largest, 16, "given")[0]
    auto = dist.run(largest, 16, "auto")[0]
    assert not given[0]
    assert given[1] > 1.5
    assert auto[0]
    assert auto[1] < 1.3


def test_wrong_arguments_are_the_same_error_on_all_ranks():
    def scales(comm):
        return tried(lambda: generators.rmat(5 + (comm.rank == 2), comm=comm))

    def kinds(comm):
        return tried(lambda: generators.rmat("5" if comm.rank == 1 else 5, comm=comm))

    def weights(comm):
        return tried(lambda: generators.rmat(5, weights="heavy", comm=comm))

    def grids(comm):
        return tried(lambda: generators.grid((3, 3), comm=comm, grid="2x2"))

    for work, text in [
        (scales, "ValueError: rmat: arguments must be the same on all ranks"),
        (kinds, "TypeError: rmat: scale must be an integer"),
        (weights, "ValueError: rmat: weights must be one of"),
        (grids, "ValueError: grid: grid must have as many places as ranks, 3, got 2x2"),
    ]:
        found = dist.run(work, 3)
        assert len(set(found)) == 1, found
        assert found[0].startswith(text)

    def reference(comm):
        with pytest.raises(EngineUnavailable):
            generators.path(5, engine="reference", comm=comm)
        return True

    assert all(dist.run(reference, 2))

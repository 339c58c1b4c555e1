"""Values of vertices on ranks: gathered and saved in the order of the vertices."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from matchwood import dist
from spread_graphs import GRIDS, tried
from support import REST


def vectors(comm, grid, n, kind, order="given", layout="stripes"):
    G = matchwood.distribute(
        (n, np.empty((0, 2), np.int64)), comm=comm, grid=grid, order=order, layout=layout
    )
    return G.vector((3 * G.ids + 1).astype(kind))


@pytest.mark.slow
@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("layout", ["stripes", "ranges"])
@pytest.mark.parametrize("order", ["given", "hashed"])
def test_gather_and_save(tmp_path, order, layout, rest):
    """On more than four ranks each layout and order has half of the grids."""
    turn = (layout == "ranges") + (order == "hashed") + rest
    for n in (0, 3, 50):
        for k, (R, C) in enumerate(GRIDS):
            if (k + turn) % 2 == 0 and R * C > 4:
                continue
            kind = (np.int32, np.float64, np.uint8)[k % 3]
            expected = (3 * np.arange(n) + 1).astype(kind)
            path = tmp_path / f"{n}-{k}.npy"

            def work(comm, kind=kind, path=path, R=R, C=C, n=n):
                vector = vectors(comm, f"{R}x{C}", n, kind, order, layout)
                vector.save(path)
                assert vector.n == n
                assert np.array_equal(vector.local, (3 * vector.ids + 1).astype(kind))
                last = comm.size - 1
                return vector.gather(), vector.gather(last), vector.gather(None), last

            for rank, (first, last, everywhere, end) in enumerate(dist.run(work, R * C)):
                assert np.array_equal(everywhere, expected)
                assert everywhere.dtype == kind
                assert (first is None) is (rank != 0)
                assert (last is None) is (rank != end)
                for found in (first, last):
                    assert found is None or np.array_equal(found, expected)
            saved = np.load(path)
            assert saved.dtype == kind
            assert np.array_equal(saved, expected)


def test_what_cannot_be_written_is_the_same_error_everywhere(tmp_path):
    def work(comm):
        vector = vectors(comm, None, 9, np.int64)
        try:
            vector.save(tmp_path / "no folder" / "x.npy")
        except OSError as error:
            return f"{type(error).__name__}: {error}"

    found = dist.run(work, 3)
    assert len(set(found)) == 1
    assert found[0].startswith("FileNotFoundError")


def test_ranks_that_want_different_things(tmp_path):
    """All raise the same, nothing is written, and the communicator goes on."""

    def work(comm):
        vector = vectors(comm, None, 9, np.int64)
        odd = comm.rank == 1
        G = matchwood.distribute((9, np.empty((0, 2), np.int64)), comm=comm)
        said = [
            tried(lambda: vector.gather(2 if odd else 0)),
            tried(lambda: vector.gather(None if odd else 0)),
            tried(lambda: vector.gather("x" if odd else 0)),
            tried(lambda: vector.gather(3)),
            tried(lambda: vector.gather(-1)),
            tried(lambda: vector.gather(1.0)),
            tried(lambda: vector.save(tmp_path / f"{odd}.npy")),
            tried(lambda: G.save(tmp_path / f"graph {odd}")),
            tried(lambda: matchwood.io.read(tmp_path / f"{odd}.txt", comm=comm)),
            tried(lambda: matchwood.io.read(3 if odd else "graph.txt", comm=comm)),
        ]
        assert vector.gather(None).size == 9
        return said

    first, *rest = dist.run(work, 3)
    assert all(isinstance(text, str) for text in first), first
    assert rest == [first, first]
    assert not list(tmp_path.iterdir())


def test_sizes_are_checked():
    def work(comm):
        G = matchwood.distribute((5, [[0, 1]] if comm.rank == 0 else []), comm=comm)
        return tried(lambda: G.vector(np.zeros(99)))

    assert "must have" in dist.run(work, 2)[0]


def test_it_says_what_it_is():
    text = dist.run(lambda comm: repr(vectors(comm, None, 9, np.int64)), 2)[1]
    assert text == "<DistributedVector: 9 values, int64, rank 1 of 2 has 4>"

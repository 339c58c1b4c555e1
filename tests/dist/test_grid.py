"""The grid of ranks: who owns and keeps what, by the definitions of its page."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from bench.engines.ranks.balance import GRAPHS, ROWS, largest_share
from matchwood.engines.cpu import crew, kernel
from matchwood.engines.ranks import grid as grids
from matchwood.engines.ranks.grid.cpu import column_id, row_id
from matchwood.generators import rmat
from spread_graphs import GRIDS

SIZES = (0, 1, 2, 5, 16, 17, 31, 97)


def all_ranks(layout, n, R, C):
    return [grids.made(layout, n, R, C, rank) for rank in range(R * C)]


@pytest.mark.parametrize("layout", ["stripes", "ranges"])
@pytest.mark.parametrize("n", SIZES)
def test_every_rank_agrees_with_the_definition(layout, n):
    vertices = np.arange(n)
    for R, C in GRIDS:
        ranks = all_ranks(layout, n, R, C)
        stripes = vertices % (R * C)
        row_group = stripes // C
        column_group = stripes % C if layout == "stripes" else stripes // R
        for grid in ranks:
            assert np.array_equal(grid.row_group(vertices), row_group)
            assert np.array_equal(grid.column_group(vertices), column_group)
            rows, columns = grid.original_rows(), grid.original_columns()
            assert np.array_equal(rows, np.flatnonzero(row_group == grid.r))
            assert np.array_equal(columns, np.flatnonzero(column_group == grid.c))
            assert np.array_equal(grid.row_position(rows), np.arange(grid.n_rows))
            assert np.array_equal(grid.column_position(columns), np.arange(grid.n_columns))
            own = grid.original_owned()
            assert np.array_equal(own, np.flatnonzero(grid.owner(vertices) == grid.rank))
            assert np.array_equal(grid.places(own), np.arange(grid.owned))
            assert np.array_equal(rows[grid.owned_rows], own)
            assert np.array_equal(columns[grid.owned_columns], own)
            assert grid.owned == len(np.intersect1d(rows, columns))
        assert sum(grid.owned for grid in ranks) == n


@pytest.mark.parametrize("layout", ["stripes", "ranges"])
def test_local_ids_are_the_row_group_and_then_the_rest(layout):
    for n in SIZES:
        for R, C in GRIDS:
            for grid in all_ranks(layout, n, R, C):
                names = grid.original_local()
                assert names.size == grid.n_local == grid.n_rows + grid.n_columns - grid.owned
                assert np.array_equal(names[: grid.n_rows], grid.original_rows())
                rest = np.setdiff1d(grid.original_columns(), grid.original_rows())
                assert np.array_equal(names[grid.n_rows :], rest)
                assert np.array_equal(names[grid.columns_to_local], grid.original_columns())
                assert np.array_equal(grid.original(np.arange(grid.n_local)), names)


@kernel
def _originals(team, shape, out, columns):
    for k in range(shape.rows):
        out[k] = row_id(shape, k)
    for k in range(shape.rows, out.size):
        out[k] = column_id(shape, k)
    for k in range(columns.size):
        columns[k] = column_id(shape, columns[k])


def test_kernels_compute_the_same_ids():
    for n in (5, 97):
        for R, C in GRIDS:
            for grid in all_ranks("stripes", n, R, C):
                found = np.empty(grid.n_local, np.int64)
                columns = grid.columns_to_local.copy()
                crew(1, work=1).run(_originals, grid.shape, found, columns)
                assert np.array_equal(found, grid.original_local())
                assert np.array_equal(columns, grid.original_columns())


@pytest.mark.parametrize("layout", ["stripes", "ranges"])
def test_parts_of_a_group_belong_to_the_ranks_of_the_row_and_the_column(layout):
    for R, C in GRIDS:
        ranks = all_ranks(layout, 97, R, C)
        for grid in ranks:
            row = [ranks[grid.r * C + c] for c in range(C)]
            column = [ranks[r * C + grid.c] for r in range(R)]
            parts = grid.split_rows(grid.original_rows())
            for part, other in zip(parts, row, strict=True):
                assert np.array_equal(part, other.original_owned())
            assert np.array_equal(grid.join_rows(parts, np.empty(grid.n_rows, int)),
                                  grid.original_rows())  # fmt: skip
            owned = [other.original_owned() for other in column]
            assert np.array_equal(grid.join_columns(owned, np.empty(grid.n_columns, int)),
                                  grid.original_columns())  # fmt: skip
            to, places = grid.row_owner(np.arange(grid.n_rows))
            for position, vertex in enumerate(grid.original_rows()):
                assert row[to[position]].original_owned()[places[position]] == vertex
            for k, other in enumerate(column):
                positions = grid.columns_of(k, np.arange(other.owned))
                assert np.array_equal(grid.original_columns()[positions], other.original_owned())
            for k, other in enumerate(row):
                positions = grid.rows_of(k, np.arange(other.owned))
                assert np.array_equal(grid.original_rows()[positions], other.original_owned())


def test_every_block_has_its_share_of_every_diagonal():
    n = 16 * 40
    for R, C in GRIDS:
        grid = grids.Grid(n, R, C, 0)
        for shift in range(-30, 31):
            u = np.arange(30, 30 + R * C * 30)
            counts = np.bincount(grid.keeper(u, u + shift), minlength=R * C)
            assert counts.min() == counts.max() or R * C * 30 % (R * C)


def test_types_of_the_thesis():
    """Its table 6.2: no overlap, rows begin first, columns begin first."""
    kinds = {(R, C): [grids.made("ranges", 64, R, C, k).type for k in range(R * C)]
             for R, C in ((2, 2), (2, 4), (4, 2))}  # fmt: skip
    assert kinds[2, 2] == [1, 0, 0, 1]
    assert kinds[2, 4] == [1, 1, 0, 0, 0, 0, 1, 1]
    assert kinds[4, 2] == [1, 0, 2, 0, 0, 1, 0, 2]


def test_the_shape_of_a_grid():
    assert [grids.nearest_square(p) for p in (1, 2, 6, 7, 9, 12, 16)] == [
        (1, 1), (1, 2), (2, 3), (1, 7), (3, 3), (3, 4), (4, 4),
    ]  # fmt: skip
    assert grids.parsed("f", "8x2", 16) == grids.parsed("f", (8, 2), 16) == (8, 2)
    for wrong, error in [("4x5", ValueError), ("4", ValueError), ("0x16", ValueError),
                         ("-4x-4", ValueError), (16, TypeError), ((4, 4.0), TypeError),
                         ((True, 16), TypeError), ((2, 2, 4), TypeError)]:  # fmt: skip
        with pytest.raises(error, match="f: grid must"):
            grids.parsed("f", wrong, 16)


# How evenly entries lie on 16 x 16 ranks: our layout beside that of the thesis


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rmat 18", "grid 1024^2", "mesh 64^3"])
def test_balance(name):
    A = GRAPHS[name]()
    thesis, ours = (largest_share(A, 16, 16, layout) for layout in ("ranges", "stripes"))
    wanted = ROWS[name]
    assert abs(thesis - wanted.thesis) < 0.05 * wanted.thesis
    assert ours <= wanted.ours + 0.02


def test_hashed_numbers_spread_what_has_structure():
    A = rmat(14, permute=False)
    assert largest_share(A, 16, 16, "stripes") > 5
    assert largest_share(A, 16, 16, "stripes", hashed=True) < 1.5


def test_the_share_is_the_largest_over_the_mean():
    A = sp.csr_array(np.ones((8, 8)))
    assert largest_share(A, 2, 2, "stripes") == 1.0
    one = sp.csr_array(([1.0], ([0], [1])), shape=(8, 8))  # stored both ways
    assert largest_share(one, 2, 2, "stripes") == 2.0

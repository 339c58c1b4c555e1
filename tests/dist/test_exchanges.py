"""Exchanges between the ranks of a grid, against their definitions; words and messages counted."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood import dist
from matchwood.engines.ranks import grid as grids
from matchwood.engines.ranks.exchanges import Exchange, Record, cpu
from matchwood.gate.distributed.sources import HashedOrder
from spread_graphs import GRIDS
from support import some

OPS = {"sum": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or}


def on_grid(function, R, C, n, layout="stripes", order=None):
    """The results of all ranks of function(exchange, grid, values of this rank)."""

    def work(comm):
        grid = grids.made(layout, n, R, C, comm.rank)
        exchange = Exchange(comm, grid, order)
        return function(exchange, grid, np.random.default_rng(comm.rank))

    return dist.run(work, R * C)


@pytest.mark.parametrize("layout", ["stripes", "ranges"])
@pytest.mark.parametrize("op", some(OPS))
def test_fold_and_expand(layout, op):
    for n in (0, 3, 50):
        for R, C in GRIDS:

            def work(exchange, grid, rng):
                values = rng.integers(0, 100, grid.n_rows)
                own = exchange.fold(values, op)
                thesis = exchange.with_kind("thesis")
                return (values, own, exchange.expand(own), exchange.expand_rows(own),
                        exchange.pull(values, op), thesis.pull(values, op))  # fmt: skip

            found = on_grid(work, R, C, n, layout)
            ranks = [grids.made(layout, n, R, C, k) for k in range(R * C)]
            truth = np.zeros(n, np.int64)
            for r in range(R):
                row = [found[r * C + c][0] for c in range(C)]
                truth[ranks[r * C].original_rows()] = OPS[op].reduce(row)
            for grid, (_, own, columns, rows, pulled, thesis) in zip(ranks, found, strict=True):
                assert np.array_equal(own, truth[grid.original_owned()])
                assert np.array_equal(columns, truth[grid.original_columns()])
                assert np.array_equal(rows, truth[grid.original_rows()])
                assert np.array_equal(pulled, columns)
                assert np.array_equal(thesis, columns)


def test_large_arrays_are_ordered_by_owner_and_back(monkeypatch):
    """Kernels order what NumPy orders elsewhere."""
    n = 1500  # more places than a tile at some ranks
    for R, C in ((1, 2), (2, 1), (2, 3)):
        for kind in (np.bool_, np.float32, np.float64):

            def work(exchange, grid, rng, kind=kind):
                values = rng.integers(0, 100, grid.n_rows).astype(kind)
                own = exchange.fold(values, "max")
                return own, exchange.expand(own), exchange.expand_rows(own)

            monkeypatch.setattr(cpu, "STRIPED_ELEMENTS", 1 << 14)
            expected = on_grid(work, R, C, n)
            monkeypatch.setattr(cpu, "STRIPED_ELEMENTS", 1)
            for found, right in zip(on_grid(work, R, C, n), expected, strict=True):
                for one, other in zip(found, right, strict=True):
                    assert one.dtype == kind
                    assert np.array_equal(one, other)


@pytest.mark.parametrize("layout", ["stripes", "ranges"])
@pytest.mark.parametrize(("kind", "count"), [("own", 0), ("own", 2), ("own", 60), ("thesis", 9)])
def test_sparse_forms(layout, kind, count):
    n = 40
    for R, C in GRIDS:

        def work(exchange, grid, rng):
            exchange = exchange.with_kind(kind)
            size = count if grid.n_rows else 0
            positions = rng.integers(0, max(grid.n_rows, 1), size)
            values = rng.integers(0, 1000, size)
            places, joined = exchange.fold_changed(positions, values, "min")
            columns = exchange.expand_changed(places, joined, joined.astype(np.float32))
            rows = exchange.expand_rows_changed(places, joined)
            return grid.original_rows()[positions], values, places, joined, columns, rows

        found = on_grid(work, R, C, n, layout)
        ranks = [grids.made(layout, n, R, C, k) for k in range(R * C)]
        truth = {}
        for ids, values, *_ in found:
            for v, value in zip(ids.tolist(), values.tolist(), strict=True):
                truth[v] = min(value, truth.get(v, value))
        for grid, (_, _, places, joined, columns, rows) in zip(ranks, found, strict=True):
            own = {v: truth[v] for v in grid.original_owned().tolist() if v in truth}
            assert list(own) == grid.original_owned()[places].tolist()
            assert list(own.values()) == joined.tolist()
            for group, (positions, values, *more) in (
                (grid.original_columns(), columns), (grid.original_rows(), rows),
            ):  # fmt: skip
                wanted = {v: truth[v] for v in group.tolist() if v in truth}
                assert dict(zip(group[positions].tolist(), values.tolist(), strict=True)) == wanted
                assert all(each.dtype == np.float32 for each in more)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("layout", ["stripes", "ranges"])
def test_packets_and_questions_reach_the_owners(layout, hashed):
    n = 37
    order = HashedOrder(n) if hashed else None
    for R, C in GRIDS:

        def work(exchange, grid, rng):
            ids = rng.integers(0, n, 25)
            marks, more = np.arange(25), rng.random(25)
            places, ranks, got, numbers = exchange.packets(
                ids, np.full(25, exchange.comm.rank), marks, more
            )
            own = grid.original_owned()
            own = own if order is None else order.user(own)
            answer, both = exchange.ask(ids, own * own), exchange.ask(ids, own, own > 5)
            assert np.array_equal(answer, ids * ids)
            assert np.array_equal(both[0], ids)
            assert np.array_equal(both[1], ids > 5)
            return ids, more, own[places], ranks, got, numbers

        found = on_grid(work, R, C, n, layout, order)
        owners = grids.made(layout, n, R, C, 0)
        sent = [[] for _ in range(R * C)]
        for rank, (ids, more, *_) in enumerate(found):
            inside = ids if order is None else order.inside(ids)
            for mark, (v, to, number) in enumerate(
                zip(ids.tolist(), owners.owner(inside).tolist(), more.tolist(), strict=True)
            ):
                sent[to].append((v, rank, mark, number))
        for wanted, (_, _, *columns) in zip(sent, found, strict=True):
            assert wanted == list(zip(*(column.tolist() for column in columns), strict=True))


def test_joining_in_the_order_of_ranks_at_many_threads():
    from matchwood.engines.ranks.exchanges.cpu import joined

    rng = np.random.default_rng(0)
    for size, count in ((1000, 20), (1000, 5000), (1, 3), (7, 0)):
        places, values = rng.integers(0, size, count), rng.normal(size=count)
        truth = {}
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            truth[place] = truth[place] + value if place in truth else value
        for threads in (1, 2, 3):
            found = joined(places, values, "sum", size, threads)
            assert dict(zip(*(each.tolist() for each in found), strict=True)) == truth
            assert (np.diff(found[0]) > 0).all()
        bits = joined(places, places * 3, "or", size, 1)
        assert bits[1].tolist() == [3 * p for p in bits[0].tolist()]
        flags = values > 0
        ones = joined(places, flags, "or", size, 1)
        assert ones[1].dtype == np.bool_
        assert all(bool(flags[places == p].any()) == f for p, f in zip(*ones, strict=True))


def test_dense_words_and_messages_are_those_of_the_formula():
    """PageRank's exchange: (N/R)(C-1)/C + (N/C)(R-1)/R words; at most 2 (R + C) messages."""
    for R, C in ((4, 4), (2, 8), (8, 2), (2, 2), (1, 5), (5, 3)):
        n = R * C * 24

        def work(exchange, grid, rng):
            before = exchange.comm.traffic.bytes_received, exchange.comm.traffic.messages
            exchange.pull(np.ones(grid.n_rows))
            ours = exchange.comm.traffic.bytes_received - before[0]
            messages = exchange.comm.traffic.messages - before[1]
            before = exchange.comm.traffic.bytes_received
            exchange.with_kind("thesis").pull(np.ones(grid.n_rows))
            return ours / 8, messages, (exchange.comm.traffic.bytes_received - before) / 8

        for ours, messages, thesis in on_grid(work, R, C, n):
            assert ours == n / R * (C - 1) / C + n / C * (R - 1) / R
            assert messages <= 2 * (R + C)
            assert thesis == 2 * n / R * (C - 1) / C + n / C * (R - 1) / R


def test_sparse_pays_is_one_answer_of_all_ranks():
    def work(exchange, grid, rng):
        few = exchange.sparse_pays(1 if exchange.comm.rank == 2 else 0)
        many = exchange.sparse_pays(100 if exchange.comm.rank == 2 else 0)
        return few, many

    assert set(on_grid(work, 2, 2, 100)) == {(True, False)}


def test_records_keep_every_type():
    columns = [np.arange(5, dtype=kind) for kind in (np.int8, np.int32, np.float64, np.uint64)]
    columns.append(np.array([True, False, True, True, False]))
    record = Record(*columns)
    assert record.packed.dtype == np.uint8
    assert record.packed.size == 5 * record.width == 5 * 22
    for given, found in zip(columns, record.unpacked(record.packed), strict=True):
        assert given.dtype == found.dtype
        assert np.array_equal(given, found)


def test_many_graphs_share_their_groups():
    def work(comm):
        grid = grids.Grid(10, 2, 2, comm.rank)
        one, two = Exchange(comm, grid), Exchange(comm, grids.Grid(99, 2, 2, comm.rank))
        other = Exchange(comm, grids.Grid(10, 1, 4, comm.rank))
        return one.row is two.row, one.column is two.column, other.row is one.row

    assert set(dist.run(work, 4)) == {(True, True, False)}


def test_the_computed_permutation_is_one():
    for n in (1, 2, 3, 10, 255, 256, 257, 5000):
        order = HashedOrder(n)
        for kind in (np.int32, np.int64):
            ids = np.arange(n, dtype=kind)
            inside = order.inside(ids)
            assert inside.dtype == kind
            assert np.array_equal(np.sort(inside), ids)
            assert np.array_equal(order.user(inside), ids)
        assert np.array_equal(order.inside(ids, 3), inside)
        # what is done with arrays on a GPU
        assert np.array_equal(order.mapped_arrays(ids, order.keys, back=False), inside)
        assert np.array_equal(order.mapped_arrays(inside, order.keys[::-1], back=True), ids)
    moved = HashedOrder(5000).inside(np.arange(5000))
    assert (np.bincount(moved[::16] % 16, minlength=16) > 5).all()  # no structure is left

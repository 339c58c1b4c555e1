"""Breadth-first search on a grid of ranks: one machine's levels and parents, and their check."""

from __future__ import annotations

import dataclasses
import threading
import time
from types import FunctionType

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import ZOO, grid, path, rmat
from matchwood import dist
from matchwood.check import check_bfs, is_bfs
from matchwood.engines.cpu import barrier, crew, device, kernel, load_relaxed
from matchwood.engines.cpu.atomics import relax_core
from matchwood.engines.ranks.exchanges.cpu import rows_with_entries
from matchwood.engines.ranks.exchanges.packing import pack_values, unpack_values
from matchwood.engines.ranks.grid import Grid, GridShape
from matchwood.traversal.breadth_first.ranks import cpu as rank_steps
from matchwood.traversal.breadth_first.ranks.cpu import levels, messages, narrow
from spread_graphs import CREW, FEW_GRIDS, GRIDS, SHAPES, alike, assert_refused, slab, tried, zoo_on
from support import from_python

LONG = ("long path", "shuffled path", "thin grid")  # hundreds of levels


def spread(comm, A, shape, **options):
    return matchwood.distribute(
        slab(A, comm.rank, comm.size), comm=comm, grid=f"{shape[0]}x{shape[1]}", **options
    )


def cases(n):
    """Sources and options of some searches, few levels in all."""
    if n == 0:
        return [([], {})]
    return [
        ([0], {"depth_limit": 12}),
        (sorted({n // 2, n // 3, n - 1}), {"directed": False, "depth_limit": 3}),
        (n // 2, {"depth_limit": 0}),
        ([], {}),
    ]


def searched(comm, matrices, shape, calls, options, checked):
    found = []
    for A in matrices:
        G = spread(comm, A, shape, **options)
        answers = []
        for sources, rules in calls or cases(G.n):
            answer = matchwood.bfs(G, sources, **rules)
            if checked:
                check_bfs(G, sources, answer, **rules)
            answers.append((answer.level.gather(None), answer.parent.gather(None), answer.rounds))
        found.append(answers)
    return found


def compared(matrices, shapes, calls=None, checked=False, **options):
    expected = [
        [matchwood.bfs(A, sources, **rules) for sources, rules in calls or cases(A.shape[0])]
        for A in matrices
    ]
    for shape in shapes:
        ranks = shape[0] * shape[1]
        for found in dist.run(searched, ranks, matrices, shape, calls, options, checked):
            for answers, right in zip(found, expected, strict=True):
                for (level, parent, rounds), one in zip(answers, right, strict=True):
                    assert np.array_equal(level, one.level), shape
                    assert np.array_equal(parent, one.parent), shape
                    assert level.dtype == parent.dtype == one.level.dtype
                    assert rounds == one.rounds, shape


def zoo():
    return [make() for name, make in ZOO.items() if name not in LONG]


@pytest.fixture
def wide(monkeypatch):
    """All levels by collectives, as between hosts."""
    monkeypatch.setattr(narrow, "ENTRIES", 0)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_levels_and_parents_are_those_of_one_machine(shape):
    compared(zoo_on(shape, LONG), (shape,))


@pytest.mark.slow
@pytest.mark.parametrize("entries", [0, narrow.ENTRIES])
def test_all_graphs_on_all_grids(monkeypatch, entries):
    monkeypatch.setattr(narrow, "ENTRIES", entries)
    compared(zoo(), GRIDS)


def test_narrow_levels_on_all_grids():
    """Meshes and paths; from several sources, by directed arcs, up to a level."""
    calls = [
        ([0], {}),
        ([1, 30, 31, 97], {"directed": False, "depth_limit": 5}),
        ([5], {"depth_limit": 9}),
        ([], {}),
    ]
    graphs = [grid(37, 11), path(130), sp.triu(grid(20, 6), format="csr"), sp.csr_array((99, 99))]
    compared(graphs, ((1, 2), (3, 1), (2, 2), (2, 3)), calls)
    compared(graphs, ((2, 2),), calls, order="hashed", checked=True)


def test_narrow_and_wide_levels_in_turn(monkeypatch):
    """The loop is left and entered again, with frontiers as lists and as bits."""
    monkeypatch.setattr(narrow, "FEW", 8)
    monkeypatch.setattr(narrow, "PART", 1 << 40)
    turns = []
    old = narrow.Narrow.search

    def search(self, *arguments):
        found = old(self, *arguments)
        turns.append((found[0].size, found[1]))
        return found

    monkeypatch.setattr(narrow.Narrow, "search", search)
    A = sp.block_diag([grid(40, 5), rmat(8, 4), path(30)], format="csr")
    for few in (8, 100):
        monkeypatch.setattr(narrow, "FEW", few)
        compared([A, A.T.tocsr()], ((2, 2), (1, 3)), [([0, 201, 460], {}), ([3, 300], {})])
    assert any(size > 1 and not over for size, over in turns)
    assert any(over for _, over in turns)


def test_kernels_that_return_before_the_search_is_over(monkeypatch):
    """Since their room for sizes is full, or since another rank is late."""
    old = narrow.crew

    def crew(threads, work):
        made = old(threads, work=work)
        if threading.current_thread().name.endswith("1"):
            time.sleep(0.01)
        return made

    def short(self, *arguments, old=narrow.Narrow.__init__):
        old(self, *arguments)
        self.sizes = self.sizes[:3]

    monkeypatch.setattr(narrow, "crew", crew)
    monkeypatch.setattr(narrow.Narrow, "__init__", short)
    compared([grid(37, 11), path(50)], ((2, 2), (1, 2)), [([0], {}), ([7], {})])


@pytest.mark.parametrize("fault", ["raise", "leave"])
def test_a_rank_that_fails_in_a_narrow_level(monkeypatch, fault):
    """The others, which wait for it in a kernel, raise at once."""
    A = grid(40, 30)

    def short(self, *arguments, old=narrow.Narrow.__init__):
        old(self, *arguments)
        self.sizes = self.sizes[:5]

    class Crew:
        calls = 0

        def run(self, *arguments):
            if threading.current_thread().name.endswith("2"):
                Crew.calls += 1
                if Crew.calls == 4:
                    raise SystemExit if fault == "leave" else ZeroDivisionError("in level 20")
            crew(1, work=10**9).run(*arguments)

    monkeypatch.setattr(narrow.Narrow, "__init__", short)
    monkeypatch.setattr(narrow, "crew", lambda threads, work: Crew())
    start = time.monotonic()
    with pytest.raises(matchwood.RankFailed) as failed:
        dist.run(lambda comm: matchwood.bfs(spread(comm, A, (2, 2)), 0), 4)
    assert failed.value.rank == 2
    assert failed.value.type == ("SystemExit" if fault == "leave" else "ZeroDivisionError")
    assert time.monotonic() - start < 10


def test_narrow_levels_are_counted_and_reported():
    told, A = [], grid(20, 10)

    def body(comm):
        G = spread(comm, A, (2, 2))
        if comm.rank == 0:
            comm.listener = lambda round, active, traffic: told.append((round, active))
        comm.traffic.clear()
        matchwood.bfs(G, 0)
        return comm.traffic.by_operation["rounds"]

    counts = dist.run(body, 4)
    sizes = np.bincount(matchwood.bfs(A, 0).level)
    assert told == list(enumerate(sizes.tolist(), 1))
    assert all(each.calls == 1 and each.bytes_received > 0 for each in counts)
    assert all(each.bytes_sent > 0 and each.messages >= 3 * sizes.size for each in counts)


@pytest.mark.slow
def test_hashed_vertices_and_long_ways():
    for shape in ((1, 1), (2, 3)):
        compared(zoo_on(shape, LONG), (shape,), order="hashed", checked=True)
    whole = [([1], {}), ([0], {"directed": False})]
    long = [ZOO[name]() for name in LONG]
    others = [A for A in zoo_on((2, 2), LONG) if A.shape[0] > 1]
    compared([*long, *others], ((2, 2),), whole)


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
def test_both_directions_and_several_threads():
    """R-MAT goes bottom up; with three threads a rank, several members reach a vertex at once."""
    for A in (rmat(11, 8), rmat(11, 8, symmetric=False)):
        calls = [([5], {}), ([0, 1, 2], {"directed": False})]
        compared([A], FEW_GRIDS, calls)
        compared([A], ((4, 4),), calls, order="hashed")
        compared([A], ((2, 3), (4, 4)), calls, layout="ranges")
        expected = matchwood.bfs(A, 5)

        def body(comm, A=A):
            found = matchwood.bfs(spread(comm, A, (2, 2)), 5, threads=3)
            return found.level.gather(None), found.parent.gather(None)

        for level, parent in dist.run(body, 4, threads=3):
            assert np.array_equal(level, expected.level)
            assert np.array_equal(parent, expected.parent)


def compared_wide(A, calls):
    """With indices of 64 bits, whose messages have words of 64 bits."""
    for sources, rules in calls:
        one = matchwood.bfs(matchwood.graph(A, index_dtype=np.int64), sources, **rules)
        options = {"index_dtype": np.int64}
        for found in dist.run(searched, 6, [A], (2, 3), [(sources, rules)], options, False):
            level, parent, _ = found[0][0]
            assert level.dtype == one.level.dtype == np.int64
            assert np.array_equal(level, one.level)
            assert np.array_equal(parent, one.parent)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 5])
def test_messages_are_read_and_written_by_a_team(monkeypatch, threads):
    """However short they are; members share words of bits, lists, and what begins within words."""
    monkeypatch.setattr(CREW, "TOGETHER", 0)
    monkeypatch.setattr(narrow, "ENTRIES", 0)
    rules = {"threads": threads}
    calls = [([5], rules), ([0, 1, 2], {"directed": False, **rules})]
    for A in (rmat(11, 8), rmat(10, 8, symmetric=False), grid(37, 11), path(130)):
        compared([A], ((2, 2), (1, 3), (3, 1)), calls)
        compared([A], ((2, 2),), calls[:1], order="hashed")
    others = [A for A in zoo_on((2, 2), LONG) if A.shape[0] > 1]
    compared(others, ((2, 2),), [([1], rules)])
    if threads == 5:
        large = rmat(14, 8)  # ranks have several chunks of rows, members begin within messages
        compared([large], ((2, 2),), [([5], rules)])


@pytest.mark.slow  # compiles every kernel once more
@pytest.mark.usefixtures("wide")
def test_wide_messages_are_read_and_written_by_a_team(monkeypatch):
    monkeypatch.setattr(CREW, "TOGETHER", 0)
    calls = [([5], {"threads": 5}), ([0, 1, 2], {"directed": False, "threads": 5})]
    for A in (rmat(10, 8, symmetric=False), grid(37, 11)):
        compared_wide(A, calls)
    compared_wide(rmat(14, 8), calls[:1])


@device
def late_load(array, place):
    """Another member has time to write between this and what follows."""
    value = load_relaxed(array, place)
    for _ in range(20_000):
        relax_core()
    return value


def remade(function, **replaced):
    """A function of the search with others in place of some that it calls; not cached."""
    old = function.py_func
    made = kernel(FunctionType(old.__code__, {**old.__globals__, **replaced}, old.__name__))
    made.lasting = False
    return made


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, -1])
def test_members_that_reach_a_column_at_once_leave_the_smallest_parent(step):
    """Each member has a row with the same columns, and is late after it has read a parent."""
    slow = remade(levels.follow, _lower=remade(levels._lower, load_relaxed=late_load))
    columns, kind = 64, np.uint32
    for threads in (2, 3, 2, 3):
        rows = (threads - 1) * levels.CHUNK + 1
        first = np.arange(0, rows, levels.CHUNK)  # of each chunk; the other rows are empty
        n = max(rows, columns)
        lengths = np.zeros(n, int)
        lengths[first] = columns
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        indices = np.tile(np.arange(columns, dtype=kind), threads)
        names = np.ascontiguousarray(np.arange(n, dtype=kind)[::step])
        shape = GridShape(*map(np.uint64, (1, 1, 0, 0, 1, n)))
        seen, fresh = np.zeros((2, -(-n // 64)), np.uint64)
        known = messages.Columns(seen, fresh, np.empty(n, kind))
        team = crew(threads, work=10**9)
        found = rank_steps._queue(np.empty(n, kind), team)
        frontier = np.arange(rows, dtype=kind)
        outward = levels.Outward(indptr, indices, np.empty((0, 0), np.uint64))
        team.run(
            slow, outward, frontier, messages.Names(shape, np.uint64(6), names, names), known, found
        )
        assert set(found.vertices[: found.tail[0]]) == set(range(columns))
        assert (known.best[:columns] == names[first].min()).all()


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 4), (4, 1), (2, 2), (3, 2), (7, 5), (13, 1), (65, 2)]
)
def test_bits_and_names_of_columns(shape):
    bit, name = messages.column_bit, messages.column_name

    @from_python
    def run(names, columns, bits, found):
        for i in range(columns.size):
            bits[i] = bit(names, columns[i])
            found[i] = name(names, bits[i])

    for n in (1, 2, 100, 20_003):
        for rank in range(0, shape[0] * shape[1], 3):
            layout = Grid(n, *shape, rank)
            columns, shift = layout.columns_to_local, rank_steps._shift(layout)
            ranks, places = np.arange(columns.size) % shape[0], np.arange(columns.size) // shape[0]
            bits, found = np.empty((2, columns.size), np.int64)
            given = np.random.default_rng(n).permutation(layout.n_local)
            for names in (given[:0], given):
                by_position = names[columns] if names.size else names
                run(messages.Names(layout.shape, shift, names, by_position), columns, bits, found)
                assert np.array_equal(bits, (ranks << int(shift)) + places)
                assert places.max(initial=0) < 1 << int(shift)
                right = names[columns] if names.size else layout.original(columns)
                assert np.array_equal(found, right)


def test_bits_of_columns_of_large_graphs():
    """No quotient is rounded up, where numbers have 48 bits."""
    bit, none = from_python(messages.column_bit), np.empty(0, np.uint64)
    for R, C in ((2, 2), (4, 4), (7, 3), (1000, 999)):
        for r in (0, R - 1):
            places = (1 << 48) // max(R, C)
            rows = places * C
            shape = GridShape(*map(np.uint64, (R, C, r, 1, R - 1, rows)))
            names = messages.Names(shape, np.uint64(50), none, none)
            for place in (places - 2, places - 1):
                assert bit(names, np.uint64(place * C + 1)) == (r << 50) + place
                for t in {0, max(0, r - 1), min(r, R - 2), R - 2}:
                    local = np.uint64(rows + place * (R - 1) + t)
                    assert bit(names, local) == (t + (t >= r) << 50) + place


def block_of(layout, lengths, rng):
    """Rows with so many random columns each, as a block has them: in the order of positions."""
    rows = [np.sort(rng.choice(layout.n_columns, k, False)) for k in lengths]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    positions = np.concatenate(rows)
    return indptr, layout.columns_to_local[positions].astype(np.uint32), rows


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_open_rows_find_their_first_column(threads, share):
    """Rows that are shorter and longer than the entries that lie together; closed ones are left."""
    rng = np.random.default_rng(5)
    search, offer = levels.search_rows, messages.offer_rows

    @kernel
    def searched(team, rows, frontier, names, open, found, offers):
        search(team, rows, frontier, names, open, found)
        if not barrier(team):
            offer(team, found, offers)

    for n, R, C, rank in ((9_001, 2, 3, 4), (13_000, 3, 2, 1), (70, 1, 2, 0)):
        layout = Grid(n, R, C, rank)
        lengths = rng.integers(0, 7, layout.n_rows) * (rng.random(layout.n_rows) < 0.7)
        lengths[::97] = min(40, layout.n_columns)
        indptr, indices, rows = block_of(layout, lengths, rng)
        full = rows_with_entries(indptr, layout)
        none, shift = np.empty(0, np.uint32), rank_steps._shift(layout)
        names = messages.Names(layout.shape, shift, none, none)
        inward = levels.with_heads(indptr, indices, full, names, threads)
        told = np.flatnonzero(rng.random(layout.n_columns) < share)
        frontier = np.zeros(R << int(shift) >> 6, np.uint64)
        bits = (told % R << int(shift)) + told // R
        np.bitwise_or.at(frontier, bits // 64, np.uint64(1) << (bits % 64).astype(np.uint64))
        open = full & rng.integers(0, 1 << 63, full.shape, np.uint64)
        left, team = open.copy(), crew(threads, work=10**9)
        chunks = -(-full.shape[1] // messages.WORDS)
        found = messages.FoundRows(
            np.full_like(full, 77),
            np.empty((C, full.shape[1] * 64), np.uint32),
            np.empty((C, chunks), np.int64),
            *messages.room_for_notes(threads, np.uint32),
        )
        listed = rank_steps.of_rows(layout)
        words = np.full(layout.n_rows + 3 * full.size, 77, np.uint32)
        counts = np.empty((threads + 1, C), np.int64)
        offers = messages.Offers(words, counts, counts[None], *rank_steps._stripes(listed))
        team.run(searched, inward, frontier, names, left, found, offers)
        at = 0
        for s in range(C):
            marked = np.unpackbits(found.bits[s].view(np.uint8), bitorder="little")
            was = np.unpackbits(open[s].view(np.uint8), bitorder="little")
            right = {
                k: int(hits[0]) * C + layout.c
                for k in np.flatnonzero(was).tolist()
                if (hits := np.intersect1d(rows[k * C + s], told)).size
            }
            assert np.flatnonzero(marked).tolist() == list(right)
            assert np.array_equal(left[s], open[s] & ~found.bits[s])
            assert counts[-1, s] == len(right)
            places, parents = np.array([*right], int), np.array([*right.values()], np.uint32)
            message = pack_values(places, parents, listed[s][2])
            assert np.array_equal(words[at : at + message.size], message)
            at += message.size


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
def test_columns_are_packed_by_any_team(kind, share):
    """Messages are those of `pack_values`, whose lists may be in another order."""
    rng = np.random.default_rng(3)
    layout = Grid(20_003, 3, 2, 3)  # rank 3 of 3 x 2
    listed = rank_steps.of_columns(layout)
    locals_of = [base + np.arange(size) * step for base, step, size in listed]
    offer = remade(messages.offer_columns)
    for threads in (1, 2, 5):
        some = [np.sort(rng.choice(size, int(share * size), False)) for _, _, size in listed]
        pairs = list(zip(locals_of, some, strict=True))
        found = rng.permutation(np.concatenate([ids[k] for ids, k in pairs])).astype(np.uint32)
        seen, fresh = np.zeros((2, -(-layout.n_local // 64)), np.uint64)
        np.bitwise_or.at(fresh, found // 64, np.uint64(1) << np.uint64(found % 64))
        best = rng.integers(0, layout.n, layout.n_local).astype(kind)
        marked, known = fresh.copy(), messages.Columns(seen, fresh, best)
        team = crew(threads, work=10**9)
        expected = [pack_values(k, best[ids[k]], ids.size) for ids, k in pairs]
        sizes = np.array([message.size for message in expected])
        words = np.full(int(sizes.sum()), 77, kind)  # what was there before does not matter
        width = layout.R + messages.GAP
        counts = np.empty((threads + 1, width), np.int64)
        starts = np.empty((threads, 2, width), np.int64)
        offers = messages.Offers(words, counts, starts, *rank_steps._stripes(listed))
        team.run(offer, found, layout.shape, known, offers)
        assert counts[-1, : layout.R].tolist() == [k.size for k in some]
        for message, right, (_, _, size) in zip(
            np.split(words, np.cumsum(sizes)[:-1]), expected, listed, strict=True
        ):
            got, want = unpack_values(message, size), unpack_values(right, size)
            order = np.argsort(got[0])
            assert np.array_equal(got[0][order], want[0])
            assert np.array_equal(got[1][order], want[1])
        assert np.array_equal(seen, marked)
        assert not fresh.any()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_entries_of_a_frontier_are_counted(threads):
    """Of few vertices all; of many, those of some."""
    A = rmat(16, 8)

    def body(comm):
        G = spread(comm, A, (2, 2))
        lengths = np.diff(G.undirected_pattern().indptr)[: G.grid.n_rows][G.grid.owned_rows]
        found = []
        for places in (np.flatnonzero(lengths)[::7][:500], np.arange(G.grid.owned)):
            view = G.undirected_pattern()
            steps = rank_steps.Steps(G, view, view, np.int32, threads)
            assert steps.start(places, G.ids[places]) == places.size
            found.append((steps.arcs(0, False), 2 * int(lengths[places].sum())))
        return found

    few, many = zip(*dist.run(body, 4, threads=threads), strict=True)
    assert all(counted == right for counted, right in few)
    counted, right = (sum(numbers) for numbers in zip(*many, strict=True))
    assert 0.5 < counted / right < 2


def test_few_vertices_that_are_left_are_looked_for(monkeypatch):
    """A level more goes bottom up, where the frontier is smaller than before and few are left."""
    A = rmat(14, 16)
    expected = matchwood.bfs(A, int(np.diff(A.indptr).argmax()))
    sizes = np.bincount(expected.level[expected.level >= 0])
    ways = []
    for name in ("top_down", "bottom_up"):
        old = getattr(rank_steps.Steps, name)

        def step(self, depth, *follow, old=old, name=name):
            if self.grid.rank == 0:
                ways.append((depth, name))
            return old(self, depth, *follow)

        monkeypatch.setattr(rank_steps.Steps, name, step)
    compared([A], ((2, 2),), [(int(np.diff(A.indptr).argmax()), {})])
    last = max(depth for depth, way in ways if way == "bottom_up")
    assert sizes[last] < A.shape[0] // 18


@pytest.mark.slow  # compiles every kernel once more
def test_wide_indices():
    A = rmat(9, 8, symmetric=False)
    G = matchwood.graph(A, index_dtype=np.int64)
    expected = matchwood.bfs(G, 3)

    def body(comm):
        found = matchwood.bfs(spread(comm, A, (2, 2), index_dtype=np.int64), 3)
        assert found.level.dtype == found.parent.dtype == np.int64
        return found.level.gather(None), found.parent.gather(None)

    for level, parent in dist.run(body, 4):
        assert np.array_equal(level, expected.level)
        assert np.array_equal(parent, expected.parent)


def test_sources_that_are_marked():
    """As a DistributedVector: no rank needs to know them all."""
    A = grid(9, 11)
    expected = matchwood.bfs(A, np.flatnonzero(np.arange(99) % 7 == 3))

    def body(comm, order):
        G = spread(comm, A, (2, 3), order=order)
        found = matchwood.bfs(G, G.vector(G.ids % 7 == 3))
        check_bfs(G, G.vector(G.ids % 7 == 3), found)
        return found.level.gather(None), found.parent.gather(None)

    for order in ("given", "hashed"):
        for level, parent in dist.run(body, 6, order):
            assert np.array_equal(level, expected.level)
            assert np.array_equal(parent, expected.parent)


def test_few_words():
    """A vertex costs a bit in each group, and one word for its parent from those that reach it."""
    A = sp.csr_array(matchwood.graph(matchwood.generators.rmat(16)).sparse())

    def body(comm):
        G = spread(comm, A, (4, 4))
        G.transposed_pattern()
        before = comm.traffic.bytes_received
        matchwood.bfs(G, 0)
        return (comm.traffic.bytes_received - before) / 4

    assert max(dist.run(body, 16)) / (A.shape[0] / 4) < 0.5


# What is refused


def test_wrong_arguments_are_refused_on_all_ranks():
    A = path(10)

    def body(comm):
        G, other = spread(comm, A, (2, 2)), spread(comm, A, (1, 4))
        numbers = G.vector(G.ids.astype(np.int32))
        marks = other.vector(other.ids == 2)
        return [
            tried(lambda: matchwood.bfs(G, 10)),
            tried(lambda: matchwood.bfs(G, [0.5])),
            tried(lambda: matchwood.bfs(G, comm.rank)),
            tried(lambda: matchwood.bfs(G, 0, depth_limit=-1)),
            tried(lambda: matchwood.bfs(G, 0, depth_limit=comm.rank)),
            tried(lambda: matchwood.bfs(G, 0, directed=comm.rank > 0)),
            tried(lambda: matchwood.bfs(G, numbers)),
            tried(lambda: matchwood.bfs(G, marks)),
            tried(lambda: matchwood.bfs(G, G.vector(G.ids == 2) if comm.rank else [2])),
            tried(lambda: matchwood.bfs(G, 0, engine="gpu")),
            tried(lambda: matchwood.bfs(G, 0, threads=True)),
        ]

    found = alike(body, 4)
    texts = [
        "ValueError: bfs: sources must be vertices 0..9, got 10",
        "TypeError: bfs: sources must be an integer or a list of them",
        "ValueError: bfs: sources must be the same on all ranks",
        "ValueError: bfs: depth_limit must not be negative, got -1",
        "ValueError: bfs: depth_limit must be the same on all ranks",
        "ValueError: bfs: directed must be the same on all ranks",
        "TypeError: bfs: sources must hold a truth value for each of",
        "ValueError: bfs: sources must be spread over 2x2 ranks",
        "ValueError: bfs: sources must be the same on all ranks",
        "EngineUnavailable: bfs: engine must be None or 'cpu'",
        "TypeError: bfs: threads must be",
    ]
    for text, said in zip(texts, found, strict=True):
        assert said.startswith(text), said


def broken(comm, A, shape, rules):
    """What the check says of answers with one wrong number, on one rank."""
    G = spread(comm, A, shape)
    sources = [0, G.n - 1]
    right = matchwood.bfs(G, sources, **rules)
    said = []
    for name in ("level", "parent"):
        vector = getattr(right, name)
        whole = vector.gather(None)
        for v in range(G.n):
            for wrong in {-2, -1, 0, int(whole[v]), int(whole[v]) + 1, G.n - 1, G.n, 1 << 40}:
                local = vector.local.astype(np.int64)
                local[G.ids == v] = wrong
                answer = dataclasses.replace(right, **{name: G.vector(local)})
                said.append(tried(lambda x=answer: check_bfs(G, sources, x, **rules)))
                assert (said[-1] is None) == (wrong == whole[v]), (name, v, wrong)
    assert is_bfs(G, sources, right, **rules)
    deep = dataclasses.replace(right, level=G.vector(np.full_like(local, G.n)))
    assert not is_bfs(G, sources, deep, **rules)
    for rank in range(comm.size):
        answer = dataclasses.replace(right, rounds=right.rounds + (comm.rank == rank))
        said.append(tried(lambda x=answer: check_bfs(G, sources, x, **rules)))
        assert said[-1].startswith("CheckFailed: bfs: rounds is")
    return said


@pytest.mark.slow
def test_the_check_finds_every_change_on_all_ranks():
    for A, rules in ((grid(3, 4), {}), (ZOO["directed path"](), {}), (path(9), {"depth_limit": 2})):
        for shape in ((1, 1), (2, 2), (3, 1)):
            alike(broken, shape[0] * shape[1], A, shape, rules)


def test_what_is_no_answer():
    A = path(10)

    def body(comm):
        G = spread(comm, A, (2, 2))
        right = matchwood.bfs(G, 0)
        floats = G.vector(right.level.local.astype(float)) if comm.rank == 2 else right.level
        return [
            tried(lambda: check_bfs(G, 0, [right.level])),
            tried(lambda: check_bfs(G, 0, (right.level.local, right.parent))),
            tried(lambda: check_bfs(G, 0, (floats, right.parent))),
            tried(lambda: check_bfs(G, 11, right)),
            tried(lambda: check_bfs(G, 1, right)),
            tried(lambda: check_bfs(G, 0, right)),
        ]

    found = alike(body, 4)
    texts = [
        "TypeError: check_bfs: result must be a BFS or",
        "TypeError: check_bfs: level must be a DistributedVector, got ndarray",
        "TypeError: check_bfs: level must hold integers, got dtype float64",
        "ValueError: check_bfs: sources must be vertices 0..9, got 11",
        "CheckFailed: bfs: vertex 0 has level 0 but is no source",
    ]
    assert_refused(found, texts)

"""Breadth-first search on a grid of ranks: one machine's levels and parents, and their check."""

from __future__ import annotations

import dataclasses
from types import FunctionType

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, grid, path, rmat
from matchwood import dist
from matchwood.check import check_bfs, is_bfs
from matchwood.dist.exchanges.packing import pack_values, unpack_values
from matchwood.dist.grid import Grid, GridShape
from matchwood.teams import crew, load_relaxed
from matchwood.teams.atomics import relax_core
from matchwood.traversal.breadth_first.dist import (
    cpu_offers,
    cpu_told,
    cpu_top_down,
    stripes,
)
from spread_graphs import FEW_GRIDS, GRIDS, SHAPES, slab, tried, zoo_on
from strategies import graphs

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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_levels_and_parents_are_those_of_one_machine(shape):
    compared(zoo_on(shape, LONG), (shape,))


@pytest.mark.slow
def test_all_graphs_on_all_grids():
    compared(zoo(), GRIDS)


def test_hashed_vertices_and_long_ways():
    for shape in ((1, 1), (2, 3)):
        compared(zoo_on(shape, LONG), (shape,), order="hashed", checked=True)
    whole = [([1], {}), ([0], {"directed": False})]
    long = [ZOO[name]() for name in LONG]
    others = [A for A in zoo_on((2, 2), LONG) if A.shape[0] > 1]
    compared([*long, *others], ((2, 2),), whole)


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


@pytest.mark.parametrize("threads", [2, 5])
def test_messages_are_read_and_written_by_a_team(monkeypatch, threads):
    """However short they are; members share words of bits, lists, and what begins within words."""
    monkeypatch.setattr(stripes, "TOGETHER", 0)
    rules = {"threads": threads}
    calls = [([5], rules), ([0, 1, 2], {"directed": False, **rules})]
    for A in (rmat(11, 8), rmat(10, 8, symmetric=False), grid(37, 11), path(130)):
        compared([A], ((2, 2), (1, 3), (3, 1)), calls)
        compared([A], ((2, 2),), calls[:1], order="hashed")
    others = [A for A in zoo_on((2, 2), LONG) if A.shape[0] > 1]
    compared(others, ((2, 2),), [([1], rules)])
    if threads == 5:
        for A in (rmat(10, 8, symmetric=False), grid(37, 11)):
            compared_wide(A, calls)
        large = rmat(14, 8)  # ranks have several chunks of rows, members begin within messages
        compared([large], ((2, 2),), [([5], rules)])
        compared_wide(large, [([5], rules)])


njit = numba.njit(nogil=True, error_model="numpy")


@njit
def late_load(array, place):
    """Another member has time to write between this and what follows."""
    value = load_relaxed(array, place)
    for _ in range(20_000):
        relax_core()
    return value


def remade(function, **replaced):
    """A function of the search with others in place of some that it calls; not cached."""
    made = function.py_func
    return njit(FunctionType(made.__code__, {**made.__globals__, **replaced}, made.__name__))


@pytest.mark.parametrize("step", [1, -1])
def test_members_that_reach_a_column_at_once_leave_the_smallest_parent(step):
    """Each member has a row with the same columns, and is late after it has read a parent."""
    slow = remade(cpu_top_down.follow, _lower=remade(cpu_top_down._lower, load_relaxed=late_load))
    columns, kind = 64, np.uint32
    for threads in (2, 3, 2, 3):
        rows = (threads - 1) * cpu_top_down.CHUNK + 1
        first = np.arange(0, rows, cpu_top_down.CHUNK)  # of each chunk; the other rows are empty
        n = max(rows, columns)
        lengths = np.zeros(n, int)
        lengths[first] = columns
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        indices = np.tile(np.arange(columns, dtype=kind), threads)
        names = np.ascontiguousarray(np.arange(n, dtype=kind)[::step])
        shape = GridShape(*map(np.uint64, (1, 1, 0, 0, 1, n)))
        seen, fresh = np.zeros((2, -(-n // 64)), np.uint64)
        known = cpu_told.Columns(seen, fresh, np.empty(n, kind))
        team = crew(threads, work=10**9)
        found = stripes._queue(np.empty(n, kind), team)
        frontier = np.arange(rows, dtype=kind)
        outward = cpu_top_down.Outward(indptr, indices, np.empty((0, 0), np.uint64))
        team.run(slow, outward, frontier, cpu_told.Names(shape, names), known, found)
        assert set(found.vertices[: found.tail[0]]) == set(range(columns))
        assert (known.best[:columns] == names[first].min()).all()


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
def test_columns_are_packed_by_any_team(kind, share):
    """Messages are those of `pack_values`, whose lists may be in another order."""
    rng = np.random.default_rng(3)
    layout = Grid(20_003, 3, 2, 3)  # rank 3 of 3 x 2
    listed = stripes.of_columns(layout)
    locals_of = [base + np.arange(size) * step for base, step, size in listed]
    offer = remade(cpu_offers.offer_columns)
    for threads in (1, 2, 5):
        some = [np.sort(rng.choice(size, int(share * size), False)) for _, _, size in listed]
        pairs = list(zip(locals_of, some, strict=True))
        found = rng.permutation(np.concatenate([ids[k] for ids, k in pairs])).astype(np.uint32)
        seen, fresh = np.zeros((2, -(-layout.n_local // 64)), np.uint64)
        np.bitwise_or.at(fresh, found // 64, np.uint64(1) << np.uint64(found % 64))
        best = rng.integers(0, layout.n, layout.n_local).astype(kind)
        marked, known = fresh.copy(), cpu_told.Columns(seen, fresh, best)
        team = crew(threads, work=10**9)
        expected = [pack_values(k, best[ids[k]], ids.size) for ids, k in pairs]
        sizes = np.array([message.size for message in expected])
        words = np.full(int(sizes.sum()), 77, kind)  # what was there before does not matter
        width = layout.R + cpu_told.GAP
        counts = np.empty((threads + 1, width), np.int64)
        starts = np.empty((threads, 2, width), np.int64)
        offers = cpu_offers.Offers(words, counts, starts, *stripes._stripes(listed))
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
            steps = stripes.Steps(G, view, view, np.int32, threads)
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
        old = getattr(stripes.Steps, name)

        def step(self, depth, *follow, old=old, name=name):
            if self.grid.rank == 0:
                ways.append(name)
            return old(self, depth, *follow)

        monkeypatch.setattr(stripes.Steps, name, step)
    compared([A], ((2, 2),), [(int(np.diff(A.indptr).argmax()), {})])
    last = max(k for k, way in enumerate(ways) if way == "bottom_up")
    assert sizes[last] < A.shape[0] // 18


@pytest.mark.parametrize("step", [1, 2, 3, 9, 10, 21, 22, 63, 64, 100])
def test_bits_with_gaps(step):
    """Wherever they begin, and however far they are apart."""
    rng = np.random.default_rng(step)
    spread_bits = cpu_told.spread_bits

    @njit
    def run(gaps, row, words, base, step, into, alone):
        for i in range(words.size):
            v = np.uint64(base + i * 64 * step)
            spread_bits(gaps, row, words[i], v, np.uint64(step), into, alone)

    for base, alone in ((0, True), (1, False), (63, True), (64, False), (137, True)):
        words = rng.integers(0, 1 << 64, 5, np.uint64, endpoint=False)
        words[1], words[3] = 0, np.uint64(1) << np.uint64(63)
        places = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        last = base + step * int(places[-1])
        into = np.zeros(last // 64 + 1, np.uint64)  # no word is touched that has no bits
        kept = rng.integers(0, last + 1, 3)
        np.bitwise_or.at(into, kept // 64, np.uint64(1) << (kept % 64).astype(np.uint64))
        for row, steps in enumerate(((step, 1), (1, step))):
            got = into.copy()
            run(cpu_told.gaps(*steps), row, words, base, step, got, alone)
            found = np.flatnonzero(np.unpackbits(got.view(np.uint8), bitorder="little"))
            assert np.array_equal(found, np.union1d(kept, base + step * places))


@given(graphs(max_n=300), st.data())
@settings(max_examples=15)
def test_random_graphs_by_teams(A: sp.csr_array, data: st.DataObject) -> None:
    n = A.shape[0]
    sources = data.draw(st.lists(st.integers(0, n - 1), max_size=60)) if n else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stripes, "TOGETHER", 0)
        compared([A], ((2, 2), (1, 3)), [(sources, {"threads": 3})])


@given(graphs(max_n=40), st.integers(0, 5), st.data())
@settings(max_examples=25)
def test_random_graphs(A: sp.csr_array, limit: int, data: st.DataObject) -> None:
    n = A.shape[0]
    sources = data.draw(st.lists(st.integers(0, n - 1), max_size=4)) if n else []
    compared([A], ((2, 2), (1, 5), (3, 2)), [(sources, {"depth_limit": limit}), (sources, {})])


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

    found = dist.run(body, 4)
    assert all(each == found[0] for each in found)
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
    for text, said in zip(texts, found[0], strict=True):
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


def test_the_check_finds_every_change_on_all_ranks():
    for A, rules in ((grid(3, 4), {}), (ZOO["directed path"](), {}), (path(9), {"depth_limit": 2})):
        for shape in ((1, 1), (2, 2), (3, 1)):
            found = dist.run(broken, shape[0] * shape[1], A, shape, rules)
            assert all(each == found[0] for each in found)


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

    found = dist.run(body, 4)
    assert all(each == found[0] for each in found)
    texts = [
        "TypeError: check_bfs: result must be a BFS or",
        "TypeError: check_bfs: level must be a DistributedVector, got ndarray",
        "TypeError: check_bfs: level must hold integers, got dtype float64",
        "ValueError: check_bfs: sources must be vertices 0..9, got 11",
        "CheckFailed: bfs: vertex 0 has level 0 but is no source",
    ]
    for text, said in zip(texts, found[0][:-1], strict=True):
        assert said.startswith(text), said
    assert found[0][-1] is None

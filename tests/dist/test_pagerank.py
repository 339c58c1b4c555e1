"""PageRank on a grid of ranks: one machine's iterations and scores, and the words it receives."""

from __future__ import annotations

import dataclasses
import functools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from delays import delayed
from dist.bodies import refused
from dist.fake_cupy import play
from graphs import ZOO, grid, rmat, star
from matchwood import dist
from matchwood.check import check_pagerank, is_pagerank
from matchwood.communities.propagation.ranks import cpu as tables
from matchwood.ranking.ranks import cpu as cpu_block
from spread_graphs import GRIDS, USUAL_GRIDS, alike, slab
from strategies import graphs
from support import REST, some

NEAR = 1e-10
EVERYWHERE = ("0x0", "1x1", "rmat, directed", "first and last isolated")


def kinds(n):
    rng = np.random.default_rng(n)
    return [
        {},
        {"personalization": rng.random(n) + 0.01},
        {"dangling": rng.random(n) + 0.1, "start": rng.random(n) + 0.01},
        {"tol": 0, "max_iterations": 7, "damping": 0.5},
    ]


def spread(comm, A, shape, engine="cpu", **options):
    return matchwood.distribute(
        slab(A, comm.rank, comm.size), comm=comm, grid=f"{shape[0]}x{shape[1]}", **options
    ).on(engine)


def ranked(comm, A, shape, cases, options):
    """The answers of several calls on one graph, gathered; each is checked where it is."""
    G = spread(comm, A, shape, **options)
    found = []
    for case in cases:
        answer = matchwood.pagerank(G, **case)
        options = {name: value for name, value in case.items() if name != "dtype"}
        check_pagerank(G, answer, **options, replay=True)
        assert answer.scores.local.dtype == np.dtype(case.get("dtype", np.float64))
        found.append(dataclasses.replace(answer, scores=answer.scores.gather(None)))
    return found


def compared(A, shapes, cases, near=NEAR, **options):
    expected = [matchwood.pagerank(A, **case) for case in cases]
    for shape in shapes:
        for answers in dist.run(ranked, shape[0] * shape[1], A, shape, cases, options):
            for found, right in zip(answers, expected, strict=True):
                assert found.iterations == right.iterations, shape
                assert found.converged == right.converged
                assert found.error == pytest.approx(right.error, rel=1e-3, abs=near)
                assert np.abs(found.scores - right.scores).max(initial=0) < near, shape


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(("turn", "name"), some(enumerate(ZOO)))
def test_scores_are_those_of_one_machine(turn, name, rest):
    """Each graph has some of the cases, with weights or without; the next one has others."""
    A = ZOO[name]()
    cases = kinds(A.shape[0])
    shape = ((2, 3), (1, 2), (3, 1))[turn % 3]
    if turn // 3 % 2 == rest:
        compared(A, (shape,), [cases[turn % 4], cases[(turn + 1) % 4]])
    else:
        compared(abs(A), (shape[::-1],), [{**cases[turn % 2], "weighted": True}])
    if name in EVERYWHERE:
        compared(A, USUAL_GRIDS[rest::2], cases[2:])


@pytest.mark.slow
def test_other_orders_and_layouts():
    A = abs(ZOO["rmat, directed"]())
    cases = [{}, {**kinds(512)[1], "weighted": True}]
    for options in ({"order": "hashed"}, {"layout": "ranges"}):
        compared(A, ((2, 3), (4, 4)), cases, **options)


@pytest.mark.slow
def test_ranks_with_a_gpu(monkeypatch):
    """The GPU is played: fake_cupy.py says how."""
    play(monkeypatch)
    compared(ZOO["rmat, directed"](), ((1, 1), (2, 3)), kinds(512), engine="gpu")
    compared(ZOO["first and last isolated"](), ((3, 3),), kinds(6), engine="gpu")


def small_tiles(monkeypatch, busy=16, busiest=5, tile=8, window=7, task=40):
    """Small blocks are read in tiles, and have many of them."""
    sizes = {
        "BUSY": busy, "BUSIEST": busiest, "TILE": tile, "MOST_TILES": 1 << 16, "LOOK_ENTRIES": 32,
        "TILE_ROWS": window, "TILE_TASK": task,
    }  # fmt: skip
    for name, value in sizes.items():
        monkeypatch.setattr(cpu_block, name, value)


def test_busy_columns_come_first(monkeypatch):
    """What few columns give to most entries lies together; sums with weights have the same bits."""
    columns = np.repeat([30, 7, 3, 19], [40, 3, 50, 1]).astype(np.int32)
    indptr = np.array([0, 20, columns.size], np.int32)
    weights, given = np.linspace(1, 2, columns.size), np.arange(1.0, 33.0)
    plain = cpu_block.block_of(indptr, columns, weights, 32, 1)
    assert plain.order.size == 0
    expected = cpu_block.pull(plain, given, 1)
    small_tiles(monkeypatch, busy=3, busiest=1)
    block = cpu_block.block_of(indptr, columns, weights, 32, 1)
    assert block.order.tolist() == [3, 30, 7, 19]
    assert np.array_equal(cpu_block.pull(block, given, 1), expected)
    assert cpu_block.block_of(indptr, columns, None, 32, 1).tiles.cuts.tolist() == [0, 2, 4]


@functools.cache
def skewed(rows, n_columns, seed, longest=0):
    """Rows of which many are empty, with columns of which few have most entries."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.zipf(1.6, rows) - 1, n_columns // 20) * (rng.random(rows) < 0.6)
    lengths[rng.integers(rows)] = longest
    chance = 1.0 / (1 + np.arange(n_columns)) ** 1.5
    chance = rng.permutation(chance / chance.sum())
    parts = [
        np.sort(rng.choice(n_columns, size, replace=False, p=chance)) for size in lengths.tolist()
    ]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return indptr, np.concatenate(parts)


@pytest.mark.parametrize("index", [np.int32, pytest.param(np.int64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tiles_add_up_what_the_columns_give(monkeypatch, index, kind, threads):
    """Against SciPy's product; each number of threads and of owners gives the same bits."""
    rng = np.random.default_rng(7)
    indptr, columns = skewed(3000, 5000, 7, longest=2500)
    small_tiles(monkeypatch, busy=400, busiest=20, tile=2300, window=64, task=1000)
    block = cpu_block.block_of(indptr.astype(index), columns.astype(index), None, 5000, threads)
    assert block.tiles.cuts.size > 3
    assert block.tiles.rows.size > 10
    assert block.tiles.lengths.max() > cpu_block.RUN_LENGTHS
    given = rng.random(5000).astype(kind)
    A = sp.csr_array((np.ones(columns.size), columns, indptr), shape=(3000, 5000))
    right = A @ given.astype(np.float64)
    found = cpu_block.pull(block, given, threads)
    assert found.dtype == kind
    assert np.abs(found - right).max() <= 16 * np.finfo(kind).eps * right.max()
    assert np.array_equal(found, cpu_block.pull(block, given, 1))
    counts = [1000, 1000, 1000]
    dealt = np.full(3000, np.nan, kind)
    cpu_block.pull_by_owner(block, cpu_block.in_order(block, given), counts, dealt, threads)
    assert np.array_equal(dealt.reshape(3, 1000).T.ravel(), found)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([1, 2, 3]))
def test_tiles_of_any_shape(seed, rows, threads):
    """Whole numbers, so that every order of additions gives the same."""
    rng = np.random.default_rng(seed)
    indptr, columns = skewed(rows, 80, seed)
    with pytest.MonkeyPatch.context() as monkeypatch:
        busiest = int(rng.integers(1, 8))
        small_tiles(
            monkeypatch, 8, busiest, int(rng.integers(1, 40)), int(rng.integers(1, 20)),
            int(rng.integers(1, 200)),
        )  # fmt: skip
        narrow = indptr.astype(np.int32), columns.astype(np.int32)
        block = cpu_block.block_of(*narrow, None, 80, threads)
    given = rng.integers(0, 1000, 80).astype(np.float64)
    A = sp.csr_array((np.ones(columns.size), columns, indptr), shape=(rows, 80))
    assert np.array_equal(cpu_block.pull(block, given, threads), A @ given)


@pytest.fixture
def tiled(monkeypatch):
    """A list with an item for each block that is cut into tiles."""
    made, original = [], cpu_block.tiles_of

    def tiles_of(*arguments):
        made.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(cpu_block, "tiles_of", tiles_of)
    return made


@pytest.mark.slow
def test_tiles_of_a_team_whose_members_wait():
    """A member may be tiles ahead of another where nothing holds it back."""
    name = cpu_block.__name__
    slow = delayed([name], TILE_ROWS=16, TILE_TASK=200)[name]
    indptr, columns = skewed(3000, 5000, 7, longest=2500)
    order, cuts = np.arange(5000), np.array([0, 70, 1200, 3500, 5000])
    given = np.random.default_rng(9).integers(0, 1000, 5000).astype(np.float64)
    A = sp.csr_array((np.ones(columns.size), columns, indptr), shape=(3000, 5000))
    tiles = slow.tiles_of(indptr, columns, order, cuts, 5000, 3)
    for _ in range(5):
        sums = np.full(3000, np.nan)
        slow.pull_tiles(tiles, indptr, given, sums, np.zeros(1, np.uint64), 3)
        assert np.array_equal(sums, A @ given)


@pytest.mark.slow
def test_scores_by_tiles_are_those_of_one_machine(monkeypatch, tiled):
    small_tiles(monkeypatch)
    rng = np.random.default_rng(5)
    scattered = sp.csr_array(sp.random_array((700, 700), density=0.01, rng=rng))
    for A in (ZOO["rmat, directed"](), ZOO["rmat"](), star(300), scattered):
        tiled.clear()
        compared(A, ((1, 1), (1, 2), (2, 2), (2, 3)), kinds(A.shape[0]))
        assert tiled
    assert len(tiled) == 13  # all ranks of all grids: none is too small
    tiled.clear()
    compared(abs(ZOO["rmat"]()), ((2, 2),), [{"weighted": True}])
    assert not tiled  # entries with weights are read beside these
    small_tiles(monkeypatch, busy=100)
    case = {"dtype": np.float32, "tol": 0, "max_iterations": 20}
    compared(rmat(10, 8, symmetric=False), ((1, 1), (2, 3)), [case], near=1e-6)
    assert tiled


def test_neighbours_that_lie_near_are_read_in_windows(monkeypatch, tiled):
    """What they give is in the cache already."""
    small_tiles(monkeypatch, tile=32)
    compared(grid(40, 40), ((1, 1), (2, 2)), [{}])
    assert not tiled


def test_single_precision():
    A = rmat(10, 8, symmetric=False)
    case = {"dtype": np.float32, "tol": 0, "max_iterations": 20}
    compared(A, ((1, 1), (2, 3)), [case, {**case, "weighted": True}], near=1e-6)


@pytest.mark.slow
@settings(max_examples=25)
@given(graphs(weights="positive"), st.sampled_from(GRIDS), st.booleans())
def test_random_graphs(A, shape, weighted):
    compared(A, (shape,), [{"weighted": weighted}, {"weighted": weighted, "damping": 0.5}])


def counted(comm, A, shape, iterations):
    """Words and messages of so many iterations more."""
    G = spread(comm, A, shape)
    matchwood.pagerank(G, tol=0, max_iterations=1)  # the views are made
    found = []
    for number in (0, iterations):
        comm.traffic.clear()
        matchwood.pagerank(G, tol=0, max_iterations=10 + number)  # as many digits
        found.append((comm.traffic.bytes_received / 8, comm.traffic.messages))
    return found[1][0] - found[0][0], found[1][1] - found[0][1]


@pytest.mark.parametrize("shape", [(4, 4), (2, 8), (8, 2), (1, 5), (3, 3)])
def test_words_and_messages_of_an_iteration(shape):
    R, C = shape
    n, p = 720 * R * C, R * C
    A = sp.csr_array(sp.random_array((n, n), density=4 / n, rng=np.random.default_rng(1)))
    exact = n / R * (C - 1) / C + n / C * (R - 1) / R
    scalars = 2 * (R - 1 + C - 1)  # the change and what is lost, added up over all ranks
    for words, messages in dist.run(counted, p, A, shape, 10):
        assert words == 10 * (exact + scalars)
        assert messages == 10 * 2 * (R - 1 + C - 1)
        if shape == (4, 4):
            assert exact == 1.5 * n / 4


def test_vectors_that_are_spread_are_taken_as_they_are():
    A = rmat(8, 4, symmetric=False)
    rng = np.random.default_rng(3)
    given = {name: rng.random(256) for name in ("personalization", "dangling", "start")}
    right = matchwood.pagerank(A, **given)

    def call(comm):
        G = spread(comm, A, (2, 2), order="hashed")
        own = {name: G.vector(value[G.ids]) for name, value in given.items()}
        found = matchwood.pagerank(G, **own)
        check_pagerank(G, found, **own, replay=True)
        return found.iterations, found.scores.gather(None)

    for iterations, scores in dist.run(call, 4):
        assert iterations == right.iterations
        assert np.abs(scores - right.scores).max() < NEAR


def test_bad_arguments_are_refused_on_all_ranks():
    A = grid(5, 5)

    def call(comm):
        G = spread(comm, A, (2, 2))
        one = comm.rank == 1
        other = spread(comm, A, (1, 4))
        ones = np.ones(25)
        bad = np.where(G.ids == 7, -1.0, 1.0)  # vertex 7 is owned by one rank
        rank = partial(matchwood.pagerank, G)
        return [
            refused(comm, lambda: rank(damping=0.5 if one else 0.6)),
            refused(comm, lambda: rank(tol=1e-3 if one else 1e-4)),
            refused(comm, lambda: rank(weighted=one)),
            refused(comm, lambda: rank(dtype=np.float32 if one else np.float64)),
            refused(comm, lambda: rank(personalization=ones * (2 if one else 1))),
            refused(comm, lambda: rank(personalization=None if one else ones)),
            refused(comm, lambda: rank(dangling=ones[:-1])),
            refused(comm, lambda: rank(start=np.zeros(25))),
            refused(comm, lambda: rank(start=G.vector(np.zeros(G.grid.owned)))),
            refused(comm, lambda: rank(start=other.vector(np.ones(other.grid.owned)))),
            refused(comm, lambda: rank(start=G.vector(bad))),
            refused(comm, lambda: rank(start=G.vector(np.full(G.grid.owned, np.nan)))),
        ]

    errors = alike(call, 4)
    assert {kind for kind, _ in errors} == {"ValueError"}
    assert all(text.startswith("pagerank: ") for _, text in errors)


def test_negative_weights_are_refused_on_all_ranks():
    A = grid(4, 4)
    A.data[5] = -1.0

    def call(comm):
        G = spread(comm, A, (2, 2))
        return refused(comm, lambda: matchwood.pagerank(G, weighted=True))

    errors = dist.run(call, 4)
    with pytest.raises(ValueError) as caught:
        matchwood.pagerank(A, weighted=True)
    assert set(errors) == {("ValueError", str(caught.value))}


def test_weights_beyond_the_type_of_scores_are_refused_on_all_ranks():
    """One row, of one rank, whose sum has no inverse in the type."""
    for size, dtype in ((1e39, np.float32), (1e-45, np.float32), (1e-310, np.float64)):
        A = grid(5, 5).astype(np.float64)
        A.data[:] = 1
        A.data[A.indptr[7] : A.indptr[8]] = size

        def call(comm, A=A, dtype=dtype):
            G = spread(comm, A, (2, 2))
            return refused(comm, lambda: matchwood.pagerank(G, weighted=True, dtype=dtype))

        errors = dist.run(call, 4)
        assert len(set(errors)) == 1
        assert "scale the weights" in errors[0][1]


def broken(G, found):
    """Answers that are wrong, each on one rank or in one number."""
    comm = G.comm
    last = comm.rank == comm.size - 1

    def scores(change):
        local = found.scores.local.copy()
        if last and local.size:
            change(local)
        return dataclasses.replace(found, scores=G.vector(local))

    def put(value):
        def change(local):
            local[0] = value

        return change

    def swap(local):
        local[[0, -1]] = local[[-1, 0]] + [0.01, -0.01]

    one = partial(dataclasses.replace, found)
    yield scores(put(-0.1))
    yield scores(put(np.nan))
    yield scores(put(np.inf))
    yield scores(put(1e308))
    yield scores(put(0.5))
    yield scores(swap)
    yield one(scores=G.vector(found.scores.local * (1.001)))
    yield one(error=-1.0) if last else found
    yield one(error=found.error * 1e6, converged=False)
    yield one(error=found.error * (2 if last else 1))
    yield one(error=float("nan")) if last else found
    yield one(converged=not found.converged) if last else found
    yield one(iterations=found.iterations + 1) if last else found
    yield one(iterations=0)
    yield one(iterations=500)
    yield one(iterations=90)


def test_every_way_of_breaking_an_answer_is_refused_on_all_ranks():
    A = rmat(8, 4, symmetric=False)

    def call(comm):
        G = spread(comm, A, (2, 3))
        found = matchwood.pagerank(G)
        told = [refused(comm, lambda bad=bad: check_pagerank(G, bad)) for bad in broken(G, found)]
        for wrong in (
            {"damping": 0.5}, {"weighted": True}, {"personalization": 1.0 + np.arange(256)},
            {"tol": 1e-12},
        ):  # fmt: skip
            told.append(refused(comm, lambda wrong=wrong: check_pagerank(G, found, **wrong)))
        for wrong in (found.iterations - 1, found.iterations + 1):
            bad = dataclasses.replace(found, iterations=wrong)
            told.append(refused(comm, lambda bad=bad: check_pagerank(G, bad, replay=True)))
        assert is_pagerank(G, found)
        assert not is_pagerank(G, found, damping=0.5)
        return told

    told = alike(call, 6)
    assert {kind for kind, _ in told} == {"CheckFailed"}


def test_answers_of_another_kind_are_no_answers():
    A = grid(4, 4)

    def call(comm):
        G = spread(comm, A, (2, 2))
        found = matchwood.pagerank(G)
        whole = dataclasses.replace(found, scores=found.scores.gather(None))
        words = dataclasses.replace(found, scores=G.vector(found.scores.local.astype(str)))
        return [
            refused(comm, lambda bad=bad: check_pagerank(G, bad))
            for bad in (whole, words, "scores", dataclasses.replace(found, converged=1))
        ]

    told = alike(call, 4)
    assert {kind for kind, _ in told} == {"TypeError"}


def test_a_rank_takes_its_own_threads(monkeypatch):
    """Not all CPUs of the host, which other ranks use too."""
    asked = []
    original = cpu_block.crew

    def crew(threads=None, **options):
        asked.append(threads)
        return original(threads, **options)

    for module in (cpu_block, tables):
        monkeypatch.setattr(module, "crew", crew)

    def call(comm):
        G = spread(comm, abs(ZOO["rmat"]()), (2, 2))
        check_pagerank(G, matchwood.pagerank(G))
        found = matchwood.label_propagation(G, max_rounds=1)
        matchwood.check.check_label_propagation(G, found, settled=False)

    dist.run(call, 4, threads=1)
    assert set(asked) == {1}

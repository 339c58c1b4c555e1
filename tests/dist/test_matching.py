"""The matching of a graph that is spread over ranks is that of one machine, and so is its check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from dist.fake_cupy import play
from dist.test_algorithms_gpu import compare as on_gpus
from graphs import ZOO, complete, grid, path, rmat, star
from matchwood import dist
from matchwood.engines.cpu import crew
from matchwood.errors import CheckFailed
from matchwood.matching import weighted_matching
from matchwood.matching.check import check_locally_dominant, check_matching
from matchwood.matching.cpu import Ties
from matchwood.matching.dominant import ranks as rule
from matchwood.matching.dominant.ranks import cpu as steps
from matchwood.matching.dominant.ranks.cpu import owners
from matchwood.matching.dominant.ranks.cpu.owners import Received
from matchwood.primitives.frontier.cpu import BUFFER
from spread_graphs import CREW, GRIDS, USUAL_GRIDS, alike, slab, tried
from strategies import graphs
from support import REST, some

WORDS = 4.5  # received by a rank, over n / sqrt(p)
EVERYWHERE = ("0x0", "one edge", "rmat, directed")


def spread(comm: Any, A: Any, sides: Any, order: str = "given") -> Any:
    share = slab(A, comm.rank, comm.size)
    return matchwood.distribute(share, comm=comm, grid=sides, order=order)


def found_on(comm: Any, A: Any, sides: Any, order: str, options: dict[str, Any]) -> tuple:
    """What a rank found, checked; the mates of all."""
    G = spread(comm, A, sides, order)
    found = weighted_matching(G, **options)
    found.check(G)
    own = found.edges()
    assert np.isin(own[:, 0], found.mate.ids).all()
    edges = np.concatenate(comm.objects(own))
    numbers = (found.weight, found.rounds, found.cardinality, repr(found))
    return found.mate.gather(None), edges[edges[:, 0].argsort()], numbers


def compare(A: Any, grids: Any, order: str = "given", **options: Any) -> None:
    one = weighted_matching(A, method="dominant", **options)
    for sides in grids:
        for mate, edges, numbers in dist.run(
            found_on, sides[0] * sides[1], A, sides, order, options
        ):
            assert mate.dtype == one.mate.dtype
            assert np.array_equal(mate, one.mate), sides
            assert np.array_equal(edges, one.edges())
            assert np.isclose(numbers[0], one.weight, rtol=1e-12, atol=0)
            assert numbers[2] == one.cardinality
            if sides != (1, 1):  # one rank takes the suitor method
                assert numbers[1] == one.rounds
                assert numbers[3] == repr(one)


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("name", some(ZOO))
def test_the_zoo(name, rest):
    turn = list(ZOO).index(name)
    for k, sides in enumerate(USUAL_GRIDS):
        if (k + turn) % 6 == 3 * rest or (name in EVERYWHERE and not rest):
            order, ties = ("given", "hashed")[k % 2], ("hash", "index")[(k + turn) // 2 % 2]
            compare(ZOO[name](), [sides], order, ties=ties, rng=turn)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(graphs(), st.sampled_from(GRIDS), st.sampled_from(["given", "hashed"]), st.booleans())
def test_drawn_graphs(A, sides, order, by_hash):
    compare(A, [sides], order, ties="hash" if by_hash else "index")


@pytest.mark.slow
def test_equal_weights_zeros_signs_and_integers():
    rng = np.random.default_rng(5)
    A = sp.csr_array(rmat(9, 6))
    for data in (
        np.ones(A.nnz, np.float32),
        rng.integers(-2, 3, A.nnz),  # zeros are no edges
        rng.integers(-(2**52), 2**52, A.nnz),
        -np.ones(A.nnz),
        np.full(A.nnz, 5e-324),
        np.full(A.nnz, 1e300),
    ):
        B = sp.csr_array((data, A.indices, A.indptr), A.shape)
        compare(B, [(2, 3)], ties="hash")
        compare(B, [(2, 2)], ties="index")


def test_long_chains():
    """Ascending weights: a round matches one edge, and only its neighbours have work."""
    A = path(90)
    A = sp.csr_array((np.minimum(A.indices, A.tocoo().row) + 1.0, A.indices, A.indptr), A.shape)
    compare(A, [(2, 2), (1, 3)])
    compare(grid(12, 5), [(3, 2)], ties="index")
    compare(star(200), [(2, 2)])
    compare(complete(40), [(3, 1)], "hashed")


def test_every_row_proposes_once_on_any_team(monkeypatch):
    """Members take parts of the rows in any order; records are in the order of the parts."""
    A, sent, first = sp.csr_array(path(20_000)), [], {}
    A.data = np.random.default_rng(3).random(A.nnz)
    begin, send = steps.Run.__init__, steps.Run._sent

    def roomy(run: Any, *arguments: Any) -> None:
        begin(run, *arguments)
        run.words = np.empty(4 * run.words.size, run.words.dtype)

    def counted(run: Any, comm: Any, out: Any) -> Any:
        records = int(out.counts.sum())
        sent.append((records, run.grid.n_rows))
        key = (run.grid.R, run.grid.rank, run.threads)
        first.setdefault(key, out.words[: records * out.width].copy())
        return send(run, comm, out)

    monkeypatch.setattr(steps.Run, "__init__", roomy)
    monkeypatch.setattr(steps.Run, "_sent", counted)
    monkeypatch.setattr(CREW, "TOGETHER", 0)
    for threads in (1, 5):
        compare(A, [(4, 1), (2, 1), (1, 2)], threads=threads)
    assert all(records <= rows for records, rows in sent)
    assert len(first) == 16
    for (R, rank, threads), words in first.items():
        assert words.size > 0
        assert np.array_equal(words, first[R, rank, 6 - threads])


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 8, 10**9])
def test_rows_wait_in_lists_from_any_round_on(few, monkeypatch):
    monkeypatch.setattr(steps, "ROWS_PER_NEWS_WORD", few)
    for name in ("few weights", "rmat", "star", "path", "float32", "int64 indices"):
        compare(ZOO[name](), [(2, 3)], "given")
        compare(ZOO[name](), [(2, 1)], "hashed", ties="index")


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 3, 10**9])
def test_few_matched_vertices_are_told_to_all_ranks(few, monkeypatch):
    """From the second round on, from any round on, never; also where that takes bitmaps."""
    monkeypatch.setattr(rule, "VERTICES_PER_MATCHED", few)
    asked = []
    tell = steps.Run.tell

    def noted(run: Any, matched: Any, few: bool) -> Any:
        asked.append(few)
        return tell(run, matched, few)

    monkeypatch.setattr(steps.Run, "tell", noted)
    for name in ("few weights", "rmat", "star", "path", "int64 indices", "0x0"):
        compare(ZOO[name](), [(2, 3)], "given")
        compare(ZOO[name](), [(3, 1)], "hashed", ties="index")
    assert (any(asked), all(asked)) == (few < 10**9, False)


def test_nothing_is_sent_to_oneself(monkeypatch):
    """Ranks read their own records where they wrote them; the others get theirs alone."""
    A, given = ZOO["rmat"](), []
    send = steps.Run._sent

    def noted(run: Any, comm: Any, out: Any) -> Any:
        came = send(run, comm, out)
        counts = out.counts.sum(0)[: out.receivers] * out.width
        assert (out.own, came.own) == (comm.rank, comm.rank)
        assert came.kept.size == counts[comm.rank]
        assert came.starts[comm.rank] == came.starts[comm.rank + 1]
        assert np.shares_memory(came.kept, out.words) or came.kept.size == 0
        given.append(counts.sum() - counts[comm.rank])
        return came

    monkeypatch.setattr(steps.Run, "_sent", noted)
    compare(A, [(2, 2), (1, 3), (3, 1)])
    assert max(given) > 0


@pytest.mark.slow
def test_steps_of_ranks_with_a_gpu(monkeypatch):
    """Their kernels run on the host: fake_cupy.py says how."""
    play(monkeypatch)
    for turn, name in enumerate(("few weights", "star", "float32", "explicit zeros", "path")):
        order, sides = ("given", "hashed")[turn % 2], [(2, 2), (1, 5), (3, 1)][turn % 3]
        dist.run(on_gpus, sides[0] * sides[1], ZOO[name](), order, sides, ("matchings",))


@pytest.mark.slow
def test_equal_weights_at_any_place_of_a_row():
    """Ties among the first edges of a row, behind them, and between blocks."""
    rng = np.random.default_rng(11)
    for A in (complete(60), complete(230), rmat(9, 8)):
        upper = sp.triu(A, 1).tocoo()
        values = rng.choice([1.0, 2.0, 3.0, 4.0, 4.5, 5.0, 6.0, 7.0], upper.nnz)
        B = sp.coo_array((values, (upper.row, upper.col)), A.shape)
        compare(sp.csr_array(B + B.T), [(1, 2), (2, 2), (3, 3), (2, 1)])
        B.data[:] = rng.permutation(upper.nnz) + 1.0  # one place, wherever it is
        B.data[rng.integers(0, upper.nnz, 20)] = upper.nnz + 1.0  # of a few rows two places or more
        compare(sp.csr_array(B + B.T), [(1, 2), (2, 1)])


@pytest.mark.slow
def test_many_threads_on_a_rank(monkeypatch):
    """Kernels share their work among members also where it is small."""
    monkeypatch.setattr(CREW, "INLINE_WORK", 0)
    monkeypatch.setattr(CREW, "TOGETHER", 0)
    assert crew(3, work=1).size == 3
    rng = np.random.default_rng(2)
    for A in (rmat(8, 6), grid(9, 9), star(100)):
        weights = sp.csr_array((rng.integers(1, 9, A.nnz), A.indices, A.indptr), A.shape)
        for threads, few in ((2, 32), (3, 0)):
            monkeypatch.setattr(steps, "ROWS_PER_NEWS_WORD", few)
            compare(A, [(2, 2)], threads=threads)
            compare(weights, [(1, 3)], "hashed", threads=threads)
    large = rmat(15, 6)  # members have more records than their buffers hold, and share places
    tied = sp.csr_array((rng.integers(1, 9, large.nnz), large.indices, large.indptr), large.shape)
    for A in (large, tied):
        compare(A, [(2, 2), (3, 1)], threads=3)
        compare(A, [(1, 3), (2, 1)], "hashed", threads=4)


def settled(packets: Any, places: int, threads: int, by_hash: bool) -> owners.Owned:
    """Own vertices of which every third points at number 7, after packets from others came."""
    word, bits = packets.dtype, np.dtype(np.int32)
    owned = owners.Owned(
        np.arange(places, dtype=word), np.full(places, 2**32 - 1, word), np.zeros(places, bits),
        np.full(places, 2**32 - 1, word), np.zeros(places, bits), np.zeros(places, np.int32),
        np.empty(places, word), np.empty(packets.size, word),
    )  # fmt: skip
    owned.pointer[::3] = 7
    queued, matched = np.zeros((2, 1), np.int64)
    queues = owners.Queues(queued, matched, np.empty((2, threads, BUFFER), word))
    bitmap = np.zeros(-(-places // 32), word)
    ties = Ties(np.uint64(3), by_hash)
    some = packets.size // 6 * 3  # from other ranks; the rest from this one
    received = Received(packets[:some], np.array([0, 0, some]), packets[some:], 0, 3)
    crew(threads, work=10**9).run(owners.settle, received, ties, owned, queues, bitmap)
    told = np.unpackbits(bitmap.view(np.uint8), bitorder="little")[:places]
    met = owned.matched[: matched[0]]
    assert np.array_equal(np.unique(met), np.flatnonzero(told))
    assert (met % 3 == 0).all()
    return owned._replace(matched=np.sort(met))


@pytest.mark.parametrize("by_hash", [True, False])
@pytest.mark.parametrize("threads", [2, 3, 5])
def test_members_that_hear_of_one_vertex_at_once(threads, by_hash):
    """All members go through the places in the same order, with the same few weights."""
    rng = np.random.default_rng(8)
    places, each = 40_000, 6
    who = np.tile(np.repeat(np.arange(places), each), threads)
    name, weight = rng.integers(places, 10**6, who.size), rng.integers(1, 9, who.size)
    name[rng.integers(0, who.size, 30_000)] = 7  # so many are matched that a bitmap is shorter
    packets = np.stack((who, name, weight), 1).astype(np.uint32).reshape(-1)
    one = settled(packets, places, 1, by_hash)
    best = np.zeros(places, np.int64)
    waits = (who % 3 != 0) | (name != 7)
    np.maximum.at(best, who[waits], weight[waits])
    assert np.array_equal(best, one.waiter_weight)
    for _ in range(5):
        several = settled(packets, places, threads, by_hash)
        assert np.array_equal(several.waiter_weight, one.waiter_weight)
        assert np.array_equal(several.waiter, one.waiter)
        assert np.array_equal(several.matched, one.matched)


def test_runs_share_their_arrays_and_not_their_answers():
    """A second matching of a graph finds its arrays where they were, and spoils no answer."""
    A = matchwood.generators.rmat(15, weights="uniform")

    def ask(comm):
        G = spread(comm, A, (2, 2))
        first = weighted_matching(G, rng=1)
        kept = first.mate.local.copy()
        again = weighted_matching(G, rng=1)
        other = weighted_matching(G, rng=2, ties="index")
        same = np.array_equal(first.mate.local, kept) and np.array_equal(again.mate.local, kept)
        run = [
            steps.Run(G, G.undirected_weights(), 0, True, 1, rule.stripes(G.grid)) for _ in range(2)
        ]
        assert other.cardinality == first.cardinality  # no weights are equal
        return (
            same,
            np.shares_memory(run[0].words, run[1].words),
            np.shares_memory(run[0].mate, run[1].mate),
        )

    assert set(dist.run(ask, 4)) == {(True, True, False)}


def words_of(comm: Any, A: Any, sides: Any) -> tuple[float, int]:
    """Words of 8 bytes that a rank receives in a whole run, and rounds."""
    G = spread(comm, A, sides)
    G.undirected_weights()
    before = comm.traffic.bytes_received
    found = weighted_matching(G)
    return (comm.traffic.bytes_received - before) / 8, found.rounds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "sides", "most"),
    [(np.float64, (4, 4), 2.5), (np.float32, (4, 4), 1.9), (np.float32, (16, 1), 0.9)],
)
def test_words_received(kind, sides, most):
    n = 1 << 16
    A = matchwood.generators.rmat(16, weights="uniform", dtype=kind)
    ranks = dist.run(words_of, 16, A, sides)
    words = max(received for received, _ in ranks) / (n / 4)
    assert words <= most <= WORDS
    assert {rounds for _, rounds in ranks} == {8}


# Arguments


def test_methods_of_one_machine_are_refused():
    def ask(comm, method):
        return tried(lambda: weighted_matching(spread(comm, path(5), None), method=method))

    for method in ("greedy", "suitor", "augmented", "streaming", "random_weighted", "exact"):
        (text,) = set(dist.run(ask, 2, method))
        assert text.startswith(f"EngineUnavailable: weighted_matching: method {method!r}")
        assert "'dominant'" in text


def test_one_rank_takes_the_methods_of_one_machine():
    def ask(comm, method):
        return weighted_matching(spread(comm, path(5), None), method=method).method

    assert dist.run(ask, 1, "auto") == [weighted_matching(path(5)).method]
    assert dist.run(ask, 1, "dominant") == dist.run(ask, 3, "auto")[:1] == ["dominant"]


def test_arguments_must_be_the_same_on_all_ranks():
    def ask(comm):
        G = spread(comm, path(5), None)
        return [
            tried(lambda: weighted_matching(G, rng=comm.rank)),
            tried(lambda: weighted_matching(G, ties="hash" if comm.rank else "index")),
            tried(lambda: weighted_matching(G, engine="reference")),
            tried(lambda: weighted_matching(G, threads=0)),
        ]

    first = alike(ask, 3)
    assert first[0].startswith("ValueError: weighted_matching: rng must be the same on all ranks")
    assert first[1].startswith("ValueError: weighted_matching: ties must be the same")
    assert first[2].startswith("EngineUnavailable: weighted_matching: engine must be None or 'cpu'")
    assert first[3].startswith("ValueError: weighted_matching: threads must be")


def test_weights_that_are_refused():
    A = path(6).astype(np.float64)
    A.data[3] = np.nan
    huge = sp.csr_array((np.full(A.nnz, 1.7e308), A.indices, A.indptr), A.shape)
    for B in (A, huge):
        expected = tried(lambda B=B: weighted_matching(B))
        found = dist.run(
            lambda comm, B=B: tried(lambda: weighted_matching(spread(comm, B, None))), 4
        )
        assert set(found) == {expected}


def test_a_bound_needs_one_machine():
    def ask(comm):
        found = weighted_matching(spread(comm, path(5), None))
        return tried(lambda: found.bound)

    (text,) = set(dist.run(ask, 2))
    assert text.startswith("EngineUnavailable: matching_bound")


# Checks


def broken(mate: Any, one: Any) -> Any:
    """Ways to spoil a right array of mates, one after the other."""
    matched = np.flatnonzero(mate >= 0)
    u = matched[0]
    v = mate[u]
    w = next(x for x in matched if x not in (u, v))
    x = mate[w]

    def changed(*pairs: tuple[int, int]) -> Any:
        spoiled = mate.copy()
        for at, value in pairs:
            spoiled[at] = value
        return spoiled

    yield changed((u, -1))  # not mutual
    yield changed((u, u))
    yield changed((u, mate.size))
    yield changed((v, -2), (w, mate.size + 5))
    yield changed((u, w))
    yield changed((u, -1), (v, -1))  # not maximal, so not the greedy one
    yield changed((u, w), (w, u), (v, x), (x, v))  # no edges, or not the heaviest
    free = np.flatnonzero(mate < 0)
    if free.size > 1:
        yield changed((free[0], free[1]), (free[1], free[0]))
    yield np.full_like(mate, -1)
    yield one  # the matching of another order of edges


def refusals(A: Any, mate: Any) -> list[str]:
    return [
        tried(lambda: check_matching(A, mate, weighted=True)),
        tried(lambda: check_matching(A, mate)),
        tried(lambda: check_locally_dominant(A, mate, rng=3)),
        tried(lambda: check_locally_dominant(A, mate, ties="index")),
    ]


def refusals_on(comm: Any, A: Any, sides: Any, order: str, spoiled: list[Any]) -> list[list[str]]:
    G = spread(comm, A, sides, order)
    return [refusals(G, G.vector(mate[G.ids])) for mate in spoiled]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["few weights", "rmat", "explicit zeros", "directed", "shuffled tree"]
)
def test_spoiled_answers_are_refused_as_on_one_machine(name):
    A = ZOO[name]()
    mate = weighted_matching(A, rng=3).mate
    spoiled = [mate, mate.astype(np.int64), *broken(mate, weighted_matching(A, rng=4).mate)]
    expected = [refusals(A, each) for each in spoiled]
    assert expected[0][:3] == [None, None, None]
    assert sum(text is not None for each in expected for text in each) >= 20
    for sides, order in (((1, 1), "given"), ((2, 3), "given"), ((4, 4), "hashed")):
        for found in dist.run(refusals_on, sides[0] * sides[1], A, sides, order, spoiled):
            assert found == expected


def test_answers_spoiled_on_one_rank_are_refused_on_all():
    A = ZOO["rmat"]()

    def ask(comm):
        G = spread(comm, A, (2, 2))
        found = weighted_matching(G)
        here = comm.rank == 2

        def local(values: Any) -> Any:
            vector = G.vector(found.mate.local)
            vector.local = values if here else vector.local
            return vector

        mate = found.mate.local
        answers = [
            replace(found, weight=found.weight * (1 + 1e-6 * here)),
            replace(found, weight=float("nan") if here else found.weight),
            replace(found, weight="heavy" if here else found.weight),
            local(mate[:-1]),
            local(mate.astype(np.float64)),
            local(mate.reshape(-1, 1)),
            mate if here else found.mate,
            found.mate if here else found,
            local(np.full(mate.size, 2**64 - 1, np.uint64)),
            spread(comm, A, (4, 1)).vector(mate),
        ]
        texts = [tried(lambda answer=answer: check_matching(G, answer)) for answer in answers]
        check_matching(G, replace(found, weight=found.weight * (1 + 1e-12 * here)))
        return texts

    first = alike(ask, 4)
    kinds = ["CheckFailed", "CheckFailed", "TypeError", "CheckFailed", "TypeError", "CheckFailed",
             "TypeError", "ValueError", "CheckFailed", "ValueError"]  # fmt: skip
    assert [text.split(":")[0] for text in first] == kinds, first


def test_a_bound_that_does_not_hold():
    A = ZOO["rmat"]()

    def ask(comm):
        G = spread(comm, A, (2, 2))
        found = weighted_matching(G)
        texts = []
        for bound in (found.weight / 2, 1e-9, float("nan"), 10 * found.weight):
            spoiled = replace(found)
            vars(spoiled)["bound"] = bound
            texts.append(tried(lambda spoiled=spoiled: check_matching(G, spoiled)))
        return texts

    first = alike(ask, 4)
    assert all("bound" in text for text in first[:3])
    assert first[3] is None


def test_is_locally_dominant_on_ranks():
    A = ZOO["rmat"]()

    def ask(comm):
        G = spread(comm, A, (2, 2))
        found = weighted_matching(G)
        empty = G.vector(np.full_like(found.mate.local, -1))
        return [
            matchwood.matching.is_locally_dominant(G, found),
            matchwood.matching.is_locally_dominant(G, empty),
            matchwood.matching.is_matching(G, empty),
        ]

    assert dist.run(ask, 4) == [[True, False, True]] * 4
    assert issubclass(CheckFailed, ValueError)


@pytest.mark.parametrize("ties", some(["hash", "index"]))
def test_the_first_rank_does_the_last_of_many_rounds(monkeypatch, ties):
    """Weights that rise along paths: one machine's mates, weights and rounds."""
    monkeypatch.setattr(rule, "LATE_ROUNDS", 3)
    rng = np.random.default_rng(4)
    steps_up = path(400).astype(np.float64)
    steps_up.data[:] = np.minimum(np.repeat(np.arange(400), 2)[1:-1], 390)  # some are equal
    rising = sp.csr_array(sp.triu(steps_up) + sp.triu(steps_up).T)
    several = sp.block_diag([rising, grid(8, 8), sp.csr_array((5, 5)), rising], format="csr")
    place = rng.permutation(several.shape[0])
    shuffled_ = sp.csr_array(several[place][:, place])
    for A in (rising, sp.csr_array(several), shuffled_, shuffled_.astype(np.float32)):
        compare(A, [(2, 2), (3, 1)], ties=ties)
        compare(A, [(1, 3)], "hashed", ties=ties)

    def where(comm):
        G = spread(comm, rising, (2, 2))
        for seed in (1, 0):  # the second finds the arrays of the first
            found = weighted_matching(G, rng=seed)
        return G.stats["weighted_matching"], found.rounds

    one = weighted_matching(rising, method="dominant").rounds
    assert one > 100
    late = "on all 4 ranks, the last rounds on the first"
    assert dist.run(where, 4) == [(late, one)] * 4
    monkeypatch.setattr(rule, "LEFT_ENTRIES", 0)
    assert dist.run(where, 4) == [("on all 4 ranks", one)] * 4

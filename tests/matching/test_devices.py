"""Matchings on simulated devices: the same mates as everywhere, and what travels is counted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, from_edges, grid, rmat, star
from matching_graphs import weighted
from matchwood import Devices, OutOfMemory
from matchwood.engines.devices import plan as plans
from simulated_devices import simulated
from strategies import graphs
from support import looped

DEVICES, BATCHES, LISTS = (1, 2, 3, 4), (1, 3, 5, 10, 40), (0, 1, 4, 16)
PLENTY = 1 << 30
SHAPES = list(itertools.product(DEVICES, BATCHES, LISTS))


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch):
    """So that small graphs have several batches, and pairs travel in pieces."""
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)


def on(A, devices=1, memory=PLENTY, ties="hash", rng=0, **options):
    with simulated(memory * devices):
        engine = Devices((0,) * devices, memory=memory, **options)
        return matchwood.weighted_matching(A, ties=ties, rng=rng, engine=engine)


def assert_same(found, expected):
    assert found.mate.dtype == expected.mate.dtype
    np.testing.assert_array_equal(found.mate, expected.mate)
    assert found.weight == pytest.approx(expected.weight, rel=1e-12)
    assert found.rounds == expected.rounds


@pytest.mark.slow
@looped("name", ZOO)
def test_zoo(name):
    """Devices, batches and lists of every length in turn: all shapes within five graphs."""
    assert_all_shapes(name, SHAPES[list(ZOO).index(name) % 5 :: 5])


@pytest.mark.slow
@looped("name", ZOO)
def test_zoo_in_every_shape(name):
    assert_all_shapes(name, SHAPES)


def assert_all_shapes(name, shapes):
    """Ties and types in turn."""
    A = ZOO[name]()
    A.sum_duplicates()
    kinds = list(itertools.product(("hash", "index"), (np.float32, np.float64)))
    prepared = []
    for ties, kind in kinds:
        B = A.astype(kind) if A.dtype.kind == "f" else A
        G = matchwood.graph(B)
        prepared.append(
            (
                G,
                ties,
                matchwood.weighted_matching(G, method="dominant", ties=ties, engine="reference"),
            )
        )
    for turn, (devices, batches, lists) in enumerate(shapes):
        G, ties, expected = prepared[turn % 4]
        found = on(G, devices, batches=batches, lists=lists, ties=ties)
        try:
            assert_same(found, expected)
        except AssertionError as error:
            error.add_note(f"{devices} devices, {batches} batches, lists of {lists}, {ties}")
            raise


@pytest.mark.slow
@given(
    graphs(), st.sampled_from(DEVICES), st.sampled_from((None, *BATCHES)),
    st.sampled_from(("auto", *LISTS)), st.sampled_from(("hash", "index")), st.integers(0, 3),
)  # fmt: skip
def test_random_graphs(A, devices, batches, lists, ties, rng):
    G = matchwood.graph(A)
    expected = matchwood.weighted_matching(
        G, method="dominant", ties=ties, rng=rng, engine="reference"
    )
    found = on(G, devices, batches=batches, lists=lists, ties=ties, rng=rng)
    assert_same(found, expected)
    found.check(G)


def least_memory(A, devices=1, **options):
    """What the error names."""
    with pytest.raises(OutOfMemory, match="weighted_matching: memory of at least") as told:
        on(A, devices, memory=1, **options)
    return int(str(told.value).split(" bytes")[0].rpartition(" ")[2].replace(",", ""))


@looped("devices", DEVICES)
def test_the_least_memory_does(devices):
    """At every limit from there on the answer is the same, and no device holds more than it may."""
    A = weighted(rmat(8, 6), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant")
    least = least_memory(A, devices)
    shares = []
    for memory in (least, least + 1000, 2 * least, 10 * least):
        found = on(A, devices, memory=memory)
        assert_same(found, expected)
        assert max(found.stats.memory) <= memory
        shares.append(found.stats.graph_sizes)
    assert shares[0] > shares[-1] == 1.0
    with pytest.raises(OutOfMemory):
        on(A, devices, memory=least - 1)


def test_nothing_is_sent_where_memory_is_too_small(monkeypatch):
    from simulated_devices import matching

    monkeypatch.setattr(matching, "Workers", None)
    with pytest.raises(OutOfMemory, match="nothing was sent to a device"):
        on(grid(30, 30), memory=2000)


def test_the_input_is_as_it_was():
    A = weighted(rmat(7, 6), np.float64)
    for array in (A.indptr, A.indices, A.data):
        array.flags.writeable = False
    copies = [array.copy() for array in (A.indptr, A.indices, A.data)]
    on(A, 2, batches=3, lists=2)
    for array, copy in zip((A.indptr, A.indices, A.data), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_file_in_memory(tmp_path):
    A = weighted(rmat(7, 6), np.float32)
    arrays = []
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(A, name))
        arrays.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    assert_same(on(tuple(arrays), 2, lists=3), matchwood.weighted_matching(A, method="dominant"))


# What travels


def test_rows_travel_once_with_long_lists():
    A = weighted(grid(40, 40), np.float32)
    found = on(A, batches=5, lists=4)
    assert found.stats.graph_sizes == 1.0  # a list of 4 is a whole row of a grid
    assert sum(one.rows for one in found.stats.rounds) == 0


def test_entries_are_those_of_the_rows_that_lists_ran_out_of():
    """Counted once more, slowly: which rows travel, and how long they are."""
    A = weighted(rmat(9, 8), np.float64)
    view = matchwood.graph(A).undirected_weights()
    degree = np.diff(view.indptr)
    last = None
    for k in (1, 2, 4, 8, 16):
        found = on(A, batches=3, lists=k)
        moved = found.stats.entries_moved - view.nnz
        expected = fetched_entries(view, k)
        assert moved == expected
        assert last is None or found.stats.entries_moved <= last
        last = found.stats.entries_moved
        assert found.stats.rounds[0].entries == view.nnz
        assert sum(one.rows for one in found.stats.rounds) <= (degree > k).sum() * found.rounds


def fetched_entries(view, k):
    """Entries that travel again, by the definition: lists, rounds, fetches."""
    from matchwood.primitives.edge_order.reference import edge_key

    n, mate, moved = view.n, [-1] * view.n, 0
    rows = []
    for u in range(n):
        part = slice(view.indptr[u], view.indptr[u + 1])
        edges = zip(view.data[part].tolist(), view.indices[part].tolist(), strict=True)
        rows.append([v for w, v in sorted(edges, key=lambda e: edge_key(e[0], u, e[1]))])
    lists = [row[:k] for row in rows]
    whole = [len(row) <= k for row in rows]
    pointer = [-1] * n
    while True:
        for u in range(n):
            if mate[u] >= 0 or (pointer[u] >= 0 and mate[pointer[u]] < 0):
                continue
            lists[u] = [v for v in lists[u] if mate[v] < 0]
            if not lists[u] and not whole[u]:
                moved += len(rows[u])
                free = [v for v in rows[u] if mate[v] < 0]
                lists[u], whole[u] = free[:k], len(free) <= k
            pointer[u] = lists[u][0] if lists[u] else -1
        pairs = [
            (u, pointer[u]) for u in range(n)
            if mate[u] < 0 and pointer[u] > u and pointer[pointer[u]] == u
        ]  # fmt: skip
        if not pairs:
            return moved
        for u, v in pairs:
            mate[u], mate[v] = v, u


def test_lists_of_nothing_send_everything_in_every_round():
    A = weighted(rmat(8, 8), np.float32)
    found = on(A, batches=4, lists=0)
    assert [one.entries for one in found.stats.rounds] == [A.nnz] * len(found.stats.rounds)
    assert len(found.stats.rounds) == found.rounds + 1  # the last one finds nothing
    n = A.shape[0]
    several = on(A, 4, batches=4, lists=0)
    for one in several.stats.rounds:
        assert n <= one.words_exchanged <= 2 * n


def test_exchanges_are_counted():
    A = weighted(rmat(10, 16), np.float32)
    n = A.shape[0]
    assert on(A, batches=3).stats.words_exchanged == 0
    found = on(A, 4, batches=3, lists=4)
    first, *later = (one.words_exchanged for one in found.stats.rounds)
    assert n // 2 <= first <= n
    assert sum(later) + first <= 2 * n


def test_stats_of_a_call():
    A = weighted(rmat(8, 8), np.float32)
    found = on(A, 3, batches=5, lists=4)
    stats = found.stats
    assert stats.devices == (0, 0, 0)
    assert (stats.vertices, stats.entries, stats.lists) == (A.shape[0], A.nnz, 4)
    assert stats.partitions[0][0] == 0
    assert stats.partitions[-1][1] == A.shape[0]
    assert len(stats.batches) == 3
    assert not stats.resident
    assert stats.rounds[0].pointed > 0
    assert stats.seconds() == {}
    told = stats.to_dict()
    assert told["graph_sizes"] == stats.graph_sizes >= 1
    assert len(told["rounds"]) == len(stats.rounds)
    assert matchwood.weighted_matching(A).stats is None
    many = on(star(3), batches=40)
    assert "batches instead of 40" in many.stats.notes[0]


def test_what_fits_stays():
    """Rows that are on the device are not fetched again."""
    A = weighted(complete(60), np.float32)
    stays = on(A)
    assert stats_of_rows(stays) > 0
    assert stays.stats.resident
    assert stays.stats.graph_sizes == 1.0
    leaves = on(A, batches=1, lists=16)
    assert leaves.stats.graph_sizes > 1.0
    assert_same(stays, leaves)


def stats_of_rows(found):
    return sum(one.rows for one in found.stats.rounds)


# Awkward graphs


@pytest.mark.slow
@looped(
    "A",
    [
        star(200), star(200, centre=199), weighted(star(100, centre=50), np.float32, 1),
        from_edges(90, np.arange(89), np.arange(1, 90), np.arange(1, 90)),
        grid(12, 12, 1.0), weighted(complete(30), np.float64, 2),
        from_edges(90, [44], [45], [1.0]), from_edges(5, [], []),
    ],
)  # fmt: skip
def test_awkward(A):
    """A hub with all edges, a chain of rounds, equal weights, partitions without vertices."""
    for ties in ("hash", "index"):
        expected = matchwood.weighted_matching(A, method="dominant", ties=ties)
        for devices, batches, lists in itertools.product((1, 4), (None, 7), (0, 1, 3, "auto")):
            found = on(A, devices, batches=batches, lists=lists, ties=ties)
            assert_same(found, expected)


def test_no_vertices():
    found = on(from_edges(0, [], []), 2)
    assert found.mate.shape == (0,)
    assert found.weight == 0


@pytest.mark.slow
def test_wide_indices():
    A = weighted(rmat(8, 6), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant")
    G = matchwood.graph(A, index_dtype=np.int64)
    found = on(G, 2, batches=3, lists=2)
    assert found.mate.dtype == np.int64
    np.testing.assert_array_equal(found.mate, expected.mate)


def test_threads():
    A = weighted(rmat(12, 16), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant")
    for threads in (1, 2, 5):
        with simulated(PLENTY):
            engine = Devices(batches=3, lists=4)
            found = matchwood.weighted_matching(A, engine=engine, threads=threads)
        assert_same(found, expected)

"""The GPU engine of matchings on `Devices`, with its kernels compiled for the host."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest

import beyond_on_host
import matchwood
from beyond_on_host import on_host
from graphs import complete, from_edges, grid, rmat, star
from matching_graphs import weighted
from matchwood import Devices
from matchwood.components.connected.devices import gpu as components
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices import pinned, sending
from matchwood.engines.devices import plan as plans
from matchwood.matching.dominant.devices import gpu as steps
from simulated_devices import simulated

pytestmark = pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch):
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)


def on(A, devices=1, ties="hash", last_first=False, **options):
    with on_host(steps, last_first=last_first):
        engine = Devices((0,) * devices, memory=1 << 30, **options)
        return matchwood.weighted_matching(A, ties=ties, engine=engine)


def assert_same(found, expected):
    np.testing.assert_array_equal(found.mate, expected.mate)
    assert found.weight == pytest.approx(expected.weight, rel=1e-12)
    assert found.rounds <= expected.rounds  # fewer where vertices are matched while rows pass


GRAPHS = {
    "rmat": rmat(5, 6),
    "star": star(70, centre=69),
    "complete": complete(12),
    "grid": grid(5, 5),
    "chain": from_edges(15, np.arange(14), np.arange(1, 15)),
    "nearly empty": from_edges(40, [24], [25], [1.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_same_mates(name, monkeypatch):
    """Few weights, so that ties matter; prepared or not; threads in both orders."""
    turn = itertools.count()
    for ties, levels in (("hash", 1 << 20), ("index", 3)):
        A = weighted(GRAPHS[name], np.float32, levels)
        G = matchwood.graph(A)
        expected = matchwood.weighted_matching(A, method="dominant", ties=ties)
        for devices, lists in itertools.product((1, 3), (0, 1, 4)):
            k = next(turn)
            batches = 1 if k % 5 == 0 else 4
            monkeypatch.setattr(steps, "WORTH_ORDER", (1, 1 << 12)[k % 7 == 0])
            monkeypatch.setattr(steps, "PIECE_ENTRIES", (1 << 23, 16, 64)[k % 3])
            options = {"batches": batches, "lists": lists, "stats": k % 3 == 0}
            found = on((A, G)[k % 2], devices, ties, last_first=k % 4 > 1, **options)
            assert_same(found, expected)


def hubs(n):
    """All vertices point at one of two hubs first, and then along a path."""
    rng, others = np.random.default_rng(0), np.arange(2, n)
    row = np.concatenate([0 * others, 0 * others + 1, others[:-1]])
    column = np.concatenate([others, others, others[1:]])
    heavy = 1000.0 - 100.0 * row[: 2 * others.size]
    weight = np.concatenate([heavy, 0.0 * others[1:]]) + rng.random(row.size)
    return from_edges(n, row, column, weight)


@pytest.mark.slow
def test_rows_that_nearly_all_want_at_once(monkeypatch):
    """The last warp of a launch goes first, as it may: none reads what another has written."""
    plain = beyond_on_host.in_c
    first_to_last = (
        "for (Wide first = global_thread() - lane(); first < count; first += all_threads()) {"
    )
    last_to_first = (
        "for (Wide turn = global_thread() / 32, turns = (count + 31) / 32; turn < turns;"
        " turn += all_threads() / 32) { Wide first = (turns - 1 - turn) * 32;"
    )

    def turned(text):
        before, point, after = plain(text).partition("void point(const I* source")
        assert first_to_last in after
        after = after.replace(first_to_last, last_to_first, 1)
        return (before + point + after).replace("WORTH_ORDER = 2", "WORTH_ORDER = 4096")

    monkeypatch.setattr(beyond_on_host, "in_c", turned)
    monkeypatch.setattr(beyond_on_host, "library", beyond_on_host.library.__wrapped__)
    G = matchwood.graph(hubs(400))
    expected = matchwood.weighted_matching(G, method="dominant")
    assert_same(on(G, lists=1, batches=3), expected)


@pytest.mark.slow
def test_what_travels_is_what_the_simulation_counts():
    A = weighted(rmat(6, 6), np.float32)
    for devices, lists in ((1, 1), (2, 2)):
        options = {"batches": 3, "lists": lists, "stats": True}
        found = on(A, devices, **options).stats
        with simulated(1 << 31):
            engine = Devices((0,) * devices, memory=1 << 30, **options)
            told = matchwood.weighted_matching(A, engine=engine).stats
        for one, other in zip(found.rounds, told.rounds, strict=True):
            counts = ("pointed", "entries", "rows", "words_exchanged")
            assert [getattr(one, c) for c in counts] == [getattr(other, c) for c in counts]
        assert found.memory <= [1 << 30] * devices


@pytest.mark.slow
def test_rows_that_stay_on_the_devices():
    """A prepared graph keeps them, and they travel once; lists run out, and are packed again."""
    G = matchwood.graph(weighted(rmat(6, 8), np.float32))
    expected = matchwood.weighted_matching(G, method="dominant")
    for turn in range(3):
        found = on(G, 3)
        assert_same(found, expected)
        assert found.stats.resident
        assert found.stats.graph_sizes == (1.0 if turn == 0 else 0.0)


@pytest.mark.slow
def test_memory_is_pinned_once_for_two_problems():
    G = matchwood.graph(weighted(rmat(6, 6), np.float32))
    with on_host(steps, components):
        engine = Devices(memory=1 << 30, batches=3)
        for function in (matchwood.weighted_matching, matchwood.connected_components):
            assert function(G, engine=engine).stats.pinned == "registered"


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2, 3])
def test_a_graph_that_is_used_once(devices, monkeypatch):
    """Its rows are staged ahead of the copies, in slots that are smaller than a batch."""
    monkeypatch.setattr(pinned, "SLOT_BYTES", 1024)
    monkeypatch.setattr(pinned, "LEAST_SLOT_BYTES", 256)
    foreseen, real = [], pinned.Ring.foresee

    def foresee(self, sends, threads):
        foreseen.append(sum(array.nbytes for arrays in sends for array in arrays))
        return real(self, sends, threads)

    monkeypatch.setattr(pinned.Ring, "foresee", foresee)
    A = weighted(rmat(8, 8), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant")
    for batches, lists in ((1, 2), (3, 2), (7, 1), (3, 0)):
        foreseen.clear()
        found = on(A, devices, batches=batches, lists=lists)
        assert_same(found, expected)
        assert found.stats.pinned == "ring"
        passes = len(found.stats.rounds) if lists == 0 else 1
        assert len(foreseen) == passes * devices
        assert sum(foreseen) >= passes * 8 * A.nnz


def test_an_answer_comes_through_the_ring(monkeypatch):
    """In pieces, each of which waits for a slot, where its memory cannot be pinned."""
    monkeypatch.setattr(pinned.Registration, "holds", lambda self, array: False)
    monkeypatch.setattr(sending, "SMALL_ANSWER_BYTES", 0)
    monkeypatch.setattr(pinned, "SLOT_BYTES", 256)
    monkeypatch.setattr(pinned, "LEAST_SLOT_BYTES", 256)
    G = matchwood.graph(weighted(rmat(6, 6), np.float32))
    expected = matchwood.weighted_matching(G, method="dominant")
    for A in (G, G.sparse()):
        assert_same(on(A, 2, batches=3, lists=1), expected)


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_no_thread_is_left_after_an_error(batch, monkeypatch):
    """Slots that nobody asks for any more are not filled, and the call ends soon."""
    monkeypatch.setattr(pinned, "SLOT_BYTES", 1024)
    monkeypatch.setattr(pinned, "LEAST_SLOT_BYTES", 256)
    monkeypatch.setattr(cpu_copies, "fill_threads", lambda threads, partitions: 2)
    A = weighted(rmat(8, 8), np.float32)
    on(A, batches=9, lists=2)  # compiled by now
    real, calls = steps.Worker.stream, itertools.count()
    began = 0.0

    def stream(self, *arguments):
        nonlocal began
        if next(calls) == batch:
            began = time.perf_counter()
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(steps.Worker, "stream", stream)
    with pytest.raises(KeyboardInterrupt):
        on(A, batches=9, lists=2)
    assert time.perf_counter() - began < 5
    assert not [one for one in threading.enumerate() if one.name == "matchwood filling"]

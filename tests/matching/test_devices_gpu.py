"""Matchings on CUDA's devices, with partitions on one of them: the same mates as everywhere.

Tests that need two devices are skipped where there is one.
"""

from __future__ import annotations

import gc
import itertools
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, from_edges, grid, rmat, star
from matching_graphs import two_hubs, weighted
from matchwood import Devices, OutOfMemory, engines
from matchwood.engines.devices import plan as plans
from strategies import graphs

pytestmark = pytest.mark.gpu

SHAPES = list(itertools.product((1, 2, 3, 4), (1, 3, 5, 10, 40), (0, 1, 4, 16)))


@pytest.fixture
def small_buffers(monkeypatch):
    """So that small graphs have several batches."""
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)


def on(A, devices=1, ties="hash", **options):
    engine = Devices((0,) * devices, **options)
    return matchwood.weighted_matching(A, ties=ties, engine=engine)


def assert_same(found, expected, rounds=True):
    np.testing.assert_array_equal(found.mate, expected.mate)
    assert found.weight == pytest.approx(expected.weight, rel=1e-12)
    assert not rounds or found.rounds <= expected.rounds  # fewer: matched while rows pass


@pytest.mark.parametrize(("place", "name"), list(enumerate(ZOO)))
@pytest.mark.usefixtures("small_buffers")
def test_zoo(place, name):
    """Each graph in a fifth of all shapes, the next one in others."""
    A = abs(ZOO[name]())
    kinds = list(itertools.product(("hash", "index"), (np.float32, np.float64)))
    prepared = []
    for ties, kind in kinds:
        G = matchwood.graph(A.astype(kind))
        options = {"method": "dominant", "ties": ties, "engine": "reference"}
        prepared.append((G, ties, matchwood.weighted_matching(G, **options)))
    for turn in range(place % 5, len(SHAPES), 5):
        devices, batches, lists = SHAPES[turn]
        G, ties, expected = prepared[turn % 4]
        assert_same(on(G, devices, ties, batches=batches, lists=lists), expected)


@settings(max_examples=30)
@given(
    graphs(), st.integers(1, 4), st.sampled_from((None, 1, 3, 10)),
    st.sampled_from(("auto", 0, 1, 4)), st.booleans(), st.booleans(),
)  # fmt: skip
def test_random_graphs(A, devices, batches, lists, prepared, timed):
    expected = matchwood.weighted_matching(A, method="dominant", engine="reference")
    B = matchwood.graph(A) if prepared else A
    assert_same(on(B, devices, batches=batches, lists=lists, stats=timed), expected)


LARGER = {
    "rmat": lambda kind: weighted(rmat(12, 16), kind),
    "few weights": lambda kind: weighted(rmat(11, 8), kind, 3),
    "equal grid": lambda kind: weighted(grid(60, 61), kind, 1),
    "star": lambda kind: weighted(star(9000, centre=8999), kind),
    "equal star": lambda kind: weighted(star(9000), kind, 1),
    "two hubs": lambda kind: weighted(two_hubs(9000), kind),
    "complete": lambda kind: weighted(complete(300), kind, 40),
    "ascending path": lambda kind: from_edges(
        300, np.arange(299), np.arange(1, 300), np.arange(1, 300), dtype=kind
    ),
}


@pytest.mark.parametrize("name", LARGER)
def test_larger(name):
    for kind, ties in itertools.product((np.float32, np.float64), ("hash", "index")):
        A = LARGER[name](kind)
        expected = matchwood.weighted_matching(A, method="dominant", ties=ties, engine="cpu")
        for prepared, (devices, batches, lists) in itertools.product(
            (False, True), ((1, 3, 2), (1, 40, 16), (3, 5, 1), (4, 3, 4))
        ):
            G = matchwood.graph(A) if prepared else A
            assert_same(on(G, devices, ties, batches=batches, lists=lists), expected)


def test_the_same_travels_as_in_the_simulation():
    from simulated_devices import simulated

    A = weighted(rmat(12, 16), np.float32)
    for devices, lists in itertools.product((1, 3), (1, 4, 16)):
        engine = Devices((0,) * devices, batches=5, lists=lists, stats=True)
        found = matchwood.weighted_matching(A, engine=engine).stats
        with simulated(1 << 30):
            expected = matchwood.weighted_matching(A, engine=engine).stats
        for one, other in zip(found.rounds, expected.rounds, strict=True):
            counts = ("pointed", "entries", "rows", "words_exchanged")
            assert [getattr(one, c) for c in counts] == [getattr(other, c) for c in counts]
        assert found.rounds[0].seconds["pointing"] > 0


def test_wide_indices_are_narrowed_on_the_way():
    """Of a prepared graph; of plain arrays the gate narrows them, for every engine."""
    A = weighted(rmat(11, 8), np.float32)
    G = matchwood.graph(A, index_dtype=np.int64)
    for A in (G, (G.indptr, G.indices, G.data)):
        expected = matchwood.weighted_matching(A, method="dominant", engine="cpu")
        found = on(A, 2, batches=3, lists=2)
        assert found.mate.dtype == expected.mate.dtype
        np.testing.assert_array_equal(found.mate, expected.mate)
    assert on(G, 2, batches=3).mate.dtype == np.int64


def test_resident():
    G = matchwood.graph(weighted(rmat(12, 8), np.float32))
    expected = matchwood.weighted_matching(G, method="dominant")
    for _ in range(2):
        found = on(G)
        assert found.stats.resident
        assert_same(found, expected)
    assert found.stats.graph_sizes == 0.0  # the second call finds the rows there
    for partitions in (1, 3, 4):
        for turn in range(3):
            found = on(G, partitions)
            assert found.stats.resident
            assert_same(found, expected)
            assert found.stats.graph_sizes == (1.0 if turn == 0 and partitions > 1 else 0.0)


def test_resident_from_the_start():
    """A graph of the device stays there, and so does the answer, unless memory is limited."""
    G = matchwood.graph(weighted(rmat(12, 8), np.float32))
    expected, there = matchwood.weighted_matching(G, method="dominant"), G.on("gpu")
    for partitions in (1, 3, 4, 4):
        found = on(there, partitions)
        assert engines.location(found.mate) == "gpu"
        np.testing.assert_array_equal(found.mate.get(), expected.mate)
        assert found.rounds == expected.rounds
        assert found.stats.resident
        assert found.stats.graph_sizes == 0.0
    found = on(there, 2, batches=3)
    assert engines.location(found.mate) == "gpu"
    np.testing.assert_array_equal(found.mate.get(), expected.mate)
    assert found.stats.graph_sizes >= 1.0


def test_large_answers_are_pinned_while_they_come():
    from matchwood.engines.devices import sending

    G = matchwood.graph(weighted(rmat(20, 2), np.float32))
    assert G.n * 4 > sending.SMALL_ANSWER_BYTES
    expected = matchwood.weighted_matching(G, method="dominant")
    for options in ({"batches": 3}, {"batches": 3, "lists": 1}, {}):
        assert_same(on(G, 2, **options), expected)
    assert_same(on(G.sparse(), 1, batches=3), expected)


def test_rows_that_are_used_once(monkeypatch):
    """They pass through a ring whose slots are filled ahead; nothing of the graph is pinned."""
    from matchwood.engines.devices import pinned

    monkeypatch.setattr(pinned, "SLOT_BYTES", 1 << 18)
    monkeypatch.setattr(pinned, "LEAST_SLOT_BYTES", 1 << 16)
    A = weighted(rmat(16, 16), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant", engine="cpu")
    for devices, batches, lists in ((1, 10, 4), (1, 3, 1), (3, 5, 2), (1, 3, 0)):
        found = on(A, devices, batches=batches, lists=lists)
        assert_same(found, expected)
        assert found.stats.pinned == "ring"
    runtime = engines.cupy().cuda.runtime
    for array in (A.indptr, A.indices, A.data):
        runtime.hostRegister(array.ctypes.data, array.nbytes, 0)
        runtime.hostUnregister(array.ctypes.data)


class MostUsed:
    """The most bytes of CuPy's pool that are in use, seen by a hook."""

    def __init__(self):
        import cupy

        class Hook(cupy.cuda.MemoryHook):
            name, most, used = "most used", 0, 0

            def malloc_postprocess(self, **told):
                self.used += told["mem_size"]
                self.most = max(self.most, self.used)

            def free_postprocess(self, **told):
                self.used -= told["mem_size"]

        self.hook = Hook()


def test_the_limit_holds():
    import cupy

    A = weighted(rmat(14, 16), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant")
    for devices in (1, 4):
        with pytest.raises(OutOfMemory) as told:
            on(A, devices, memory=1)
        least = int(str(told.value).split(" bytes")[0].rpartition(" ")[2].replace(",", ""))
        for memory in (least, 2 * least):
            gc.collect()
            cupy.get_default_memory_pool().free_all_blocks()
            seen = MostUsed()
            with seen.hook:
                found = on(A, devices, memory=memory)
            assert_same(found, expected)
            assert seen.hook.most <= devices * memory


def test_nothing_stays_after_an_error(monkeypatch):
    import cupy

    from matchwood.matching.dominant.devices import gpu as steps

    A = weighted(rmat(12, 8), np.float32)
    on(A, 2, batches=3, lists=2)
    gc.collect()
    pool = cupy.get_default_memory_pool()
    used = pool.used_bytes()

    def stop(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.Worker, "fetch", stop)
    with pytest.raises(KeyboardInterrupt):
        on(A, 2, batches=3, lists=2)
    gc.collect()
    assert pool.used_bytes() == used


def test_delays_between_streams_change_nothing(monkeypatch):
    """Streams that wait at random: the events between them must hold."""
    import cupy

    from matchwood.engines.devices.sending import Lane

    wait = cupy.RawKernel(
        'extern "C" __global__ void idle(long long t)'
        "{ long long s = clock64(); while (clock64() - s < t); }",
        "idle",
    )
    drawn = random.Random(3)
    real = Lane.event

    def delayed(self, stream, timing=False):
        made = real(self, stream, timing)
        with cupy.cuda.Device(self.number), drawn.choice((self.kernels, self.copies)):
            wait((1,), (1,), (np.int64(drawn.randrange(300_000)),))
        return made

    monkeypatch.setattr(Lane, "event", delayed)
    A = weighted(rmat(10, 16), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant")
    for devices, prepared in itertools.product((1, 2, 4), (False, True)):
        for _ in range(3):
            G = matchwood.graph(A) if prepared else A
            assert_same(on(G, devices, batches=10, lists=2), expected)


@pytest.mark.parametrize("transport", ["device", "peer", "host"])
def test_transports(transport):
    A = weighted(rmat(11, 8), np.float32)
    found = on(A, 3, batches=3, lists=3, transport=transport)
    assert found.stats.transport == transport
    assert_same(found, matchwood.weighted_matching(A, method="dominant"))


def test_nccl_with_one_device():
    from matchwood.engines.devices import workers as transports

    A = weighted(rmat(11, 8), np.float32)
    if transports.library() is None:
        with pytest.raises(matchwood.EngineUnavailable, match="NCCL"):
            on(A, transport="nccl", batches=2)
        return
    found = on(A, transport="nccl", batches=2, lists=2)
    assert found.stats.transport == "nccl"
    assert_same(found, matchwood.weighted_matching(A, method="dominant"))


def test_two_devices():
    if engines.cupy().cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one device")
    A = weighted(rmat(12, 16), np.float32)
    expected = matchwood.weighted_matching(A, method="dominant")
    for transport in ("auto", "peer", "host"):
        engine = Devices((0, 1), batches=3, lists=3, transport=transport)
        assert_same(matchwood.weighted_matching(A, engine=engine), expected)


def test_ctrl_c_is_heard_between_batches():
    """A callback stands for the signal; the call must end soon after."""
    A = weighted(rmat(16, 16), np.float32)
    from matchwood.matching.dominant.devices import gpu as steps

    count, began = 0, 0.0
    real = steps.Worker.stream

    def counting(self, *arguments):
        nonlocal count, began
        count += 1
        if count == 5:
            began = time.perf_counter()
            raise KeyboardInterrupt
        return real(self, *arguments)

    steps.Worker.stream = counting
    try:
        with pytest.raises(KeyboardInterrupt):
            on(A, batches=40, lists=2)
    finally:
        steps.Worker.stream = real
    assert time.perf_counter() - began < 0.1

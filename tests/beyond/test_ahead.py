"""Arrays that are pinned piece by piece, by the caller and by a thread before that."""

from __future__ import annotations

import threading
import time
from unittest import mock

import numpy as np
import pytest

import matchwood
from beyond_on_host import available, fake_cupy, on_host
from graphs import rmat
from matching_graphs import weighted
from matchwood import Devices, engines
from matchwood.beyond import ahead, plan
from matchwood.beyond.ahead import Ahead, worth_it
from matchwood.matching.dominant.devices import gpu_worker

PIECE = 4096


class Memory:
    """What is pinned; a piece takes a while, and one may be refused."""

    def __init__(self, refused=-1):
        self.pinned, self.lock, self.calls, self.refused = {}, threading.Lock(), 0, refused

    def register(self, place, nbytes, flags):
        time.sleep(0.0005)
        with self.lock:
            self.calls += 1
            if self.calls == self.refused:
                raise OSError("no more")
            for begin, size in self.pinned.items():
                assert place + nbytes <= begin or begin + size <= place
            self.pinned[place] = nbytes

    def unregister(self, place):
        with self.lock:
            del self.pinned[place]

    def holds(self, array):
        """One registration has all of it, as a copy needs it."""
        begin = array.ctypes.data
        return any(
            place <= begin and begin + array.nbytes <= place + size
            for place, size in self.pinned.items()
        )


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(ahead, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(ahead, "LEAST_BYTES", 1)


def cupy_with(memory):
    fake = fake_cupy()
    runtime = fake.cuda.runtime
    runtime.hostRegister, runtime.hostUnregister = memory.register, memory.unregister
    return mock.patch.object(engines, "cupy", return_value=fake)


def test_parts_are_pinned_when_they_are_needed(small_pieces):
    memory, rng = Memory(), np.random.default_rng(1)
    with cupy_with(memory):
        arrays = [np.zeros(30_000, np.int32)[3:], np.zeros(9000), np.zeros(0), np.zeros(5, np.int8)]
        pinned = Ahead(arrays, 0)
        for _ in range(60):
            array = arrays[rng.integers(2)]
            begin = rng.integers(array.size)
            part = array[begin : begin + rng.integers(1, 5000)]
            assert pinned.holds(part)
            runs = list(pinned.runs(part))
            assert sum(part[run].size for run in runs) == part.size
            assert all(memory.holds(part[run]) for run in runs)
        assert pinned.holds(arrays[0])
        assert pinned.holds(arrays[3])
        assert not pinned.holds(np.zeros(100))
        assert not pinned.reason
        pinned.close()
    assert not memory.pinned


def test_nothing_stays_pinned_of_one_that_was_not_closed(small_pieces):
    memory = Memory()
    with cupy_with(memory):
        pinned = Ahead([np.zeros(30_000)], 0)
        assert pinned.holds(pinned._arrays[0][:9000])
        pinned.close()
        assert not memory.pinned
        again = Ahead([np.zeros(30_000)], 0)
        again.holds(again._arrays[0])
        again._next.put(None)
        again._thread.join()
        del again
    assert not memory.pinned


def test_a_piece_that_is_refused(small_pieces):
    """What lies before it stays pinned, what lies behind it is not tried."""
    memory, array = Memory(refused=4), np.zeros(30_000)
    with cupy_with(memory), mock.patch.object(ahead, "PIECES_AHEAD", 0):
        pinned = Ahead([array], 0)
        assert pinned.holds(array[:100])
        assert not pinned.holds(array)
        assert "no more" in pinned.reason
        assert not pinned.holds(array[-100:])
        assert pinned.holds(array[:100])
        assert memory.calls == 4
        pinned.close()
    assert not memory.pinned


def test_what_is_worth_it(tmp_path):
    large = np.zeros(ahead.LEAST_BYTES, np.uint8)
    assert worth_it([large, np.zeros(3)])
    assert not worth_it([large[:-1]])
    assert not worth_it([large[::2]])
    with mock.patch.object(ahead, "MOST_BYTES", large.nbytes):
        assert not worth_it([large, np.zeros(3)])
    file = np.memmap(tmp_path / "file", np.uint8, "w+", shape=large.shape)
    assert not worth_it([file])
    assert not worth_it([np.asarray(file)])


@pytest.mark.skipif(not available, reason="there is no g++")
@pytest.mark.parametrize("refused", [-1, 1, 3, 5, 40])
def test_a_matching_of_a_graph_that_is_used_once(refused, small_pieces, monkeypatch):
    """Same mates, whichever piece is refused; and nothing stays pinned."""
    monkeypatch.setattr(plan, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plan, "LEAST_ROWS", 4)
    A = weighted(rmat(9, 8), np.float32)
    expected, memory = matchwood.weighted_matching(A, method="dominant"), Memory(refused)
    for devices in (1, 2):
        with on_host(gpu_worker):
            runtime = engines.cupy().cuda.runtime
            runtime.hostRegister, runtime.hostUnregister = memory.register, memory.unregister
            engine = Devices((0,) * devices, memory=1 << 30, batches=3, lists=2)
            found = matchwood.weighted_matching(A, engine=engine)
        np.testing.assert_array_equal(found.mate, expected.mate)
        assert found.rounds == expected.rounds
        was_refused = refused > 0 and memory.calls >= refused and devices == 1
        if was_refused or refused < 0:
            assert found.stats.pinned == ("ring" if was_refused else "registered")
        assert not memory.pinned

"""The ring of pinned buffers, with a stream that copies as late as it may."""

from __future__ import annotations

import ctypes
import random
import time
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from beyond_on_host import fake_cupy
from matchwood import engines
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices import pinned
from matchwood.engines.devices.pinned import Ring, gathering


class LateStream:
    """Copies wait until somebody waits for an event that comes after them."""

    def __init__(self):
        self.queued, self.done = [], 0

    def run(self, upto):
        while self.done < upto:
            target, source, nbytes = self.queued[self.done]
            ctypes.memmove(target, source, nbytes)
            self.done += 1


class LateEvent:
    def __init__(self, **options):
        self.looks = 0

    def record(self, stream):
        self.stream, self.after = stream, len(stream.queued)

    def synchronize(self):
        self.stream.run(self.after)

    @property
    def done(self):
        """Some looks find that the stream has not come so far."""
        self.looks += 1
        if self.looks > 2:
            self.synchronize()
        return self.looks > 2


class Data:
    def __init__(self, array):
        self.place = array.ctypes.data

    def copy_from_host_async(self, source, nbytes, stream):
        stream.queued.append((self.place, source, nbytes))

    def copy_to_host_async(self, target, nbytes, stream):
        stream.queued.append((target, self.place, nbytes))


class LateArray(np.ndarray):
    @property
    def data(self):
        return Data(self)


@pytest.fixture(autouse=True)
def late_device(monkeypatch):
    fake = fake_cupy()
    fake.cuda.Event = LateEvent
    with mock.patch.object(engines, "cupy", return_value=fake):
        monkeypatch.setattr(pinned, "LEAST_SLOT_BYTES", 256)
        monkeypatch.setattr(pinned, "SLOT_BYTES", 1024)
        monkeypatch.setattr(cpu_copies, "THREAD_BYTES", 40)
        yield


def there(size, dtype):
    return np.zeros(size, dtype).view(LateArray)


def test_all_that_is_produced_arrives():
    """Arrays smaller and larger than a slot, several at once; wide indices become narrow."""
    drawn, rng = random.Random(1), np.random.default_rng(1)
    for threads in (1, 3):
        ring, stream, sent = Ring(threads), LateStream(), []
        for _ in range(60):
            jobs = []
            for _ in range(drawn.randrange(1, 4)):
                size = drawn.choice((0, 1, 7, 63, 64, 65, 500, 3000))
                wide = rng.integers(0, 1 << 30, size)
                to, of = drawn.choice(((np.int32, np.int64), (np.int32, np.int32),
                                       (np.float64, np.float64), (np.uint8, np.uint8)))  # fmt: skip
                source, target = wide.astype(of), there(size, to)
                jobs.append((target, source))
                sent.append((target, source.astype(to)))
            ring.produce(jobs, stream)
        ring.wait()
        stream.run(len(stream.queued))
        for target, expected in sent:
            np.testing.assert_array_equal(target, expected)


def sends_of(drawn, rng):
    """Some arrays each; some of them are larger than a slot, some have no words."""
    kinds = (np.int32, np.float64, np.uint8)
    return [
        [
            rng.integers(0, 200, drawn.choice((0, 1, 7, 64, 65, 500, 3000))).astype(kind)
            for kind in drawn.sample(kinds, drawn.randrange(1, 4))
        ]
        for _ in range(drawn.randrange(1, 40))
    ]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_what_was_foreseen_arrives(threads):
    """A team fills the slots ahead; others are produced before and after, in the usual way."""
    drawn, rng = random.Random(threads), np.random.default_rng(threads)
    ring, stream, sent = Ring(2), LateStream(), []
    for _ in range(6):
        sends = sends_of(drawn, rng)
        ring.foresee(sends, threads)
        for arrays in [*sends, *sends_of(drawn, rng)]:
            jobs = [(there(source.size, source.dtype), source) for source in arrays]
            ring.produce(jobs, stream)
            sent += jobs
            time.sleep(drawn.choice((0, 0, 0.0003)))
        assert ring._filling is None
    ring.wait()
    stream.run(len(stream.queued))
    for target, expected in sent:
        np.testing.assert_array_equal(target, expected)


def test_slots_are_not_filled_ahead_while_they_are_read():
    """Without the events the team would write over what the device has not read."""
    with (
        mock.patch.object(LateEvent, "done", property(lambda self: True)),
        pytest.raises(AssertionError),
    ):
        test_what_was_foreseen_arrives(2)


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_what_was_foreseen_may_be_left(asked):
    """After an error nobody asks for the rest: the team ends, and the slots can be used."""
    drawn = random.Random(5)
    for turn in range(40):
        ring, stream = Ring(2), LateStream()
        sends = [[np.full(700, k, np.int32)] for k in range(30)]
        ring.foresee(sends, 1 + turn % 3)
        team = ring._filling
        targets = [there(700, np.int32) for _ in range(asked)]
        for target, arrays in zip(targets, sends, strict=False):
            ring.produce([(target, arrays[0])], stream)
        time.sleep(drawn.choice((0, 0.0001, 0.001)))
        ring.wait()
        assert not team._thread.is_alive()
        target = there(100, np.int32)
        ring.produce([(target, np.arange(100, dtype=np.int32))], stream)
        ring.wait()
        stream.run(len(stream.queued))
        np.testing.assert_array_equal(target, np.arange(100))


def test_a_team_that_fails_is_told_of():
    def fail(*arguments):
        raise MemoryError("no thread")

    ring = Ring(1)
    with mock.patch.object(cpu_copies, "fill", fail):
        ring.foresee([[np.arange(10)]], 2)
        with pytest.raises(MemoryError, match="no thread"):
            ring.produce([(there(10, np.int64), np.arange(10))], LateStream())
    ring.wait()


def test_a_slot_is_not_filled_while_it_is_read(monkeypatch):
    """Without the wait for its event, what was queued first would be lost."""
    monkeypatch.setattr(pinned, "LEAST_SLOT_BYTES", 1024)  # slots that grow would be given back
    with mock.patch.object(pinned, "wait_for"), pytest.raises(AssertionError):
        test_all_that_is_produced_arrives()


def test_rows_are_gathered():
    rng = np.random.default_rng(2)
    source = rng.random(5000).astype(np.float32)
    begin = np.sort(rng.integers(0, 4900, 70))
    done = np.concatenate([[0], np.cumsum(rng.integers(1, 100, 70))])
    expected = np.concatenate(
        [source[b : b + size] for b, size in zip(begin, np.diff(done), strict=True)]
    )
    target, stream, ring = there(expected.size, np.float32), LateStream(), Ring(2)
    ring.produce([(target, gathering(source, begin, done, 2))], stream)
    ring.wait()
    stream.run(len(stream.queued))
    np.testing.assert_array_equal(target, expected)


def test_answers_are_taken_out():
    for size in (0, 1, 100, 20_000):
        source, target = there(size, np.int64), np.full(size, -1)
        source[:] = np.arange(size)
        Ring(3).receive(target, source, LateStream())
        np.testing.assert_array_equal(target, np.arange(size))


def test_slots_grow_and_are_given_back():
    """No more than one set of slots is pinned, and none when the ring is gone."""
    counted = SimpleNamespace(now=0, most=0)
    runtime = engines.cupy().cuda.runtime
    register, unregister = runtime.hostRegister, runtime.hostUnregister

    def registering(*arguments):
        register(*arguments)
        counted.now += 1
        counted.most = max(counted.most, counted.now)

    def unregistering(place):
        unregister(place)
        counted.now -= 1

    runtime.hostRegister, runtime.hostUnregister = registering, unregistering
    ring, stream = Ring(1), LateStream()
    targets = [there(size, np.int32) for size in (10, 100, 1000, 100)]
    for target in targets:
        ring.produce([(target, np.arange(target.size))], stream)
    assert (counted.now, counted.most) == (1, 1)
    ring.wait()
    del ring
    assert counted.now == 0

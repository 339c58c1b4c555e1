"""Batches: sorted keys in fewer bytes, cut into ranges, put together again; memory given out."""

import numpy as np
import pytest

import beyond_on_host
from matchwood.applications.sensing.statistics.gpu import batches
from matchwood.sensing import traffic_statistics
from sensing.gpu_on_host import on_host, rounds
from sensing.traffic_cases import uniform, zipf

BUCKETS, HALF = batches.BUCKETS, batches.HALF_BITS


def split_here(keys):
    """What gpu.cu makes of sorted keys, by NumPy."""
    wide = keys.dtype.itemsize == 8
    upper = keys >> keys.dtype.type(48 if wide else 16)
    starts = np.searchsorted(upper, np.arange(BUCKETS + 1, dtype=np.int64))
    halves = (keys >> keys.dtype.type(32 if wide else 0)).astype(np.uint16)
    return batches.Split(starts, halves, keys.astype(np.uint32) if wide else None, None)


def unpack_here(found, k, runs):
    """What the kernel `unpack` makes of range k, by NumPy."""
    begins = found.begins(k)
    first, width = found.width(k)
    none = [None] * len(runs)
    pieces = [
        found.pieces(k, [getattr(run, name) for run in runs], none) for name in ("halves", "lows")
    ]
    halves = np.concatenate([p.array[p.start : p.end] for p in pieces[0]])
    slot = np.searchsorted(begins, np.arange(halves.size), "right") - 1
    address = ((first + slot % width) << HALF) + halves
    if runs[0].lows is None:
        return address.astype(np.uint32)
    lows = np.concatenate([p.array[p.start : p.end] for p in pieces[1]])
    return (address.astype(np.uint64) << np.uint64(32)) | lows


def keys_of(kind, rng, n):
    if kind == "uniform":
        return rng.integers(0, 2**64, n, dtype=np.uint64)
    if kind == "one network":  # all sources have the same upper half
        return (7 << 48) + rng.integers(0, 2**48, n, dtype=np.uint64)
    if kind == "one source":
        return (2**32 - 1 << 32) + rng.integers(0, 2**32, n, dtype=np.uint64)
    ranks = rng.zipf(1.3, (2, n)).astype(np.uint64) % np.uint64(2**20)
    addresses = ranks * np.uint64(2654435761) % np.uint64(2**32)
    return addresses[0] << np.uint64(32) | addresses[1]


@pytest.mark.parametrize("kind", ["uniform", "one network", "one source", "zipf"])
def test_ranges_of_fewer_bytes_hold_every_key_once(kind, monkeypatch):
    monkeypatch.setattr(batches, "pinned", np.empty)
    rng = np.random.default_rng(3)
    for sizes, parts in (((3000, 1, 2000), 5), ((100,), 1), ((5000, 5000), 40), ((3, 2), 10)):
        whole = [np.sort(keys_of(kind, rng, n)) for n in sizes]
        for keys in (whole, [np.sort(keys.astype(np.uint32)) for keys in whole]):
            runs = [split_here(each) for each in keys]
            runs.append(batches.nothing(np.zeros(BUCKETS + 1, np.int64)))
            if runs[0].lows is None:
                runs[-1] = runs[-1]._replace(lows=None)
            found = batches.ranges(runs, np.array([run.starts for run in runs]), parts)
            got = [unpack_here(found, k, runs) for k in range(parts)]
            assert [each.size for each in got] == [found.size(k) for k in range(parts)]
            assert np.array_equal(np.sort(np.concatenate(got)), np.sort(np.concatenate(keys)))
            shift = keys[0].dtype.type(32 if keys is whole else 0)
            for k, each in enumerate(got):
                upper = (each >> shift).astype(np.int64)
                assert np.all((upper >= found.marks[k]) & (upper < found.marks[k + 1]))
            if kind == "uniform" and sum(sizes) >= 5000:
                assert max(each.size for each in got) < 2 * sum(sizes) / parts + 100


def test_a_heavy_network_is_cut(monkeypatch):
    """Ranges are about equal though all sources have one upper half."""
    monkeypatch.setattr(batches, "pinned", np.empty)
    keys = np.sort(keys_of("one network", np.random.default_rng(1), 8000))
    run = split_here(keys)
    found = batches.ranges([run], run.starts[None], 8)
    assert max(found.size(k) for k in range(8)) < 1200


def extreme(n):
    """The largest addresses, a few links only."""
    return tuple(2**32 - 1 - x for x in uniform(n, 40))


def alone(n):
    """One address sends to itself."""
    return (np.zeros(n),) * 2


def broadcast(n):
    """All to the largest address of all, so that ranges end behind it; several packets a link."""
    return np.arange(n) % 300, np.full(n, 2**32 - 1)


@pytest.mark.slow
@pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")
@pytest.mark.parametrize(
    "make", [uniform, zipf, extreme, broadcast, lambda n: (uniform(n)[0] * 0,) * 2]
)
def test_the_rounds_on_the_host(make, monkeypatch):
    """Host code by NumPy, the kernels of fewer bytes by g++."""
    monkeypatch.setattr(rounds, "LEAST", 1)
    monkeypatch.setattr(rounds, "SPARE", 0)
    for n, cases in ((2000, ((1, [0, 0]), (3, None))), (3, ((4, None),))):
        packets = tuple(np.asarray(x, np.uint32) for x in make(n))
        right = traffic_statistics(packets, engine="cpu")
        for parts, devices in cases:
            with on_host(batches.SOURCE):
                found = traffic_statistics(packets, engine="gpu", batches=parts, devices=devices)
            assert found == right


class Slab:
    """Stands for a block of a device's memory."""

    class data:
        ptr = 0

    class device:
        id = 0


def test_an_arena_gives_no_byte_twice_and_takes_all_back(monkeypatch):
    arena = batches.Arena.__new__(batches.Arena)
    arena._slab, arena._free, arena.overflowed = Slab, [(0, 1 << 16)], False
    lent = {}

    class Cuda:
        class UnownedMemory:
            def __init__(self, start, nbytes, owner, device):
                self.start, self.nbytes, self.owner = start, nbytes, owner

        @staticmethod
        def MemoryPointer(memory, offset):
            return memory

    class Cupy:
        cuda = Cuda

        @staticmethod
        def get_default_memory_pool():
            class Pool:
                malloc = staticmethod(lambda nbytes: None)

            return Pool

    monkeypatch.setattr(batches.engines, "cupy", lambda: Cupy)
    rng = np.random.default_rng(0)
    for turn in range(2000):
        if rng.random() < 0.55:
            given = arena.malloc(int(rng.integers(1, 6000)))
            if given is not None:
                used = {b for m in lent.values() for b in range(m.start, m.start + m.nbytes, 512)}
                mine = set(range(given.start, given.start + given.nbytes, 512))
                assert not used & mine
                assert max(mine) + 512 <= 1 << 16
                lent[turn] = given
        elif lent:
            del lent[int(rng.choice(list(lent)))]
            given = None
    given = None
    lent.clear()
    assert arena._free == [(0, 1 << 16)]
    assert arena.overflowed

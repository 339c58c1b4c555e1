"""Words that threads of the host move: by one thread and by several, larger than what one takes."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices.cpu import CHUNK, COPY_THREADS

SIZES = (0, 1, 7, CHUNK - 1, CHUNK, 3 * CHUNK + 5, 11)  # bytes, one array after the other
GUARD = 0xEE


@pytest.fixture(params=[1, 2, 3, COPY_THREADS + 4])
def threads(request, monkeypatch):
    monkeypatch.setattr(cpu_copies, "THREAD_BYTES", 1)
    return request.param


def guarded(size, dtype):
    """An array that begins anywhere, between words that nobody may write."""
    memory = np.full(size * np.dtype(dtype).itemsize + 24, GUARD, np.uint8)
    return memory, memory[8:-16].view(dtype)


def test_many_arrays_are_copied_at_once(threads):
    rng = np.random.default_rng(threads)
    sources = [rng.integers(0, 256, size, dtype=np.uint8) for size in SIZES]
    made = [guarded(size, np.uint8) for size in SIZES]
    pairs = [(target, source) for (_, target), source in zip(made, sources, strict=True)]
    cpu_copies.copy(pairs, threads)
    for (memory, target), source in zip(made, sources, strict=True):
        np.testing.assert_array_equal(target, source)
        assert (memory[:8] == GUARD).all()
        assert (memory[-16:] == GUARD).all()
    cpu_copies.copy([], threads)


@pytest.mark.parametrize("kinds", [(np.int32, np.int64), (np.float64, np.float32)])
def test_other_types_and_strides(kinds, threads):
    """Wide indices become narrow ones; a source need not be contiguous."""
    to, of = kinds
    wide = np.random.default_rng(1).integers(0, 1 << 20, 2 * CHUNK).astype(of)
    for source in (wide, wide[::2], wide[::-1], wide[:1], wide[:0]):
        same = guarded(source.size, of)[1]
        other = guarded(source.size, to)[1]
        cpu_copies.copy([(other, source), (same, source)], threads)
        np.testing.assert_array_equal(other, source.astype(to))
        np.testing.assert_array_equal(same, source)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.float64])
def test_ranges_are_gathered(kind, threads):
    """Short ones, empty ones, and one that several threads share; from anywhere on, to anywhere."""
    rng = np.random.default_rng(3)
    source = rng.integers(0, 200, CHUNK).astype(kind)
    length = np.concatenate(
        [rng.integers(0, 40, 30_000), [0, CHUNK - 3, 0], rng.integers(0, 9, 50)]
    )
    begin = np.array([rng.integers(0, CHUNK - size) for size in length])
    done = np.concatenate(([0], np.cumsum(length)))
    expected = np.concatenate([source[b : b + size] for b, size in zip(begin, length, strict=True)])
    for at, end in ((0, done[-1]), (1, 2), (777, done[-1] - 5), (done[29_990], done[-1])):
        memory, target = guarded(end - at, kind)
        cpu_copies.gather(target, int(at), source, begin, done, threads)
        np.testing.assert_array_equal(target, expected[at:end])
        assert (memory[:8] == GUARD).all()
        assert (memory[-16:] == GUARD).all()

"""The primitives on a GPU equal their references bit for bit; sizes around every block and tile."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood import engines
from matchwood.primitives.compact import gpu as compact_gpu
from matchwood.primitives.frontier import gpu as frontier_gpu
from matchwood.primitives.frontier import reference as frontier_reference
from matchwood.primitives.hashing import gpu as hashing_gpu
from matchwood.primitives.hashing import reference as hashing_reference
from matchwood.primitives.scan import gpu as scan_gpu
from matchwood.primitives.sort import gpu as sort_gpu
from matchwood.primitives.sort import reference as sort_reference
from matchwood.primitives.union_find import gpu as union_find_gpu
from support import looped

pytestmark = pytest.mark.gpu

SIZES = (0, 1, 2, 31, 33, 255, 256, 4095, 4096, 4097, 8192, 100_003)
INDEX = (np.int32, np.int64)


@pytest.fixture
def cp():
    return engines.cupy()


def equal(ours, expected):
    """The same bits, type and shape."""
    ours = ours.get()
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    bits = f"u{ours.itemsize}"
    np.testing.assert_array_equal(ours.view(bits), expected.view(bits))


# scan


@looped("n", SIZES)
@looped("kind", INDEX)
@looped("result", INDEX)
def test_scan(cp, n, kind, result):
    counts = np.random.default_rng(n).integers(-3, 50, n).astype(kind)
    expected = np.zeros(n + 1, result)
    np.cumsum(counts, out=expected[1:])
    equal(scan_gpu.exclusive_scan(cp.asarray(counts), dtype=result), expected)


def test_scan_of_many_tiles(cp):
    counts = np.random.default_rng(1).integers(0, 100, 10_000_001).astype(np.int32)
    for _ in range(5):  # look-back depends on timing
        ours = scan_gpu.exclusive_scan(cp.asarray(counts), dtype=np.int64)
        equal(ours, np.concatenate(([0], np.cumsum(counts, dtype=np.int64))))


@looped("offset", [1, 2, 3])
def test_scan_of_an_unaligned_array(cp, offset):
    counts = np.arange(20_000, dtype=np.int32)
    ours = scan_gpu.exclusive_scan(cp.asarray(counts)[offset:])
    equal(ours, np.concatenate(([0], np.cumsum(counts[offset:]))).astype(np.int32))


def test_scan_of_a_strided_array(cp):
    counts = np.arange(9000, dtype=np.int64)
    ours = scan_gpu.exclusive_scan(cp.asarray(counts)[::3])
    equal(ours, np.concatenate(([0], np.cumsum(counts[::3]))))


def test_scan_that_does_not_fit(cp):
    counts = np.full(5000, 1 << 20, np.int32)
    with pytest.raises(ValueError, match="does not fit int32"):
        scan_gpu.exclusive_scan(cp.asarray(counts))
    # it would fit in the end, but not on the way
    counts = np.array([1 << 30, 1 << 30, -(1 << 30)], np.int32)
    with pytest.raises(ValueError, match="does not fit int32"):
        scan_gpu.exclusive_scan(cp.asarray(counts))
    equal(
        scan_gpu.exclusive_scan(cp.asarray(counts), dtype=np.int64),
        np.array([0, 1 << 30, 1 << 31, 1 << 30]),
    )


# sort


@looped("n", SIZES)
@looped("kind", ["uint32", "uint64", "int32", "int64", "float32", "float64"])
@looped("payload", [None, np.int32, np.int64])
def test_sort(cp, n, kind, payload):
    rng = np.random.default_rng(n)
    bits = rng.integers(0, 1 << 63, n, dtype=np.uint64) * np.uint64(2)
    size = np.dtype(kind).itemsize
    keys = (bits >> np.uint64(64 - 8 * size)).astype(f"u{size}").view(kind)
    if n > 100:
        keys[::3] = keys[: keys[::3].size]  # equal ones
        if keys.dtype.kind == "f":
            keys[:4] = 0.0, -0.0, np.inf, -np.inf
    carried = None if payload is None else rng.integers(0, 1 << 30, n).astype(payload)
    ours = sort_gpu.sort_pairs(cp.asarray(keys), None if carried is None else cp.asarray(carried))
    for one, expected in zip(ours, sort_reference.sort_pairs(keys, carried), strict=True):
        equal(one, expected)


@looped("kind", [np.uint32, np.uint64])
@looped("bits", [0, 1, 7, 20, 32])
def test_sort_by_the_lowest_bits(cp, kind, bits):
    keys = np.random.default_rng(bits).integers(0, 1 << 32, 5000).astype(kind)
    ours = sort_gpu.sort_pairs(cp.asarray(keys), bits=bits)
    for one, expected in zip(ours, sort_reference.sort_pairs(keys, bits=bits), strict=True):
        equal(one, expected)


# compact


@looped("n", SIZES)
@looped("kind", [np.bool_, np.uint8, np.int8, np.int32, np.int64])
@looped("share", [0.0, 0.01, 0.5, 1.0])
def test_compact(cp, n, kind, share):
    rng = np.random.default_rng(n)
    mask = (rng.random(n) < share).astype(kind) * (1 if kind is np.bool_ else 3)
    mask = mask.astype(kind)
    equal(compact_gpu.compact(cp.asarray(mask)), np.flatnonzero(mask).astype(np.int32))


@looped("kind", [np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64])
def test_compact_values(cp, kind):
    rng = np.random.default_rng(5)
    mask, values = rng.random(30_000) < 0.3, rng.normal(size=30_000).astype(kind)
    equal(compact_gpu.compact(cp.asarray(mask), cp.asarray(values)), values[mask])
    strided = compact_gpu.compact(cp.asarray(mask)[::2], cp.asarray(values)[::2])
    equal(strided, values[::2][mask[::2]])


# frontier


@looped("n", [1, 63, 64, 65, 2048, 2049, 100_000])
@looped("kind", INDEX)
def test_frontier(cp, n, kind):
    rng = np.random.default_rng(n)
    queue = rng.integers(0, n, n // 2 + 1).astype(kind)
    bitmap = frontier_gpu.bitmap_from_queue(cp.asarray(queue), n)
    expected = frontier_reference.bitmap_from_queue(queue, n)
    equal(bitmap, expected)
    back = frontier_gpu.queue_from_bitmap(bitmap, n, dtype=np.dtype(kind))
    equal(back, np.unique(queue))


def test_frontier_empty_and_full(cp):
    none = cp.empty(0, np.int32)
    equal(frontier_gpu.bitmap_from_queue(none, 0), np.empty(0, np.uint64))
    equal(frontier_gpu.bitmap_from_queue(none, 70), np.zeros(2, np.uint64))
    equal(frontier_gpu.queue_from_bitmap(cp.empty(0, np.uint64), 0), np.empty(0, np.int32))
    everybody = np.arange(70, dtype=np.int32)
    bitmap = frontier_gpu.bitmap_from_queue(cp.asarray(everybody), 70)
    equal(frontier_gpu.queue_from_bitmap(bitmap, 70), everybody)


def test_frontier_refuses_what_is_no_vertex(cp):
    queue = np.arange(5000, dtype=np.int32)
    queue[[4000, 70, 71]] = -1, 5000, 6000
    with pytest.raises(ValueError, match=r"queue\[70\]"):
        frontier_gpu.bitmap_from_queue(cp.asarray(queue), 5000)


# union-find


@looped("n", [1, 2, 1000, 200_000])
@looped("kind", INDEX)
@looped("factor", [0.0, 0.4, 0.5, 3.0])
def test_union_find(cp, n, kind, factor):
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(n)
    m = int(n * factor)
    u, v = rng.integers(0, n, m).astype(kind), rng.integers(0, n, m).astype(kind)
    pattern = coo_array((np.ones(m, np.int8), (u, v)), shape=(n, n))
    _, component = connected_components(pattern.tocsr(), directed=False)
    smallest = np.full(n, n, np.int64)
    np.minimum.at(smallest, component, np.arange(n))
    for _ in range(3):
        ours = union_find_gpu.union_find(n, cp.asarray(u), cp.asarray(v))
        equal(ours, smallest[component].astype(kind))


@looped("order", ["up", "down", "random"])
def test_union_find_of_a_long_path(cp, order):
    """All edges hook into one set at the same time."""
    n = 100_000
    u = np.arange(n - 1, dtype=np.int32)
    u = {"up": u, "down": u[::-1].copy(), "random": np.random.default_rng(0).permutation(u)}[order]
    ours = union_find_gpu.union_find(n, cp.asarray(u + 1), cp.asarray(u))
    equal(ours, np.zeros(n, np.int32))


def test_union_find_refuses_what_is_no_vertex(cp):
    u, v = np.zeros(900, np.int32), np.zeros(900, np.int32)
    u[[30, 20]], v[[10, 40]] = 5, -1
    with pytest.raises(ValueError, match=r"u\[10\]"):
        union_find_gpu.union_find(5, cp.asarray(u), cp.asarray(v))


# hashing


@looped("kind", INDEX)
def test_hashes(cp, kind):
    rng = np.random.default_rng(2)
    low, high = (-(1 << 31), 1 << 31) if kind is np.int32 else (-(1 << 62), 1 << 62)
    v = np.concatenate(([0, 1, -1], rng.integers(low, high, 5000))).astype(kind)
    w = rng.integers(0, 1 << 31, v.size).astype(np.int32)
    x = rng.integers(0, 1 << 63, v.size, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    equal(hashing_gpu.mix64_array(cp.asarray(x)), hashing_reference.mix64_array(x))
    for seed in (0, 7, (1 << 64) - 1):
        equal(
            hashing_gpu.hash2_array(cp.asarray(v), cp.asarray(w), seed),
            hashing_reference.hash2_array(v, w, seed),
        )
    for r in (1, 3, 0xFFFFFFFF):
        equal(
            hashing_gpu.quarter_md5_array(cp.asarray(v), r),
            hashing_reference.quarter_md5_array(v, r),
        )
        for barrier in (0, 1 << 30, 1 << 32):
            equal(
                hashing_gpu.random_bit_array(cp.asarray(v), r, barrier),
                hashing_reference.random_bit_array(v, r, barrier),
            )

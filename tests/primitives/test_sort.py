"""Radix sort: equals NumPy's stable sort bit for bit, at any number of threads."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.engines.cpu import on_progress
from matchwood.errors import CheckFailed
from matchwood.primitives.sort import radix_sort, sort_keys
from matchwood.primitives.sort.check import check_radix_sort, check_sort_keys
from matchwood.primitives.sort.reference import order_bits, sort_pairs
from support import THREADS, in_time, looped

KEYS = ["uint32", "uint64", "int32", "int64", "float32", "float64"]


def random_keys(kind: str, size: int, seed: int = 0) -> np.ndarray:
    """Any bits at all: NaN with and without sign, infinities, denormals among the floats."""
    width = np.dtype(kind).itemsize
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 ** (8 * width), size, dtype=f"u{width}").view(kind)


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@looped("kind", KEYS)
@looped("size", [0, 1, 2, 3000])
def test_engines_equal_the_definition(engine, kind, size):
    keys = random_keys(kind, size)
    keys[size // 2 :] = keys[: size - size // 2]  # equal keys
    before = keys.copy()
    ours, order = radix_sort(keys, engine=engine)
    check_radix_sort(keys, None, ours, order)
    right, right_order = sort_pairs(keys)
    assert same_bits(ours, right)
    assert same_bits(order, right_order)
    assert same_bits(keys, before)


@looped("kind", ["uint32", "uint64"])
@looped("carried", ["int32", "int64"])
def test_a_payload_travels_with_its_key(engine, kind, carried):
    keys = random_keys(kind, 500) % np.dtype(kind).type(50)
    payload = np.random.default_rng(3).integers(-9, 9, 500).astype(carried)
    ours, travelled = radix_sort(keys, payload, engine=engine)
    check_radix_sort(keys, payload, ours, travelled)
    assert travelled.dtype == payload.dtype


@looped("kind", ["uint32", "float64"])
@looped("size", [1, 5, 200_000])
def test_threads_do_not_matter(kind, size):
    keys = random_keys(kind, size)
    right, right_order = sort_pairs(keys)
    for threads in THREADS:
        ours, order = radix_sort(keys, threads=threads)
        assert same_bits(ours, right)
        assert same_bits(order, right_order)


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 300), max_size=60),
    st.integers(0, 64),
    st.integers(1, 4),
)
def test_any_keys_and_bits(values, bits, threads):
    keys = np.array(values, dtype=np.uint64)
    ours, order = radix_sort(keys, bits=bits, threads=threads)
    expected = sorted(range(len(values)), key=lambda i: values[i] % 2**bits)
    assert order.tolist() == expected
    assert ours.tolist() == [values[i] for i in expected]
    check_radix_sort(keys, None, ours, order, bits=bits)


@given(st.lists(st.floats(width=32), max_size=40))
def test_floats_without_nan_are_in_their_order(values):
    values = [v for v in values if v == v]
    ours, order = radix_sort(np.array(values, dtype=np.float32))
    assert all(a <= b for a, b in itertools.pairwise(ours))
    check_radix_sort(np.array(values, dtype=np.float32), None, ours, order)


def test_the_total_order_of_floats():
    nan, inf = np.nan, np.inf
    ordered = np.array([-nan, -inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, inf, nan])
    ordered[0] = np.copysign(nan, -1.0)
    mixed = np.random.default_rng(0).permutation(ordered)
    assert same_bits(radix_sort(mixed)[0], ordered)


@looped("kind", KEYS)
def test_the_map_to_unsigned_keeps_the_order(kind):
    keys = np.sort(random_keys(kind, 1000))
    keys = keys[keys == keys]
    codes = order_bits(keys)
    assert codes.dtype.kind == "u"
    assert (codes[1:] >= codes[:-1]).all()
    assert np.unique(codes).size == np.unique(keys.view(codes.dtype)).size


def test_few_differing_bits_anywhere():
    """Digits are laid over the bits that differ; constant ones between them do no harm."""
    rng = np.random.default_rng(5)
    high, low = rng.integers(0, 2**9, (2, 2000), dtype=np.uint64)
    keys = high << np.uint64(50) | low << np.uint64(3) | np.uint64(0b101)
    ours, order = radix_sort(keys, threads=2)
    check_radix_sort(keys, None, ours, order)
    same, positions = radix_sort(np.full(100, 7, dtype=np.uint32), threads=2)
    assert (same == 7).all()
    assert positions.tolist() == list(range(100))


def test_views_and_read_only_arrays():
    keys = random_keys("uint32", 100)[::-3]
    payload = np.arange(100, dtype=np.int64)[::-3]
    keys.flags.writeable = payload.flags.writeable = False
    check_radix_sort(keys, payload, *radix_sort(keys, payload))


def test_bad_input():
    keys = np.ones(3, dtype=np.uint32)
    with pytest.raises(TypeError, match=r"keys must be uint32 or .* got uint8"):
        radix_sort(np.ones(3, dtype=np.uint8))
    with pytest.raises(TypeError, match="payload must be int32 or int64, got float64"):
        radix_sort(keys, np.ones(3))
    with pytest.raises(ValueError, match="size of keys, got 2 and 3"):
        radix_sort(keys, np.ones(2, dtype=np.int32))
    with pytest.raises(ValueError, match="one-dimensional"):
        radix_sort(np.ones((1, 3), dtype=np.uint32))
    with pytest.raises(TypeError, match="bits is for unsigned keys"):
        radix_sort(np.ones(3, dtype=np.int32), bits=3)
    with pytest.raises(ValueError, match="bits must be at most 32, got 33"):
        radix_sort(keys, bits=33)
    with pytest.raises(ValueError, match="bits must be at least 0"):
        radix_sort(keys, bits=-1)
    with pytest.raises(TypeError, match="bits must be an integer"):
        radix_sort(keys, bits=2.0)


def test_the_check_sees_what_is_broken():
    keys = np.array([5, 1, 5, 3], dtype=np.uint32)
    ours, order = radix_sort(keys)
    payload = np.array([10, 20, 30, 40])
    ours_too, travelled = radix_sort(keys, payload)
    check_radix_sort(keys, None, ours, order)
    check_radix_sort(keys, payload, ours_too, travelled)

    with pytest.raises(CheckFailed, match="4 keys expected"):
        check_radix_sort(keys, None, ours[:3], order)
    with pytest.raises(CheckFailed, match="at 0 and 1 fall"):
        check_radix_sort(keys, None, ours[[1, 0, 2, 3]], order[[1, 0, 2, 3]])
    with pytest.raises(CheckFailed, match="have changed their order"):
        check_radix_sort(keys, None, ours, order[[0, 1, 3, 2]])
    with pytest.raises(CheckFailed, match="comes 2 times"):
        check_radix_sort(keys, None, ours, order[[0, 1, 2, 2]])
    with pytest.raises(CheckFailed, match="comes 0 times"):
        check_radix_sort(keys, None, ours, order + 9)
    with pytest.raises(CheckFailed, match="is not keys"):
        check_radix_sort(keys, None, ours[[0, 1, 2, 2]] + np.uint32(0), order[[0, 2, 1, 3]])
    with pytest.raises(CheckFailed, match="belongs at 2"):
        check_radix_sort(keys, payload, ours, travelled[[0, 1, 3, 2]])
    with pytest.raises(CheckFailed, match="is missing"):
        check_radix_sort(keys, payload, np.array([1, 3, 5, 6], dtype=np.uint32), travelled)


@pytest.mark.slow
def test_a_long_sort_can_be_stopped():
    """A callback that raises stands for Ctrl-C: the members see it within a block of keys."""
    keys = random_keys("uint64", 20_000_000)
    seen: list[float] = []

    def stop(done: int, total: int) -> None:
        seen.append(time.perf_counter())
        raise KeyboardInterrupt

    def delay() -> float:
        with on_progress(stop), pytest.raises(KeyboardInterrupt):
            radix_sort(keys, threads=2)
        return time.perf_counter() - seen[-1]

    in_time(delay, 0.1)


# Keys alone


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize("size", [0, 1, 2, 3000])
def test_keys_alone_on_every_engine(engine, kind, size):
    keys = random_keys(kind, size)
    before = keys.copy()
    found = sort_keys(keys, engine=engine)
    check_sort_keys(keys, found)
    assert same_bits(found, np.sort(keys))
    assert same_bits(keys, before)


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
def test_keys_alone_at_any_number_of_threads(kind):
    n = 700_000
    some = {
        "random": random_keys(kind, n),
        "one value": np.full(n, 7, kind),
        "two values": random_keys(kind, n) & np.dtype(kind).type(1 << 20),
        "few large ones": np.where(np.arange(n) % 1000, 5, random_keys(kind, n)).astype(kind),
        "in order": np.arange(n, dtype=kind),
        "skewed": (random_keys(kind, n) >> (random_keys(kind, n, 1) % np.dtype(kind).type(30))),
    }
    for name, keys in some.items():
        right = np.sort(keys)
        for threads in THREADS:
            assert same_bits(sort_keys(keys, threads=threads), right), (name, threads)


@pytest.mark.gpu
def test_many_keys_alone_on_a_gpu():
    keys = random_keys("uint64", 1_000_003)
    assert same_bits(sort_keys(keys, engine="gpu"), np.sort(keys))


def test_the_check_of_keys_alone_sees_what_is_wrong():
    keys = random_keys("uint64", 100)
    right = np.sort(keys)
    check_sort_keys(keys, right)
    other = right.copy()
    other[50] = other[51]
    for wrong in (right[:-1], right[::-1].copy(), other, right.astype(np.int64)):
        with pytest.raises(CheckFailed):
            check_sort_keys(keys, wrong)


def test_keys_that_are_none():
    with pytest.raises(TypeError, match="sort_keys: keys must be uint32 or uint64"):
        sort_keys(np.zeros(3))
    with pytest.raises(ValueError, match="sort_keys: keys must be one-dimensional"):
        sort_keys(np.zeros((2, 2), np.uint32))

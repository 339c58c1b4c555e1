"""Queue and bitmap: the conversions, and the device functions under contention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.engines.cpu import atomic_add, barrier, crew, kernel, share
from matchwood.errors import CheckFailed
from matchwood.primitives.frontier import bitmap_from_queue, queue_from_bitmap, words_for
from matchwood.primitives.frontier.check import check_bitmap, check_queue
from matchwood.primitives.frontier.cpu import (
    BUFFER,
    claim_bit,
    flush,
    has_bit,
    push,
    set_bit,
)
from support import THREADS, looped

SIZES = [0, 1, 63, 64, 65, 128, 5000]


@looped("kind", [np.int32, np.int64])
@looped("n", SIZES)
def test_there_and_back(engine, kind, n):
    queue = np.random.default_rng(n).integers(0, max(n, 1), n // 2 + (n > 0)).astype(kind)
    bitmap = bitmap_from_queue(queue, n, engine=engine)
    check_bitmap(queue, n, bitmap)
    back = queue_from_bitmap(bitmap, n, dtype=kind, engine=engine)
    check_queue(bitmap, n, back)
    assert back.dtype == kind
    assert back.tolist() == sorted(set(queue.tolist()))
    assert queue_from_bitmap(bitmap, n, engine=engine).dtype == np.int32


@looped("n", [1, 64, 100_000])
@looped("threads", THREADS)
def test_threads_do_not_matter(threads, n):
    queue = np.random.default_rng(1).permutation(n).astype(np.int32)[: n // 3 + 1]
    bitmap = bitmap_from_queue(queue, n, threads=threads)
    np.testing.assert_array_equal(queue_from_bitmap(bitmap, n, threads=threads), np.sort(queue))


@given(st.integers(1, 300), st.data())
def test_random_sets(n, data):
    vertices = data.draw(st.lists(st.integers(0, n - 1), max_size=80))
    bitmap = bitmap_from_queue(np.array(vertices, dtype=np.int64), n, threads=2)
    words = [0] * words_for(n)
    for v in vertices:
        words[v // 64] |= 1 << v % 64
    assert bitmap.tolist() == words
    assert queue_from_bitmap(bitmap, n, threads=2).tolist() == sorted(set(vertices))


@looped("name", ["reference", "cpu"])
def test_bad_input(name):
    queue = np.array([0, 5, 9, 7], dtype=np.int32)
    for n, place in ((9, 2), (5, 1), (0, 0)):
        with pytest.raises(ValueError, match=rf"queue\[{place}\] must be in 0 \.\. n - 1"):
            bitmap_from_queue(queue, n, engine=name)
    with pytest.raises(ValueError, match=r"queue\[1\]"):
        bitmap_from_queue(np.array([3, -1]), 5, engine=name)
    with pytest.raises(TypeError, match="queue must be int32 or int64"):
        bitmap_from_queue(np.ones(3), 5, engine=name)
    with pytest.raises(TypeError, match="n must be an integer"):
        bitmap_from_queue(queue, 9.5, engine=name)
    with pytest.raises(ValueError, match="n must be at least 0"):
        bitmap_from_queue(queue, -1, engine=name)
    bitmap = np.array([1, 1], dtype=np.uint64)
    with pytest.raises(ValueError, match="must have 1 words for n = 64, got 2"):
        queue_from_bitmap(bitmap, 64, engine=name)
    with pytest.raises(ValueError, match="marks vertices past n = 70"):
        queue_from_bitmap(bitmap << np.uint64(6), 70, engine=name)
    with pytest.raises(TypeError, match="bitmap must be uint64"):
        queue_from_bitmap(bitmap.view(np.int64), 70, engine=name)
    with pytest.raises(TypeError, match="dtype must be int32 or int64"):
        queue_from_bitmap(bitmap, 70, dtype=np.uint8, engine=name)


@looped("threads", THREADS)
def test_the_smallest_bad_place_is_named_at_any_number_of_threads(threads):
    queue = np.zeros(300_000, dtype=np.int32)
    queue[[123_456, 200_000, 299_999]] = 7
    with pytest.raises(ValueError, match=r"queue\[123456\]"):
        bitmap_from_queue(queue, 5, threads=threads)


@kernel
def _push_odd(team, n, queue, tail, buffers):
    lo, hi = share(team, n)
    count = 0
    for v in range(lo, hi):
        if v % 2 == 1:
            count = push(buffers[team.me], count, v, queue, tail)
    flush(buffers[team.me], count, queue, tail)


@looped("n", [0, 1, 2 * BUFFER, 2 * BUFFER + 1, 50_000])
@looped("threads", THREADS)
def test_queue_with_buffers(threads, n):
    queue, tail = np.full(n // 2 + 1, -1, dtype=np.int32), np.zeros(1, dtype=np.int64)
    buffers = np.empty((threads, BUFFER), dtype=np.int32)
    crew(threads, work=n).run(_push_odd, n, queue, tail, buffers)
    assert tail[0] == n // 2
    np.testing.assert_array_equal(np.sort(queue[: tail[0]]), np.arange(1, n, 2))
    assert queue[tail[0]] == -1


@kernel
def _claim_all(team, n, bitmap, won):
    for v in range(n):  # all members want all vertices
        if claim_bit(bitmap, v):
            atomic_add(won, v, 1)


@looped("threads", THREADS)
def test_exactly_one_member_claims_a_vertex(threads):
    n = 20_000
    bitmap, won = np.zeros(words_for(n), dtype=np.uint64), np.zeros(n, dtype=np.int32)
    crew(threads, work=n).run(_claim_all, n, bitmap, won)
    assert (won == 1).all()
    check_bitmap(np.arange(n), n, bitmap)


@kernel
def _set_and_test(team, n, bitmap, seen):
    for v in range(team.me, n, team.size):  # neighbours in a word belong to different members
        if v % 3 == 0:
            set_bit(bitmap, v)
    if barrier(team):
        return
    for v in range(team.me, n, team.size):
        seen[v] = has_bit(bitmap, v)


@looped("threads", THREADS)
def test_no_bit_is_lost(threads):
    n = 10_007
    bitmap, seen = np.zeros(words_for(n), dtype=np.uint64), np.zeros(n, dtype=np.bool_)
    crew(threads, work=n).run(_set_and_test, n, bitmap, seen)
    np.testing.assert_array_equal(seen, np.arange(n) % 3 == 0)


def test_the_checks_see_what_is_broken():
    queue = np.array([3, 70, 64], dtype=np.int32)
    bitmap = bitmap_from_queue(queue, 80)
    check_bitmap(queue, 80, bitmap)
    with pytest.raises(CheckFailed, match="vertex 70 is in the queue and not marked"):
        check_bitmap(queue, 80, bitmap & np.uint64(9))
    with pytest.raises(CheckFailed, match="vertex 0 is marked and not in the queue"):
        check_bitmap(queue, 80, bitmap | np.uint64(1))
    with pytest.raises(CheckFailed, match="bits past n = 80"):
        check_bitmap(queue, 80, bitmap | np.uint64(1 << 63))
    with pytest.raises(CheckFailed, match="2 words of uint64 expected"):
        check_bitmap(queue, 80, bitmap[:1])
    right = queue_from_bitmap(bitmap, 80)
    check_queue(bitmap, 80, right)
    with pytest.raises(CheckFailed, match="do not increase"):
        check_queue(bitmap, 80, right[[1, 0, 2]])
    with pytest.raises(CheckFailed, match="do not increase"):
        check_queue(bitmap, 80, right[[0, 0, 1]])
    with pytest.raises(CheckFailed, match="3 vertices, 2 are listed"):
        check_queue(bitmap, 80, right[:2])
    with pytest.raises(CheckFailed, match="vertex 4 is not marked"):
        check_queue(bitmap, 80, np.array([3, 4, 64, 70]))
    with pytest.raises(CheckFailed, match="vertex 90 is not in"):
        check_queue(bitmap, 80, np.array([3, 64, 70, 90]))

"""Plans: every entry is in one batch, everything fits, and the least memory named is the least."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood import Devices, OutOfMemory
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices import plan as plans
from matchwood.engines.devices.plan import Buffer, Sizes, make_plan
from support import looped

SIZES = Sizes(every=8, own=18, listed=8, streamed=8, row=8, fixed=1024, arrays=16)
PLENTY = 1 << 40


def indptr_of(degrees, dtype=np.int32):
    return np.concatenate(([0], np.cumsum(degrees))).astype(dtype)


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch):
    """So that small graphs have several batches."""
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 4)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)


def planned(indptr, memory=PLENTY, devices=1, **options):
    engine = Devices((0,) * devices, **options)
    return make_plan("f", indptr, engine, SIZES, [memory] * devices)


def assert_sound(plan, indptr):
    """Each entry is in one batch, in order; each batch has the rows of its entries and fits."""
    assert [part.lo for part in plan.partitions[1:]] == [p.hi for p in plan.partitions[:-1]]
    assert (plan.partitions[0].lo, plan.partitions[-1].hi) == (0, indptr.size - 1)
    for p, part in enumerate(plan.partitions):
        at = part.first
        assert (part.first, part.last) == (indptr[part.lo], indptr[part.hi])
        for batch in plan.batches[p]:
            assert batch.first == at < batch.last
            assert part.lo <= batch.lo < batch.hi <= part.hi
            assert indptr[batch.lo] <= batch.first < indptr[batch.lo + 1]
            assert indptr[batch.hi - 1] < batch.last <= indptr[batch.hi]
            assert batch.last - batch.first <= plan.buffer[p].entries
            assert batch.hi - batch.lo <= plan.buffer[p].rows
            at = batch.last
        assert at == part.last
        degrees = np.diff(indptr[part.lo : part.hi + 1])
        assert plan.listed[p] == np.minimum(degrees, plan.length).sum()


DEGREES = {
    "no vertices": [],
    "no entries": [0] * 7,
    "even": [3] * 40,
    "hub first": [200] + [1] * 50,
    "hub last": [1] * 50 + [200],
    "one vertex": [17],
    "mostly empty": [0] * 300 + [5] + [0] * 300 + [7],
    "ends empty": [0, 0, 4, 0, 4, 0, 0],
}


@pytest.mark.slow
@looped(("name", "dtype"), itertools.product(DEGREES, (np.int32, np.int64)))
def test_all_entries_are_in_batches(name, dtype):
    indptr = indptr_of(DEGREES[name], dtype)
    for devices, batches in itertools.product((1, 2, 3, 4, 9), (None, 1, 3, 5, 10, 40, 1000)):
        for lists in (0, 1, 4, 16, "auto"):
            plan = planned(indptr, devices=devices, batches=batches, lists=lists)
            assert_sound(plan, indptr)
            assert plan.resident == (batches is None and lists == "auto")


@given(
    st.lists(st.integers(0, 30), max_size=80), st.integers(1, 5), st.integers(1, 50),
    st.sampled_from([0, 1, 3, 16, "auto"]), st.integers(0, 4000),
)  # fmt: skip
def test_random_plans_fit_or_name_what_would_do(degrees, devices, batches, lists, more):
    indptr = indptr_of(degrees)
    for asked in (None, batches):
        options = {"devices": devices, "batches": asked, "lists": lists}
        with pytest.raises(OutOfMemory) as told:
            planned(indptr, memory=1, **options)
        least = int(str(told.value).split(" bytes")[0].rpartition(" ")[2].replace(",", ""))
        plan = planned(indptr, memory=least + more, **options)
        assert_sound(plan, indptr)
        assert max(plan.needs) <= least + more
        with pytest.raises(OutOfMemory, match="nothing was sent"):
            planned(indptr, memory=least - 1, **options)


def test_lists_grow_with_the_memory():
    indptr = indptr_of(np.full(1000, 30))
    lengths = [planned(indptr, memory=m, batches=10).length for m in range(96_000, 300_000, 4_000)]
    assert lengths == sorted(lengths)
    assert lengths[0] < 8
    assert lengths[-1] == plans.USUAL_LIST


def test_fewer_batches_with_more_memory():
    indptr = indptr_of(np.full(2000, 20))
    counts = [
        len(planned(indptr, memory=m, lists=4).batches[0]) for m in range(150_000, 900_000, 50_000)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 5
    assert counts[-1] == 1


def test_lists_are_shortened_before_there_are_too_many_batches():
    """And where even short lists leave little room, there are more batches."""
    indptr = indptr_of(np.full(4000, 64))
    plan = planned(indptr, memory=600_000)
    assert len(plan.batches[0]) <= plans.MOST_BATCHES + 1
    assert plan.length < plans.USUAL_LIST
    tight = planned(indptr, memory=160_000)
    assert len(tight.batches[0]) > plans.MOST_BATCHES


def test_partitions_have_equal_entries():
    degrees = np.random.default_rng(1).integers(0, 9, 5000)
    indptr = indptr_of(degrees)
    for parts in (2, 3, 7):
        sizes = [part.entries for part in plans.cut_partitions(indptr, parts)]
        assert sum(sizes) == indptr[-1]
        assert max(sizes) - min(sizes) <= 18


def test_more_batches_than_vertices_are_said():
    indptr = indptr_of([9, 9, 9])
    plan = planned(indptr, batches=40)
    assert len(plan.batches[0]) == 3
    assert "3 batches instead of 40" in plan.notes[0]
    assert planned(indptr, batches=3).notes == []


def test_more_than_two_to_the_31_entries():
    """Only indptr is read, so a plan of a graph that is not there can be made."""
    indptr = np.arange(0, (85_000 + 1) * 26_000, 26_000, dtype=np.int64)
    assert indptr[-1] > 1 << 31
    plan = planned(indptr, memory=2 << 30, devices=3)
    assert_sound(plan, indptr)
    assert max(plan.needs) <= 2 << 30


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.integers(1, 9), st.integers(1, 5))
def test_fetched_rows_are_cut(degrees, entries, rows):
    offsets = indptr_of(degrees, np.int64)
    at = 0
    for row, stop, first, last in plans.cut_rows(offsets, Buffer(entries, rows)):
        assert first == at < last
        assert last - first <= entries
        assert 0 < stop - row <= rows
        assert offsets[row] <= first < offsets[row + 1]
        assert offsets[stop - 1] < last <= offsets[stop]
        at = last
    assert at == offsets[-1]


def test_degrees_are_counted():
    degrees = np.array([0, 1, 40, 3, 33, 32, 1, 0])
    counts = cpu_copies.count_degrees(indptr_of(degrees)[1:9], 33)
    assert counts.sum() == 7
    assert (counts[0], counts[1], counts[3], counts[32], counts[33]) == (1, 2, 1, 1, 2)
    for length in (1, 4, 16, 32):
        assert plans.listed_entries(counts, length) == np.minimum(degrees[1:], length).sum()
    by_three = cpu_copies.count_degrees(indptr_of(np.tile(degrees, 50)), 33, threads=3)
    one = cpu_copies.count_degrees(indptr_of(degrees), 33, threads=1)
    np.testing.assert_array_equal(by_three, 50 * one)


def test_words_are_gathered():
    source = np.arange(100, dtype=np.int32)[::-1].copy()
    begin, length = np.array([7, 3, 60, 0]), np.array([4, 0, 10, 2])
    done = np.concatenate(([0], np.cumsum(length)))
    expected = np.concatenate([source[b : b + k] for b, k in zip(begin, length, strict=True)])
    for at, kind in itertools.product((0, 3, 4, 13), (np.int32, np.int64)):
        target = np.zeros(expected.size - at, np.int32)
        cpu_copies.gather(target, at, source.astype(kind), begin, done)
        np.testing.assert_array_equal(target, expected[at:])


def test_rows_are_found():
    indptr = indptr_of([3, 0, 9, 1, 0, 0, 6]).astype(np.int32)
    for threads in (1, 3):
        begin, offsets = cpu_copies.find_rows(indptr, np.array([0, 2, 4, 6], np.int32), threads)
        assert (begin.tolist(), offsets.tolist()) == ([0, 3, 13, 13], [0, 3, 12, 12, 18])


def test_a_batch_is_cut_into_pieces():
    indptr = indptr_of([3, 0, 9, 1, 0, 0, 6])
    for batch, entries in itertools.product(
        (plans.Batch(0, 7, 0, 19), plans.Batch(2, 4, 5, 13), plans.Batch(2, 3, 4, 9)), (1, 4, 50)
    ):
        pieces = plans.cut_pieces(indptr, batch, entries)
        assert (pieces[0].first, pieces[-1].last) == (batch.first, batch.last)
        sizes = [piece.last - piece.first for piece in pieces]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= 1.5 * entries + 1
        assert all(one.last == other.first for one, other in itertools.pairwise(pieces))
        for piece in pieces:
            assert batch.lo <= piece.lo < piece.hi <= batch.hi
            assert indptr[piece.lo] <= piece.first < indptr[piece.lo + 1]
            assert indptr[piece.hi - 1] < piece.last <= indptr[piece.hi]


def test_bytes_in_words():
    for nbytes in (0, 7, 1023, 1024, 5000, 1 << 20, (1 << 30) + 1, 123_456_789_012):
        text = plans.in_words(nbytes)
        number, unit = text.split()
        size = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
        assert nbytes <= float(number) * size <= 1.02 * nbytes + 1

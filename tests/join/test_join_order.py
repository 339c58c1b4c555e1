"""Pairs in order: every way of sorting gives what the definition gives."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.applications.join import ONE, Raw
from matchwood.applications.join.ordering import cpu, reference
from matchwood.applications.join.ordering.check import check_in_order
from matchwood.errors import CheckFailed


def some_pairs(rng, rows, columns, count):
    """Pairs of different rows, in no order, and the sizes of the records."""
    keys = rng.permutation(np.unique(rng.integers(0, rows * columns, count)))
    left, right = (keys // columns).astype(np.int32), (keys % columns).astype(np.int32)
    sizes = rng.integers(1, 60, rows), rng.integers(1, 60, columns)
    weight = rng.integers(1, np.minimum(sizes[0][left], sizes[1][right]) * ONE + 1)
    return Raw(left, right, weight), sizes


def compare(raw, sizes, threads, cuts=()):
    parts = [Raw(*part) for part in zip(*(np.split(a, cuts) for a in raw), strict=True)]
    wanted = reference.in_order(list(parts), sizes, True)
    for scored in (True, False):
        given = list(parts)
        found = cpu.in_order(given, sizes, scored, threads)
        assert given == []
        if raw.left.size <= 5000:
            check_in_order(found, parts, sizes)
        for i in range(2 + scored):
            assert np.array_equal(found[i], wanted[i])
            assert found[i].dtype == (np.float64 if i == 2 else np.int64)
        assert scored or found[2] is None


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_pairs_in_any_parts(threads):
    rng = np.random.default_rng(threads)
    for rows, columns in ((1, 1), (1, 70_000), (70_000, 1), (3, 40_000), (5000, 4097)):
        for count in (0, 1, 2, 30, 5000, 60_000):
            raw, sizes = some_pairs(rng, rows, columns, count)
            cuts = np.sort(rng.integers(0, raw.left.size + 1, rng.integers(0, 5)))
            compare(raw, sizes, threads, cuts)


def test_no_parts_at_all():
    left, right, score = cpu.in_order([], (np.ones(3, np.int64), np.ones(2, np.int64)), True, None)
    assert left.size == right.size == score.size == 0


def test_the_check_sees_what_is_wrong():
    raw, sizes = some_pairs(np.random.default_rng(3), 30, 20, 50)
    left, right, score = reference.in_order([raw], sizes, True)
    check_in_order((left, right, score), [raw], sizes)
    check_in_order((left, right, None), [raw], sizes)
    wrong = {
        "does not come after": (left[::-1], right[::-1], None),
        "are not the": (left[1:], right[1:], None),
        "another score": (left, right, score + 1e-16 + np.spacing(score)),
    }
    for message, found in wrong.items():
        with pytest.raises(CheckFailed, match=message):
            check_in_order(found, [raw], sizes)

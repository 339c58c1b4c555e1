"""Checks of primitives refuse what is no answer: floats for places, vertices that wrap around."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from matchwood.primitives.assemble.check import check_canonical
from matchwood.primitives.compact.check import check_compact
from matchwood.primitives.edge_order.check import check_order
from matchwood.primitives.frontier.check import check_bitmap, check_queue
from matchwood.primitives.hashing.check import check_mix64, check_random_bit
from matchwood.primitives.path_scan import path_scan
from matchwood.primitives.path_scan.check import check_path_scan
from matchwood.primitives.row_reduce.check import check_minimum_label
from matchwood.primitives.scan.check import check_exclusive_scan
from matchwood.primitives.sort.check import check_radix_sort
from matchwood.primitives.transpose.check import check_transpose
from matchwood.primitives.union_find.check import check_union_find


def test_floats_are_no_places():
    one, two, three = np.ones(1), np.arange(2.0), np.arange(3.0)
    whole = np.arange(2)
    for call in (
        lambda: check_exclusive_scan(np.array([1, 1]), three * 1.5),
        lambda: check_compact(np.array([True, True]), None, two),
        lambda: check_order(whole, whole + 1, np.array([2.0, 1.0]), two),
        lambda: check_bitmap(two, 2, np.array([3], np.uint64)),
        lambda: check_queue(np.array([3], np.uint64), 2, two),
        lambda: check_mix64(np.zeros(1, np.uint64), one),
        lambda: check_random_bit(whole, 0, 0.5, whole),
        lambda: check_minimum_label(np.array([0, 0, 0]), whole[:0], whole, two),
        lambda: check_radix_sort(whole, None, whole, two),
        lambda: check_union_find(2, whole[:0], whole[:0], two),
        lambda: check_canonical(np.array([0, 1]), one * 0, 1),
        lambda: check_transpose(
            (np.array([0, 1]), whole[:1], None), (np.array([0, 1]), two[:1], None), 1
        ),
    ):
        with pytest.raises(TypeError, match=r"^check_.* must hold .*, got dtype"):
            call()


def test_negative_vertices_do_not_wrap_around():
    marks = np.array([0b10], np.uint64)
    check_bitmap(np.array([1]), 2, marks)
    with pytest.raises(matchwood.CheckFailed, match="the queue lists -1"):
        check_bitmap(np.array([-1]), 2, marks)
    table = np.array([[1, -1], [0, -1]])
    found = path_scan(table, np.array([1, 1]), "add")
    check_path_scan(table, np.array([1, 1]), "add", found)
    found.ends[found.ends == 1] = -1
    with pytest.raises(matchwood.CheckFailed, match=r"are not within 0\.\.1"):
        check_path_scan(table, np.array([1, 1]), "add", found)


def test_values_go_with_a_transpose():
    A = (np.array([0, 1]), np.array([0]), np.array([np.nan]))
    check_transpose(A, A, 1)
    for values in (None, np.ones(2)):
        with pytest.raises(matchwood.CheckFailed, match="values must be there"):
            check_transpose(A, (A[0], A[1], values), 1)

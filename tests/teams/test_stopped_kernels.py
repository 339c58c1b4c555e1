"""Kernels that only pass over memory leave it alone once their team is to stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from matchwood.components.connected.ranks.cpu import giant
from matchwood.engines.cpu.team import STOP, WORDS, Team
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.primitives.contract import cpu as contract_cpu
from support import from_python

N = 1000


def pages() -> tuple[Any, Any]:
    memory = np.ones(3 * cpu_copies.PAGE, np.uint8)
    return (cpu_copies._touch, memory), memory


def degrees() -> tuple[Any, Any]:
    counts = np.zeros((2, 8), np.int64)
    return (cpu_copies._count_degrees, np.arange(N + 1), counts), counts


def moves() -> tuple[Any, Any]:
    source, target = np.ones(N), np.zeros(N)
    move = [(target.ctypes.data, source.ctypes.data, target.nbytes)]
    return (cpu_copies._copy, np.array(move, np.int64)), target


def conversions() -> tuple[Any, Any]:
    target = np.zeros(N, np.int32)
    return (cpu_copies._convert, target, np.arange(N)), target


def rows() -> tuple[Any, Any]:
    source, target, begin, done = np.ones(N), np.zeros(N), np.zeros(1, np.int64), np.array([0, N])
    places = (target.ctypes.data, 0, N, source.ctypes.data, target.itemsize)
    return (cpu_copies._gather, *places, begin, done), target


def marks() -> tuple[Any, Any]:
    words = np.zeros((1, 16), np.uint64)
    owners, counts = np.empty((0, 3), np.int64), np.zeros(2, np.int64)
    parent, first = np.zeros(N, np.uint32), np.zeros(N, np.uint32)
    joined = giant.Joined(parent, first, np.zeros((2, N), np.uint32))
    return (giant._mark, joined, np.uint32(0), owners, words, counts), words


def groups() -> tuple[Any, Any]:
    counts = np.zeros((2, 1), np.int32)
    starts, members = np.zeros(2, np.int32), np.zeros(N, np.uint32)
    labels, sums = np.zeros(N, np.uint32), np.zeros(2, np.int64)
    return (contract_cpu._group, labels, counts, sums, starts, members), counts


@pytest.mark.parametrize("make", [pages, degrees, moves, conversions, rows, marks, groups])
def test_it_ends_at_once(make):
    (kernel, *arguments), written = make()
    before, words = written.copy(), np.zeros(WORDS, np.int64)
    words[STOP] = 1
    from_python(kernel)(Team(0, 2, words), *arguments)
    np.testing.assert_array_equal(written, before)

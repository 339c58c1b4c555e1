"""Gaps and arrangements: one number on every engine, and a check that sees every fault."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, path, rmat, shuffled, star
from matchwood.check import check_gaps
from matchwood.ordering import gaps, linear_arrangement, linear_gap, log_arrangement, log_gap
from matchwood.ordering.gap import log_array, log_of, table
from strategies import graphs

NAMES = ("linear_arrangement", "log_arrangement", "linear_gap", "log_gap")


def some_order(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).permutation(n)


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    for order in (None, some_order(A.shape[0])):
        expected = gaps(A, order, engine="reference")
        for threads in (1, 2, 3, 7):
            assert gaps(A, order, threads=threads) == expected
        check_gaps(A, expected, order)


@pytest.mark.gpu
def test_the_gpu_gives_the_same(zoo_graph: sp.csr_array) -> None:
    for order in (None, some_order(zoo_graph.shape[0])):
        assert gaps(zoo_graph, order, engine="gpu") == gaps(zoo_graph, order)


@given(graphs(max_n=30, max_m=80))
def test_random_graphs(A: sp.csr_array) -> None:
    perm = some_order(A.shape[0], 7)
    assert gaps(A, perm, threads=2) == gaps(A, perm, engine="reference")
    assert gaps(matchwood.permute(A, perm)) == gaps(A, perm)


def test_one_by_one() -> None:
    A = shuffled(rmat(8, 5), isolated=4)
    perm = some_order(A.shape[0])
    found = gaps(A, perm)
    functions = (linear_arrangement, log_arrangement, linear_gap, log_gap)
    for name, function in zip(NAMES, functions, strict=True):
        assert function(A, perm) == getattr(found, name)


def test_long_rows_are_sorted() -> None:
    A = star(3000)
    perm = some_order(3000)
    assert gaps(A, perm) == gaps(A, perm, engine="reference")


@given(st.integers(1, 2**40))
def test_logarithms(d: int) -> None:
    assert abs(log_of(d) / 2**20 - math.log2(d)) < 2.0**-14
    assert log_of(d) <= log_of(d + 1)
    assert log_array(np.array([d]))[0] == log_of(d)


def test_the_table_is_the_one_of_the_definition() -> None:
    words = table()
    for d in (1, 2, 3, 255, 256, 65535):
        assert words[d] == round(2**20 * math.log2(d))
    assert log_of(65536) == 16 << 20
    assert log_of(3 << 40) == words[3] + (40 << 20)


def test_nothing_and_one() -> None:
    nothing = matchwood.Gaps(0, 0.0, 0, 0.0)
    for A in (sp.csr_array((0, 0)), sp.csr_array((1, 1)), sp.eye_array(4, format="csr")):
        assert gaps(A) == nothing


def test_the_check_finds_every_fault() -> None:
    A = path(6)
    perm = some_order(6)
    right = gaps(A, perm)
    for name in NAMES:
        wrong = dataclasses.replace(right, **{name: getattr(right, name) + 2**-20})
        if name.startswith("linear"):
            wrong = dataclasses.replace(right, **{name: getattr(right, name) + 1})
        with pytest.raises(matchwood.CheckFailed, match=f"gaps: {name} is"):
            check_gaps(A, wrong, perm)
    with pytest.raises(TypeError, match="answer must be Gaps"):
        check_gaps(A, (1, 2, 3, 4))


def test_bad_permutations() -> None:
    A = path(4)
    for function in (gaps, log_gap):
        with pytest.raises(ValueError, match=f"{function.__name__}: perm must hold every row once"):
            function(A, [0, 1, 1, 2])
        with pytest.raises(TypeError, match="perm must hold integers"):
            function(A, [0.0, 1, 2, 3])

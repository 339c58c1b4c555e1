"""A sliding window: every step against the definition; the check against every wrong number."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import beyond_on_host
from matchwood import engines
from matchwood.applications.sensing.sliding import STORED, Sliding
from matchwood.applications.sensing.sliding.check import check_sliding
from matchwood.errors import CheckFailed
from matchwood.sensing import sliding_statistics, traffic_statistics
from sensing.gpu_on_host import on_host
from sensing.traffic_cases import CASES, tiny, uniform, zipf
from support import THREADS


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("case", CASES)
def test_every_step_is_the_window(engine, case):
    src, dst = (x[:300] for x in CASES[case]())
    for window, stride in ((1, 1), (2, 1), (7, 1), (50, 3), (299, 1), (300, 1), (301, 1)):
        found = sliding_statistics(src, dst, window, stride, engine=engine)
        check_sliding(src, dst, found)
        for k, row in enumerate(found):
            here = slice(k * stride, k * stride + window)
            assert row == traffic_statistics((src[here], dst[here]), engine="reference").nine()


@pytest.mark.parametrize("make", [uniform, zipf, lambda n: uniform(n, 30)])
def test_threads_do_not_matter(make):
    src, dst = make(30_000)
    for window, stride in ((1000, 1), (4096, 7)):
        right = sliding_statistics(src, dst, window, stride, threads=1)
        check_sliding(src, dst, right)
        for threads in (*THREADS, 7):
            found = sliding_statistics(src, dst, window, stride, threads=threads)
            assert np.array_equal(found.table, right.table)


def test_tables_move_when_they_are_full():
    """Ever new links: each window fills the tables again."""
    n = np.arange(20_000, dtype=np.uint32)
    found = sliding_statistics(n, n[::-1].copy(), 64, threads=1)
    assert (found.table == 1).sum() == 5 * len(found)
    assert (found.unique_links == 64).all()
    check_sliding(n, n[::-1].copy(), found)


@pytest.mark.parametrize("name", STORED)
def test_the_check_sees_every_wrong_number(name):
    src, dst = zipf(500)
    right = sliding_statistics(src, dst, 100)
    column = STORED.index(name)
    for step in (0, 200, 400):
        for change in (1, -1):
            table = right.table.copy()
            table[step, column] += change
            with pytest.raises(CheckFailed, match=f"{name} of step {step}"):
                check_sliding(src, dst, Sliding(100, 1, table))


def test_the_check_sees_other_shapes():
    src, dst = tiny()
    right = sliding_statistics(src, dst, 3)
    for wrong in (
        Sliding(3, 1, right.table[:-1]),
        Sliding(3, 2, right.table),
        Sliding(4, 1, right.table),
        Sliding(3, 1, right.table[:, :-1]),
    ):
        with pytest.raises(CheckFailed):
            check_sliding(src, dst, wrong)
    with pytest.raises(TypeError, match="check_sliding"):
        check_sliding(src, dst, right.table)


def test_what_comes_back():
    found = sliding_statistics(*tiny(), window=4, stride=2)
    assert repr(found) == "Sliding(3 steps, window 4, stride 2)"
    assert found.valid_packets.tolist() == [4, 4, 4]
    assert found.unique_links.tolist() == [3, 3, 2]
    assert found[2]["max_link_packets"] == 3
    assert "unique_links" in dir(found)
    with pytest.raises(AttributeError, match="Sliding has no attribute"):
        found.nothing


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([1], [1, 2]), ValueError),
        (([1], [1], 0), ValueError),
        (([1], [1], 1, 0), ValueError),
        (([1], [1], 1.5), TypeError),
        (([1], [1], 2**31), ValueError),
        (([1.5], [1], 1), TypeError),
    ],
)
def test_arguments_that_are_none(arguments, error):
    with pytest.raises(error, match="sliding_statistics: "):
        sliding_statistics(*arguments)


@pytest.mark.slow
@pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")
def test_the_gpu_engine_on_the_host(monkeypatch):
    """Its host code by NumPy, its kernels by g++; blocks of steps of all sizes."""
    gpu = importlib.import_module("matchwood.applications.sensing.sliding.gpu")
    rng = np.random.default_rng(5)
    for trial in range(60):
        n, spread = int(rng.integers(1, 400)), int(rng.choice([1, 2, 5, 30, 2**32]))
        src, dst = rng.integers(0, spread, (2, n)).astype(np.uint32)
        window, stride = int(rng.integers(1, n + 1)), int(rng.integers(1, 9)) if trial % 2 else 1
        monkeypatch.setattr(gpu, "BLOCK", int(rng.choice([1, 10, 100, 1 << 22])))
        with on_host(gpu.SOURCE):
            found = sliding_statistics(src, dst, window, stride, engine="gpu")
        check_sliding(src, dst, found)


@pytest.mark.gpu
@pytest.mark.parametrize("make", [uniform, zipf, lambda n: uniform(n, 30)])
def test_packets_on_a_gpu(make, monkeypatch):
    """The same table as on threads, where the packets are."""
    src, dst = make(30_000)
    there = [engines.moved(x, "gpu") for x in (src, dst)]
    gpu = importlib.import_module("matchwood.applications.sensing.sliding.gpu")
    for block in (1 << 22, 1 << 12):
        monkeypatch.setattr(gpu, "BLOCK", block)
        for window, stride in ((1, 1), (1000, 1), (4096, 7), (30_000, 1)):
            right = sliding_statistics(src, dst, window, stride)
            found = sliding_statistics(*there, window, stride)
            assert engines.location(found.table) == "gpu"
            assert np.array_equal(found.table.get(), right.table)
            moved = sliding_statistics(src, dst, window, stride, engine="gpu")
            assert np.array_equal(moved.table, right.table)
    check_sliding(*there, found)
    assert found[0] == right[0]
    assert int(found.valid_packets[0]) == found.window


def test_the_largest_link_is_a_link_like_others():
    """Its key has all bits set: no room for a mark of free entries beside the keys."""
    rng = np.random.default_rng(0)
    for spread, window in ((3, 2), (20, 128), (12, 128), (20, 31)):
        src, dst = (2**32 - 1 - rng.integers(0, spread, (2, 9000))).astype(np.uint32)
        for threads in (1, 2):
            check_sliding(src, dst, sliding_statistics(src, dst, window, threads=threads))

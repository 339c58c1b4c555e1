"""The GPU's kernels for partitions, compiled for the host by g++: logic without a GPU.

A grid of one block with one warp, and tables so small that rows of all kinds occur.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import beyond_on_host
import matchwood
from graphs import grid, random_graph, rmat, shuffled, star
from matchwood.partitioning.kway import cpu, gpu, reference
from matchwood.partitioning.kway.task import Level, Plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not beyond_on_host.available, reason="g++ is not installed"),
]

ROUNDED = """
#define __host__
static double __dmul_rn(double a, double b) { return a * b; }
static double __ddiv_rn(double a, double b) { return a / b; }
"""
SLOTS = 64
SMALLER = {
    "TALLY_BLOCK = 256": "TALLY_BLOCK = 32",
    "SHARED_SLOTS = 2048": f"SHARED_SLOTS = {SLOTS}",
    "HUB_ROW = 2048": "HUB_ROW = 40",
    "WORTH_FILTER = 512": "WORTH_FILTER = 8",
}
GRAPHS = {
    "grid": lambda: shuffled(grid(7, 7, 1.0)),
    "rmat": lambda: rmat(5, 4),
    "star": lambda: star(70),
    "dense": lambda: random_graph(90, 400),
    "sparse": lambda: random_graph(30, 40),
}
PLANS = (Plan((2,), 3, 3), Plan((3, 2, 1), 5, 3), Plan((1, 0), 5, 3))


class Kernel:
    """As one of `Kernels`."""

    def __init__(self, launch: Any) -> None:
        self.launch = launch

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.launch(*arguments, **options)

    def resident(self, block: int) -> int:
        return 1


def here(array: Any) -> Any:
    return None if array is None else np.ascontiguousarray(array).view(beyond_on_host.Array)


def scan(counts: Any, offsets: Any) -> None:
    offsets[0] = 0
    np.cumsum(counts, out=offsets[1:])


def sums(values: Any, labels: Any, count: int) -> Any:
    found = np.zeros(count, np.int64)
    np.add.at(found, labels, values)
    return here(found)


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    text = beyond_on_host.with_changes(gpu.SOURCE.text(), SMALLER)
    monkeypatch.setattr(gpu.SOURCE, "_text", ROUNDED + text)

    def kernels(source: Any, *names: str, **types: Any) -> Any:
        kinds = tuple(sorted((name, np.dtype(kind).name) for name, kind in types.items()))
        made = vars(beyond_on_host.library(source, kinds))
        return SimpleNamespace(**{name: Kernel(made[name]) for name in names})

    def workspace(what: str, **arrays: Any) -> Any:
        return SimpleNamespace(
            **{name: beyond_on_host.empty(*array) for name, array in arrays.items()}
        )

    fake = SimpleNamespace(
        array=lambda a, kind=None: here(np.array(a, kind)), asarray=here,
        zeros=lambda n, kind: here(np.zeros(n, kind)),
        full=lambda n, value, kind: here(np.full(n, value, kind)),
    )  # fmt: skip
    monkeypatch.setattr(gpu.engines, "cupy", lambda: fake)
    monkeypatch.setattr(gpu, "SHARED_SLOTS", SLOTS)
    monkeypatch.setattr(gpu, "trusted_sums", sums)
    monkeypatch.setattr(gpu, "scan_into", scan)
    monkeypatch.setattr(gpu.gpu, "workspace", workspace)
    monkeypatch.setattr(gpu.gpu, "empty", lambda n, kind, what: beyond_on_host.empty(n, kind))
    for source in (gpu.SOURCE, gpu.LEVELS):
        monkeypatch.setattr(source, "kernels", functools.partial(kernels, source))


@pytest.mark.parametrize("graph", GRAPHS)
def test_refinement_is_that_of_the_cpu(graph: str, on_host: None) -> None:
    view = matchwood.graph(GRAPHS[graph]()).undirected_pattern()
    n = view.n
    rng = np.random.default_rng(n)
    rows = np.repeat(np.arange(n), np.diff(view.indptr))
    for trial, plan in enumerate(PLANS * 2):
        k = int(rng.choice([3, 9, min(n, 70)]))
        kind = np.int64 if trial == 5 else np.int32
        weights = np.ones(n, np.int64) if trial % 3 == 0 else rng.integers(1, 20, n)
        data = None if trial % 2 else 1 + (rows + view.indices) * (rows ^ view.indices) % 7
        fixed = (rng.random(n) < 0.3).astype(np.uint8) if trial % 4 == 1 else None
        target = -(-int(weights.sum()) // k)
        limits = np.full(k, int(rng.choice([1.0, 1.1, 2.0]) * target), np.int64)
        ceilings = limits - (limits - target) // 10
        arrays = (view.indptr.astype(kind), view.indices.astype(kind), data, weights)
        longest = int(np.diff(view.indptr).max())
        level, there = Level(*arrays, longest), Level(*map(here, arrays), longest)
        labels = (rng.integers(0, k, n) * rng.random(n)).astype(np.int32)
        expected, found = labels.copy(), here(labels.copy())
        cut = cpu.cut_of(level, labels)
        assert gpu.cut_of(there, found) == cut
        score = cpu.refine(level, expected, limits, ceilings, fixed, plan, cut)
        assert gpu.refine(there, found, limits, ceilings, here(fixed), plan, cut) == score
        assert np.array_equal(found, expected)
        for blocks in (None, labels):
            edges = gpu.light_edges(there, here(blocks), int(weights.max()))
            right = reference.light_edges(level, blocks, int(weights.max()))
            assert all(map(np.array_equal, edges, right))
    first = np.full(k, n)
    np.minimum.at(first, labels, np.arange(n))
    assert np.array_equal(gpu.first_of_blocks(here(labels), k), first)

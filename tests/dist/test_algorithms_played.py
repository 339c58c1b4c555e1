"""Graphs that are spread over ranks with GPUs, which are played: fake_cupy.py says how.

What runs here is the same as on real GPUs, in test_algorithms_gpu.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from dist import fake_cupy
from dist.test_algorithms_gpu import NAMES, compare
from graphs import ZOO
from matchwood import engines
from matchwood.dist.exchanges.cpu_distinct import distinct

GRIDS = ("1x1", "1x2", "2x1", "2x2", "2x3")


@pytest.fixture(autouse=True)
def _gpu(monkeypatch):
    fake_cupy.play(monkeypatch)


def test_what_a_gpu_refuses():
    there = engines.moved(np.arange(5), "gpu")
    assert engines.location(there) == "gpu" and engines.location(there.get()) == "cpu"
    for mistake in (
        lambda: np.asarray(there),
        lambda: there + np.arange(5),
        lambda: there[np.arange(2)],
        lambda: np.array([there.sum()]),
        lambda: distinct(there),  # a kernel of the CPU
    ):
        with pytest.raises(TypeError):
            mistake()


@pytest.mark.parametrize("grid", GRIDS)
def test_answers_of_ranks_with_gpus(grid):
    ranks = int(grid[0]) * int(grid[2])
    for turn, name in enumerate(NAMES):
        for order in ("given", "hashed") if grid == "2x2" else [("given", "hashed")[turn % 2]]:
            A = ZOO[name]()
            if A.shape[0] <= 600:
                matchwood.dist.run(compare, ranks, A, order, grid)

"""Graphs that are spread over ranks with GPUs, which are played: fake_cupy.py says how.

What runs here is the same as on real GPUs, in test_algorithms_gpu.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from dist import fake_cupy
from dist.test_algorithms_gpu import NAMES, PARTS, compare
from graphs import ZOO
from matchwood import engines
from matchwood.engines.ranks.exchanges.cpu import distinct
from matchwood.engines.ranks.protocol import Communicator
from matchwood.engines.ranks.threads import Threads

CASES = (  # grid, order, graph
    ("1x1", "given", "self loops"),
    ("1x2", "hashed", "float32"),
    ("2x2", "given", "few weights"),
    ("2x2", "hashed", "one edge"),
    ("2x2", "given", "0x0"),
    ("2x3", "hashed", "int64 indices"),
)


@pytest.fixture(autouse=True)
def _gpu(monkeypatch):
    fake_cupy.play(monkeypatch)


def test_what_a_gpu_refuses():
    there = engines.moved(np.arange(5), "gpu")
    assert engines.location(there) == "gpu"
    assert engines.location(there.get()) == "cpu"
    for mistake in (
        lambda: np.asarray(there),
        lambda: there + np.arange(5),
        lambda: there[np.arange(2)],
        lambda: np.array([there.sum()]),
        lambda: distinct(there),  # a kernel of the CPU
    ):
        with pytest.raises(TypeError):
            mistake()


@pytest.fixture(params=["common memory", "letters"])
def way(request, monkeypatch):
    """Ranks that see each other's memory use it; letters are for those that do not."""
    if request.param == "letters":
        monkeypatch.setattr(Threads, "lend", Communicator.lend)
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "order", "name"), CASES)
def test_answers_of_ranks_with_gpus(grid, order, name, way):
    """PageRank and label propagation lend no memory: for them both ways are the same."""
    parts = PARTS if way == "common memory" else PARTS[:-1]
    matchwood.dist.run(compare, int(grid[0]) * int(grid[2]), ZOO[name](), order, grid, parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_answers_of_ranks_with_gpus(name):
    A = ZOO[name]()
    for grid in ("1x1", "2x1", "2x2", "2x3") if A.shape[0] <= 600 else ():
        for order in ("given", "hashed"):
            matchwood.dist.run(compare, int(grid[0]) * int(grid[2]), A, order, grid)

"""Refinement under many schedules: members wait at random, windows are small; one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import matchwood
from delays import delayed, install
from graphs import ZOO, grid, path, rmat, shuffled, star

NAMES = ("before", "after", "proposed", "kept", "sweeps")
KINDS: tuple[dict[str, Any], ...] = (
    {"fraction": 1.0},
    {"fraction": 1.0, "sweeps": 3, "metric": "linear_gap"},
    {"fraction": 1.0, "partners": "median", "sweeps": 2},
)
GRAPHS: dict[str, Any] = {
    "grid": lambda: grid(9, 14),
    "shuffled grid": lambda: shuffled(grid(9, 14)),
    "rmat": lambda: shuffled(rmat(6, 4)),
    "path": lambda: shuffled(path(120)),
    "star": lambda: shuffled(star(40)),
    "loops": ZOO["self loops"],
}


@pytest.fixture(scope="module")
def late() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        copies = delayed(["matchwood.ordering.refine.cpu"], CHUNK=2, LEAST=4, MOST=32, FIRST=16)
        install(patch, copies)
        real = matchwood.engines.cpu.crew
        # a team also where there is little to do
        patch.setattr(
            copies["matchwood.ordering.refine.cpu"], "crew",
            lambda threads, work: real(threads, work=1 << 30),
        )  # fmt: skip
        yield


def many(orders: range, graphs: Iterable[str] = GRAPHS) -> None:
    for graph in graphs:
        G = matchwood.graph(GRAPHS[graph]())
        for seed in orders:
            order = np.random.default_rng(seed).permutation(G.n) if seed else None
            for kind in KINDS:
                expected = matchwood.refine_order(G, order, engine="reference", **kind)
                for threads in (1, 2, 3, 7):
                    found = matchwood.refine_order(G, order, threads=threads, **kind)
                    assert np.array_equal(found.perm, expected.perm), (graph, seed, threads)
                    for name in NAMES:
                        assert getattr(found, name) == getattr(expected, name)


@pytest.mark.slow
def test_delays(late: None) -> None:
    many(range(1), ("grid", "rmat"))


@pytest.mark.slow
def test_hundreds_of_delays(late: None) -> None:
    many(range(60))

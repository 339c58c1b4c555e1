"""Communities under many schedules: members wait at random, chunks are small; one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import matchwood
from delays import delayed, install
from graphs import ZOO, disjoint, grid, rmat, shuffled, star
from matchwood.communities import subrounds
from support import same

MODULES = (
    "matchwood.communities.subrounds.cpu",
    "matchwood.communities.louvain_leiden.cpu",
    "matchwood.communities.propagation.cpu",
)
FUNCTIONS: dict[str, Any] = {
    "moving": lambda G, **o: matchwood.louvain(G, method="moving", **o),
    "leiden": matchwood.leiden,
    "labels": matchwood.label_propagation,
}
GRAPHS: dict[str, Any] = {
    "rmat": lambda: shuffled(rmat(8, 5), isolated=9),
    "grid": lambda: shuffled(grid(17, 18, 1.0)),
    "weights": ZOO["few weights"],
    "star": lambda: star(300),
    "parts": lambda: disjoint([grid(9, 9), star(50), rmat(6, 4)]),
}


@pytest.fixture(scope="module")
def late() -> Iterator[None]:
    """Small graphs get the team that is asked for, and few sub-rounds: each has its barriers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subrounds, "MOST_SUBROUNDS", 5)
        install(patch, delayed(MODULES, CHUNK=3, ONE_MEMBER_SIZE=0))
        yield


def many(name: str, seeds: range, graphs: Iterable[str] = GRAPHS) -> None:
    for graph in graphs:
        G = matchwood.graph(GRAPHS[graph]())
        for seed in seeds:
            expected = FUNCTIONS[name](G, rng=seed, engine="reference")
            for threads in (1, 2, 3, 7):
                found = FUNCTIONS[name](G, rng=seed, threads=threads)
                assert same(found.labels, expected.labels), (graph, seed, threads)
                assert found.rounds == expected.rounds, (graph, seed, threads)


@pytest.mark.parametrize(
    "name",
    ["leiden", *(pytest.param(name, marks=pytest.mark.slow) for name in ("moving", "labels"))],
)  # the one that compiles most of what the others do
def test_delays(name: str, late: None) -> None:
    many(name, range(1), ("rmat", "weights"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hundreds_of_delays(name: str, late: None) -> None:
    many(name, range(100, 150))


def test_the_copies_are_run(late: None) -> None:
    """Else the tests above would say nothing."""
    from matchwood import engines

    module = engines.load("matchwood.communities.louvain_leiden", "cpu")
    assert module.CHUNK == 3
    assert module.barrier.py_func.__name__ == "slow_barrier"
    assert module.split_round.py_func.__globals__["barrier"].py_func.__name__ == "slow_barrier"

"""Reverse Cuthill-McKee under many schedules: delays at random between the phases.

Batches are made as small as can be, so that small graphs have many of them in work at once.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import matchwood
from graphs import complete, disjoint, grid, path, rmat, star
from matchwood.ordering.rcm import cpu, reference
from matchwood.ordering.rcm.cpu.batch_table import Tuning
from matchwood.ordering.rcm.reference import order as by_definition
from support import in_time

NONE = np.empty(0, np.int64)
PARALLEL = ["auto", "leveled", "unordered", "batch_basic", "batch"]
TUNINGS = [
    # a vertex or two a batch, wide lists in use
    Tuning(least=130, largest=130, enough=1, room=40, slots=2),
    Tuning(least=256, largest=256, enough=300, room=16, slots=3),
    # batches of many pieces
    Tuning(least=512, largest=2048, enough=2000, room=4096, slots=4, piece=20),
    Tuning(least=1000, largest=4000, enough=1, room=4096, slots=2, piece=1),
    Tuning(least=200, largest=200, enough=1, room=4096, slots=1),
]
GRAPHS = {
    "mesh": lambda: matchwood.generators.mesh((8, 8, 8)),
    "rmat": lambda: rmat(8, 6),
    "grid": lambda: grid(17, 18),
    "star": lambda: star(600),
    "complete": lambda: complete(60),
    "parts": lambda: disjoint([grid(9, 9), path(40), star(50), complete(12)]),
}


def many(name: str, seeds: range) -> None:
    """All methods against one reference, each with all delays; seeds choose threads and sizes."""
    G = matchwood.graph(GRAPHS[name]())
    expected, _ = by_definition(G, NONE, "serial", False)
    for method, seed in itertools.product(PARALLEL, seeds):
        threads = 1 + seed % 5
        found, _ = cpu.order(
            G, NONE, method, False, threads=threads,
            seed=seed, tuning=TUNINGS[seed % len(TUNINGS)],
        )  # fmt: skip
        assert np.array_equal(found, expected), f"{method}, seed {seed}, {threads} threads"


@pytest.fixture(autouse=True, scope="module")
def teams_for_small_graphs() -> Iterator[None]:
    """Have "auto" take a team for small graphs too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "TEAM_ARCS", 0)
        yield


@pytest.fixture(autouse=True)
def _all_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "SMALL_GRAPH_EDGES", -1)
    monkeypatch.setattr(cpu, "SMALL_ARCS", 0)
    monkeypatch.setattr(cpu.leveled, "WIDE_ARCS", 50)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_delays(name: str) -> None:
    many(name, range(20))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("wide", [0, 50])
def test_levels_then_order(name: str, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a few vertices have most arcs; chunks so small that all members have some."""
    monkeypatch.setattr(cpu, "SKEW", 0)
    monkeypatch.setattr(cpu.skewed, "WIDE_ARCS", wide)
    monkeypatch.setattr(cpu.skewed, "TEAM", 2)
    G = matchwood.graph(GRAPHS[name]())
    expected, _ = by_definition(G, NONE, "serial", False)
    for seed in range(20):
        found, counters = cpu.order(G, NONE, "auto", False, threads=2 + seed % 4, seed=seed)
        assert np.array_equal(found, expected), f"seed {seed}"
        assert counters["method"] == "leveled"


def test_levels_of_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free vertices of more than one chunk, and levels that a team sorts."""
    monkeypatch.setattr(cpu, "SKEW", 0)
    monkeypatch.setattr(cpu.skewed, "TEAM", 2)
    G = matchwood.graph(rmat(13, 12))
    expected, _ = cpu.order(G, NONE, "serial", False, threads=1)
    for seed in range(12):
        found, _ = cpu.order(G, NONE, "auto", False, threads=2 + seed % 4, seed=seed)
        assert np.array_equal(found, expected), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_hundreds_of_delays(name: str) -> None:
    many(name, range(100, 500))


@pytest.mark.parametrize("method", ["serial", *PARALLEL])
def test_ctrl_c(method: str) -> None:
    """Within 100 ms, most of which is the interpreter's."""
    G = matchwood.graph(matchwood.generators.grid((1500, 1500)))
    G.undirected_pattern()
    matchwood.ordering.cuthill_mckee(matchwood.generators.grid((400, 400)), start=0, method=method)

    def measure() -> float | None:
        sent: list[float] = []

        def interrupt() -> None:
            time.sleep(0.015)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=interrupt)
        whole = False
        try:
            sender.start()
            matchwood.ordering.cuthill_mckee(G, start=0, method=method, threads=2)
            whole = True
            sender.join()
            time.sleep(0.2)
        except KeyboardInterrupt:
            ended = time.perf_counter()
        sender.join()
        return None if whole else ended - sent[0]

    in_time(measure, 0.1)


def test_counters_add_up() -> None:
    G = matchwood.graph(GRAPHS["mesh"]())
    for tuning in TUNINGS:
        for threads in (1, 4):
            _, counters = cpu.order(
                G, NONE, "batch", False, threads=threads, stats=True, tuning=tuning
            )
            assert counters["executed"] + counters["empty"] == counters["dequeued"]
            assert counters["dequeued"] <= counters["generated"]
            assert counters["removed"] >= counters["rediscoveries"]


def test_equal_batches() -> None:
    """On a mesh, what does not fill a batch is left to the next: there are few small ones."""
    G = matchwood.graph(matchwood.generators.mesh((16, 16, 16)))
    view = G.undirected_pattern()
    tuning = Tuning(least=1000, largest=1000, enough=1000)
    _, counters = cpu.order(G, np.array([0]), "batch", False, threads=4, stats=True, tuning=tuning)
    row = view.nnz // view.n + 1
    whole = view.n * (64 + row) // 1000
    assert 0.8 * whole < counters["generated"] < 1.1 * whole


@pytest.mark.parametrize("name", GRAPHS)
def test_reversed(name: str) -> None:
    """Batches reverse the order in passing, when they fill the last place."""
    G = matchwood.graph(GRAPHS[name]())
    for threads in (1, 3):
        forth, _ = cpu.order(G, NONE, "batch", False, threads=threads)
        back, _ = cpu.order(G, NONE, "batch", True, threads=threads)
        assert np.array_equal(back[::-1], forth), threads


def test_early_termination() -> None:
    """In a complete graph all are placed after one batch; the others are left in the queue."""
    G = matchwood.graph(complete(300))
    _, counters = cpu.order(
        G, np.array([5]), "batch", False, threads=1, stats=True,
        tuning=Tuning(least=512, largest=512, enough=1),
    )  # fmt: skip
    assert counters["dequeued"] < 5

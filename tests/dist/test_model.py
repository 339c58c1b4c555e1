"""The experiments run on any ranks, and the model of their times is what its page says."""

from __future__ import annotations

import math

import pytest

from bench.engines.ranks.model import (  # fmt: skip
    AIMOS,
    GRAPHS,
    Counts,
    Machine,
    crowding,
    fit,
    judge,
    our_gain,
    pagerank_counts,
    predicted,
    thesis_claims,
)
from bench.papers.mandulak import ranks as bench_figures
from bench.papers.mandulak import ranks_pictures as pictures
from matchwood import dist
from matchwood.report import cluster as figures
from matchwood.report.cluster import links

TRUE = Machine(rate=2e8, bandwidth=3e9, latency=2e-5)


def rows(cpus, off=0.0):
    found = []
    for ranks in (1, 2, 3, 4, 6, 9, 16):
        steps = 30 * (ranks - 1).bit_length()
        counts = Counts(1e8 / ranks, 4e7 / math.sqrt(ranks) * (ranks > 1), steps)
        time = TRUE.seconds(counts) * crowding(ranks, cpus) * (1 + off * (ranks % 3 - 1))
        found.append(
            {
                "algorithm": "pagerank", "ranks": ranks, "seconds": time,
                "entries": counts.entries, "received": counts.bytes, "steps": counts.messages,
            }
        )  # fmt: skip
    return found


@pytest.mark.parametrize("cpus", [2, 16])
def test_the_model_finds_the_machine_behind_the_rows(cpus):
    made = rows(cpus)
    found = fit(made[:-1], cpus)
    assert found == pytest.approx(TRUE, rel=1e-6)
    assert predicted(found, made[-1], cpus) == pytest.approx(made[-1]["seconds"])
    for row in judge(rows(cpus, off=0.05), cpus):
        assert abs(row["off"]) < 0.25


def test_a_row_that_does_not_follow_is_seen():
    made = rows(16)
    made[-1]["seconds"] *= 2
    assert judge(made, 16)[-1]["off"] == pytest.approx(-0.5)


def test_what_does_not_matter_gets_no_part():
    made = [{**row, "seconds": row["entries"] / 1e8, "steps": 0} for row in rows(16)]
    found = fit(made, 16)
    assert found.rate == pytest.approx(1e8, rel=1e-3)
    assert found.latency == 0


def test_the_results_of_the_thesis_follow_from_counts():
    claims = thesis_claims()
    assert len(claims) == 7
    assert all(claim.holds for claim in claims), claims
    assert all(1.3 < gain < 1.7 for _, gain in our_gain())
    # without a network nothing is left of the gap between exchanges
    fast = AIMOS._replace(bandwidth=math.inf, latency=0.0)
    assert all(gain == 1 for _, gain in our_gain(fast))


def test_counts_of_pagerank_are_those_that_ranks_count():
    n, side = 1 << 10, 2

    def call(comm):
        G = figures.rmat(figures.Asked(10), 10, comm)
        figures.pagerank(G)
        comm.traffic.clear()
        figures.pagerank(G)
        return comm.traffic.by_operation["reduce_scatter"], comm.traffic.by_operation["allgather"]

    graph = GRAPHS[0]._replace(vertices=n)
    counts = pagerank_counts(graph, side, side, thesis=False)
    for fold, expand in dist.run(call, side * side):
        assert fold.bytes_received + expand.bytes_received == pytest.approx(counts.bytes, rel=0.01)


@pytest.mark.slow
def test_every_experiment_runs(tmp_path):
    names = list(figures.FIGURES)
    told = dist.run(figures.run, 4, names, figures.Asked(6, 1, 4))
    assert all(each == told[0] for each in told)
    found = told[0]
    assert {row["ranks"] for row in found["strong"]} == {1, 2, 3, 4}
    assert {row["ranks"] for row in found["weak"]} == {1, 4}
    assert all((row["steps"] > 0) == (row["ranks"] > 1) for row in found["strong"])
    assert {row["grid"] for row in found["shapes"]} == {"1x4", "2x2", "4x1"}
    assert {row["algorithm"] for row in found["complex"]} == {"matching", "labels", "pointers"}
    assert {row["exchange"] for row in found["variants"]} == {"own", "thesis"}
    for result in bench_figures.results(found):
        assert result["rows"]
        assert result["data"]
    ratios = bench_figures.speedups(found["strong"])
    assert set(ratios) == {"pagerank", "components", "bfs"}
    pytest.importorskip("matplotlib")
    pictures.draw(found, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"clusters_{name}.svg" for name in ("strong", "shares", "weak", "variants", "shapes")
    }


def test_links_are_measured():
    for found in dist.run(links, 3):
        assert found["bandwidth"] > 0
        assert 0 < found["barrier"] < 10

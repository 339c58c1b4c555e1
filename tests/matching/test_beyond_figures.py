"""The pictures and tables of the benchmark of graphs larger than a GPU."""

from __future__ import annotations

import pytest

from bench.matching import beyond_figures, beyond_occupancy

pytest.importorskip("matplotlib")


def test_launches_are_read_and_put_into_rounds():
    lines = [
        "==PROF== Connected to process 1",
        f'"ID","Kernel Name","{beyond_occupancy.METRIC}"',
        '"","","%"',
        '"0","void pack_rows<int, int, float>(long long, const T1 *)","60"',
        '"1","void pack_rows<int, int, float>(long long, const T1 *)","70"',
        '"2","point_next","80"',
        '"3","void settle_mutual<int>(T1)","90"',
        '"4","requeue_own","50"',
        '"5","pack_rows","10"',
    ]
    launches = beyond_occupancy.read_launches(lines)
    assert launches[0] == ("pack_rows", 60.0)
    assert beyond_occupancy.rounds_of(launches) == [
        {"pointing": 70.0, "matching": 70.0}, {"pointing": 10.0}
    ]  # fmt: skip


def test_all_pictures_are_drawn(tmp_path):
    scaling = [
        {"what": beyond_figures.SCALING, "graph": "g", "value": 1.0, "partitions": partitions,
         "batches": batches, "lists": lists, "seconds": 0.1, "phases": {"transfer": 0.1}}
        for partitions in (1, 2) for batches in (1, 10) for lists in ("auto", 0)
    ]  # fmt: skip
    best = {"what": "suitor, seconds", "graph": "g", "value": 0.5, "entries": 4_000_000,
            "matched_per_second": 2e6}  # fmt: skip
    found = {
        "counted": [
            {"graph": "g", "touched_by_round": [1.0, 0.1]},
            {"graph": "g", "shares_of_warps": [[1.0, 0.0], [0.1, 0.1]]},
        ],
        "timed": [*scaling, best],
        "occupancy": [{"graph": "g", "rounds": [{"pointing": 90.0, "matching": 80.0}]}],
    }
    beyond_figures.draw(found, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "beyond_gpu_occupancy.svg", "beyond_gpu_phases.svg", "beyond_gpu_rounds.svg",
        "beyond_gpu_scaling.svg", "beyond_gpu_table_4_4.csv", "beyond_gpu_warps.svg",
    ]  # fmt: skip
    table = (tmp_path / "beyond_gpu_table_4_4.csv").read_text().splitlines()
    assert table[1] == "g,suitor,4,500.0,2"

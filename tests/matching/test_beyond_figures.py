"""The pictures and tables of the benchmark of graphs larger than a GPU."""

from __future__ import annotations

import pytest

from bench.papers.mandulak import devices_figures, occupancy

pytest.importorskip("matplotlib")


def test_launches_are_read_and_put_into_rounds():
    lines = [
        "==PROF== Connected to process 1",
        f'"ID","Kernel Name","{occupancy.METRIC}"',
        '"","","%"',
        '"0","void pack_rows<int, int, float>(long long, const T1 *)","60"',
        '"1","void pack_rows<int, int, float>(long long, const T1 *)","70"',
        '"2","point_next","80"',
        '"3","void settle_mutual<int>(T1)","90"',
        '"4","requeue_own","50"',
        '"5","pack_rows","10"',
    ]
    launches = occupancy.read_launches(lines)
    assert launches[0] == ("pack_rows", 60.0)
    assert occupancy.rounds_of(launches) == [
        {"pointing": 70.0, "matching": 70.0}, {"pointing": 10.0}
    ]  # fmt: skip


@pytest.mark.slow
def test_all_pictures_are_drawn(tmp_path):
    scaling = [
        {"what": devices_figures.SCALING, "graph": "g", "value": 1.0, "partitions": partitions,
         "batches": batches, "lists": lists, "seconds": 0.1, "phases": {"transfer": 0.1}}
        for partitions in (1, 2) for batches in (1, 10) for lists in ("auto", 0)
    ]  # fmt: skip
    best = {"what": "suitor, seconds", "graph": "g", "value": 0.5, "entries": 4_000_000,
            "matched_per_second": 2e6}  # fmt: skip
    shape = {"graph": "g", "lists": 7, "batches": 60}
    times = [
        {"what": "first pass, in T", "value": 1.02, "bar": 1.04, **shape},
        {"what": "whole matching, in T", "value": 1.25, "bar": 1.3, **shape},
        {"what": "first pass, in T", "value": 1.01, "bar": 1.07, **shape, "batches": 3},
        {"what": "whole matching, in T", "value": 1.5, **shape, "batches": 3},
        {"what": "whole matching, not pinned, in T", "value": 2.0, "graph": "g"},
        {"what": "whole matching on the CPU, in T", "value": 4.0, "graph": "g", "threads": 16},
        {"what": "components, in copies of indices", "value": 0.5, "graph": "g"},
        {"what": "dominant on the GPU, ms", "value": 20.0, "graph": "g"},
        {"what": "1 resident, of dominant", "value": 1.1, "graph": "g"},
        {"what": "4 resident, of dominant", "value": 1.5, "graph": "g"},
    ]
    found = {
        "counted": [
            {"graph": "g", "touched_by_round": [1.0, 0.1]},
            {"graph": "g", "shares_of_warps": [[1.0, 0.0], [0.1, 0.1]]},
        ],
        "timed": [*scaling, best, *times],
        "occupancy": [{"graph": "g", "rounds": [{"pointing": 90.0, "matching": 80.0}]}],
    }
    devices_figures.draw(found, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "beyond_gpu_occupancy.svg", "beyond_gpu_others.csv", "beyond_gpu_passes.csv",
        "beyond_gpu_phases.svg", "beyond_gpu_rounds.svg", "beyond_gpu_scaling.svg",
        "beyond_gpu_table_4_4.csv", "beyond_gpu_warps.svg",
    ]  # fmt: skip

    def table(name):
        return (tmp_path / f"beyond_gpu_{name}.csv").read_text().splitlines()[1:]

    assert table("table_4_4") == ["g,suitor,4,500.0,2"]
    assert table("passes") == [
        "a quarter of the graph,7,60,1.020,1.250", "``batches=3``,7,3,1.010,1.500",
    ]  # fmt: skip
    assert table("others") == [
        '"used once, not pinned, at a quarter of the graph",2.0 T',
        "on the CPU with 16 threads,4.0 T",
        "components,0.50 copies of the columns",
        "on the device: ``dominant``,20 ms",
        '"on the device: ``Devices((0,))``",22 ms',
        '"on the device: ``Devices((0, 0, 0, 0))``",30 ms',
    ]

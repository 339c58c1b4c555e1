"""The results of the thesis' chapter on network sensing, with ours beside them.

    python -m bench.sensing.chapter [--exponent 22] [--json results.json]

Table 3.1: the quantities (all nine).  Figures 3.4 and 3.5: the time of the analysis, for 1, 5 and
10 batches, and how many times faster than the sequential reference.  Figure 3.6 and table 3.2: end
to end, from a file to the quantities, and packets a second.  The least of five runs counts, as in
the thesis.  Its data are 2^30 random packets as GraphBLAS matrices, on eight A100; ours are random
packets in the same layout as a capture, on this machine's threads and GPU, and python-graphblas
does the same work in the same run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matchwood
from bench.sensing import traffic
from matchwood.sensing import (
    read_capture,
    sense,
    traffic_matrix,
    traffic_statistics,
    write_capture,
)
from matchwood.sensing.statistics.quantities import REFERENCE_NAMES

BATCHES = (1, 5, 10)
RUNS = 5
THESIS = {  # 2^30 packets; least of five runs
    "reference, sequential": {"analysis_s": 64.23, "packets_per_s": 2_614_183},
    "eight A100, 1 batch": {"packets_per_s": 24_061_441},
    "eight A100, 5 batches": {"packets_per_s": 23_626_502},
    "eight A100, 10 batches": {"analysis_s": 1.17, "packets_per_s": 23_372_598},
}


def least(function: Callable[[], Any], runs: int = RUNS) -> float:
    """Seconds of the quickest run, after one that compiles."""
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def places() -> list[tuple[str, dict[str, Any]]]:
    """Where our part runs: one thread, all threads, the GPU if there is one."""
    from matchwood import engines
    from matchwood.teams import default_threads

    counts = sorted({1, default_threads()})
    found: list[tuple[str, dict[str, Any]]] = [(f"{k} threads", {"threads": k}) for k in counts]
    if engines.gpu_available():
        found.append(("1 GPU", {"engine": "gpu"}))
        found.append(("1 GPU named twice", {"engine": "gpu", "devices": [0, 0]}))
    return found


def measure(exponent: int, runs: int = RUNS) -> list[dict[str, Any]]:
    """A row for each place and number of batches; python-graphblas first."""
    n = 1 << exponent
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "official.pcap"
        write_capture(path, traffic.official(n, "uniform"))
        packets = read_capture(path)
        arrays = (packets.src, packets.dst)
        right = traffic_statistics(arrays)
        table(right)
        gb = traffic.graphblas(1)
        if gb is not None:
            matrix = traffic.matrix_of(gb, *arrays)
            assert traffic.nine_of(gb, matrix) == list(right.nine().values())
            whole = least(lambda: traffic.theirs(gb, path), 1)
            analysis = least(lambda: traffic.nine_of(gb, matrix), runs)
            rows.append(row("python-graphblas, 1 thread", 1, analysis, None, whole, n))
        prepared = traffic_matrix(*arrays)
        assert traffic_statistics(prepared) == right
        for name, options in places():
            where = {k: v for k, v in options.items() if k != "devices"}
            home = _on(prepared, where)
            analysis = least(lambda home=home, where=where: traffic_statistics(home, **where), runs)
            for batches in BATCHES:
                given = {**options, "batches": batches}
                assert traffic_statistics(arrays, **given) == right
                assert sense(path, **given).statistics == right
                sorting = least(lambda given=given: traffic_statistics(arrays, **given), runs)
                whole = least(lambda given=given: sense(path, **given), runs)
                rows.append(row(name, batches, analysis, sorting, whole, n))
    return rows


def _on(matrix: Any, options: dict[str, Any]) -> Any:
    """The matrix where the engine reads it."""
    from matchwood import engines
    from matchwood.sensing.traffic import trusted

    if options.get("engine") != "gpu":
        return matrix
    arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
    return trusted(*(engines.moved(array, "gpu") for array in arrays))


def row(
    name: str, batches: int, analysis: float, sorting: float | None, whole: float, packets: int
) -> dict[str, Any]:
    return {
        "where": name,
        "batches": batches,
        "analysis_s": analysis,
        "packets_to_quantities_s": sorting,
        "end_to_end_s": whole,
        "packets_per_s": packets / whole,
    }


def table(statistics: Any) -> None:
    print("Table 3.1, all nine quantities")
    for name, value in statistics.nine().items():
        print(f"  {REFERENCE_NAMES[name]:24} {value:>14,}")


def show(rows: list[dict[str, Any]], exponent: int) -> None:
    base = rows[0]["analysis_s"]
    print(f"\nFigures 3.4, 3.5, 3.6 and table 3.2: 2^{exponent} packets, least of {RUNS} runs")
    print("  where                        batches  analysis s  times  end to end s  packets/s")
    for one in rows:
        times = base / one["analysis_s"]
        print(
            f"  {one['where']:28} {one['batches']:7}  {one['analysis_s']:10.4f}  {times:5.1f}  "
            f"{one['end_to_end_s']:12.3f}  {one['packets_per_s']:13,.0f}"
        )
    print("  the thesis, 2^30 packets:")
    for name, told in THESIS.items():
        analysis = f"{told['analysis_s']:10.2f}" if "analysis_s" in told else " " * 10
        print(f"  {name:28}          {analysis}                      {told['packets_per_s']:13,}")


def run(exponent: int = 20) -> list[dict[str, Any]]:
    rows = measure(exponent)
    show(rows, exponent)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exponent", type=int, default=22)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = run(options.exponent)
    if options.json:
        told = {"version": matchwood.__version__, "exponent": options.exponent, "rows": found,
                "thesis": THESIS}  # fmt: skip
        options.json.write_text(json.dumps(told, indent=1))

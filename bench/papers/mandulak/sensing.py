"""The results of the thesis' chapter on network sensing, with ours beside them.

    python -m bench.papers.mandulak.sensing [--engine cpu|gpu] [--exponent 22] [--out FOLDER]
                                    [--merge OTHER.json ...] [--draw]

Table 3.1: the quantities (all nine).  Figures 3.4 and 3.5: the time of the analysis, and how many
times faster than the sequential reference.  Figure 3.6 and table 3.2: end to end, from a file to
the quantities, and packets a second.  All for 1, 5 and 10 batches; the least of five runs counts,
as in the thesis.  Every answer is compared with that of python-graphblas before it is timed.

The thesis has 2^30 random packets as GraphBLAS matrices on eight A100.  Ours are random packets in
the same layout: as arrays, as a capture of 56-byte records and as archives of 64 matrices.  Times
of other numbers of packets cannot be compared, so pictures show packets a second.  A capture is
read in chunks as it comes; in several batches all of it is read first and then cut.

A run on a machine with a GPU is merged in by `--merge` with the file that it wrote; `--draw` only
draws what the files hold.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness
from bench.applications.sensing import traffic
from matchwood import engines
from matchwood.applications.sensing.traffic import trusted
from matchwood.engines.cpu import default_threads
from matchwood.sensing import (
    archive_writer,
    read_capture,
    sense,
    traffic_matrix,
    traffic_statistics,
    write_capture,
)

BATCHES = (1, 5, 10)
RUNS = 5  # of which the least counts
PACKETS = 1 << 30  # of the thesis
THESIS = {  # DGX A100; what the chapter prints
    "sequential reference": {"analysis_s": 64.23, "packets_per_s": 2_614_183},
    "8 GPUs, 1 batch": {"packets_per_s": 24_061_441, "batches": 1},
    "8 GPUs, 5 batches": {"packets_per_s": 23_626_502, "batches": 5},
    "8 GPUs, 10 batches": {"analysis_s": 1.17, "packets_per_s": 23_372_598, "batches": 10},
}
FUNCTIONS = {  # table 3.1: what computes a quantity there; it lists six of the nine
    "valid_packets": "reduce(weights)",
    "unique_links": "size(edges)",
    "unique_sources": "size(row_sums)",
    "max_source_fan_out": "max(degrees)",
    "unique_destinations": "size(col_sums)",
    "max_destination_fan_in": "max(degrees)",
}
NAME = "sensing_chapter.json"
PEER = "python-graphblas, 1 thread"


def least(function: Callable[[], Any], runs: int = RUNS) -> float:
    """Seconds of the quickest run, after one that compiles."""
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def places(engine: str) -> list[tuple[str, dict[str, Any]]]:
    """Where our part runs: one thread and all threads, or one GPU, once and named twice."""
    if engine == "gpu":
        once: dict[str, Any] = {"engine": "gpu"}
        return [("1 GPU", once), ("1 GPU named twice", {**once, "devices": [0, 0]})]
    counts = sorted({1, default_threads()})
    return [(f"{k} thread{'s' if k > 1 else ''}", {"threads": k}) for k in counts]


def measure(exponent: int, engine: str, runs: int = RUNS) -> dict[str, Any]:
    """Table 3.1 of the data, and a row for each place and number of batches."""
    n = 1 << exponent
    with tempfile.TemporaryDirectory() as folder:
        path, archives = Path(folder) / "official.pcap", Path(folder) / "archives"
        write_capture(path, traffic.official(n, "uniform"))
        archives.mkdir()
        with archive_writer(archives, compression=_compression()) as writer:
            sense(path, on_window=writer.add)
        packets = read_capture(path)
        arrays = (packets.src, packets.dst)
        right = traffic_statistics(arrays)
        rows = _peer_rows(arrays, path, archives, list(right.nine().values()), runs)
        matrix = _on(traffic_matrix(*arrays), engine)
        for name, options in places(engine):
            where = {key: value for key, value in options.items() if key != "devices"}
            same(traffic_statistics(matrix, **where), right)  # keeps the sums of destinations
            analysis = least(lambda where=where: traffic_statistics(matrix, **where), runs)
            for batches in BATCHES:
                given = {**options, "batches": batches}
                rows.append(
                    {
                        "where": name,
                        "engine": engine,
                        "batches": batches,
                        "packets": n,
                        "analysis_s": analysis,
                        **_timed(arrays, path, archives, given, right, runs),
                    }
                )
    return {
        "engine": engine,
        "exponent": exponent,
        "environment": harness.environment(),
        "quantities": right.nine(),
        "rows": [_with_rates(row) for row in rows],
    }


def _compression() -> str | None:
    try:
        from matchwood.applications.sensing.archive.blob import compressor

        compressor(1)
    except ModuleNotFoundError:
        return None
    return "zstd"


def _timed(
    arrays: Any, path: Path, archives: Path, given: dict[str, Any], right: Any, runs: int
) -> dict[str, float]:
    """Our three ways to the quantities: from arrays, from the capture, from archives."""
    threads = given.get("threads")

    def whole() -> Any:
        cut = given["batches"] > 1
        return sense(read_capture(path, threads=threads) if cut else path, **given).statistics

    ways: dict[str, Callable[[], Any]] = {
        "packets_to_quantities_s": lambda: traffic_statistics(arrays, **given),
        "end_to_end_s": whole,
    }
    if given["batches"] == 1:  # the matrices of archives are their windows: nothing is cut
        ways["archives_to_quantities_s"] = lambda: sense(archives, **given).statistics
    for way in ways.values():
        same(way(), right)
    return {name: least(way, runs) for name, way in ways.items()}


def same(found: Any, right: Any) -> None:
    if found != right:
        raise AssertionError(f"{found} is not {right}")


def _peer_rows(
    arrays: Any, path: Path, archives: Path, right: list[int], runs: int
) -> list[dict[str, Any]]:
    """The same by python-graphblas, one thread, as the reference of the challenge does it."""
    gb = traffic.graphblas(1)
    if gb is None:
        return []
    matrix = traffic.matrix_of(gb, *arrays)
    ways: dict[str, Callable[[], Any]] = {
        "analysis_s": lambda: traffic.nine_of(gb, matrix),
        "packets_to_quantities_s": lambda: traffic.nine_of(gb, traffic.matrix_of(gb, *arrays)),
        "end_to_end_s": lambda: traffic.theirs(gb, path),
        "archives_to_quantities_s": lambda: from_archives(gb, archives),
    }
    for way in ways.values():
        same(way(), right)
    times = {name: least(way, runs) for name, way in ways.items()}
    return [{"where": PEER, "engine": "peer", "batches": 1, "packets": arrays[0].size, **times}]


def from_archives(gb: Any, folder: Path) -> list[int]:
    """Archives read, added up one after the other, and analysed."""
    total = None
    for path in sorted(folder.iterdir()):
        with tarfile.open(path) as archive:
            for member in archive:
                stream = archive.extractfile(member) or io.BytesIO()
                blob = np.frombuffer(stream.read(), np.uint8)
                matrix = gb.Matrix.ss.deserialize(blob)
                if total is None:
                    total = gb.Matrix("INT64", 1 << 32, 1 << 32)
                total(gb.binary.plus) << matrix
    return traffic.nine_of(gb, total)


def _on(matrix: Any, engine: str) -> Any:
    """The matrix where the engine reads it."""
    arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
    return matrix if engine == "cpu" else trusted(*(engines.moved(a, engine) for a in arrays))


def _with_rates(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "packets_per_s": row["packets"] / row["end_to_end_s"]}


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One run for each engine, the first given."""
    kept: dict[str, Any] = {}
    for run in runs:
        kept.setdefault(run["engine"], run)
    return {"thesis": THESIS, "runs": list(kept.values())}


def run(exponent: int = 20) -> list[dict[str, Any]]:
    from bench.papers.mandulak import sensing_figures as chapter_figures

    found = measure(exponent, "cpu")
    chapter_figures.show(merged([found]))
    rows: list[dict[str, Any]] = found["rows"]
    return rows


def main(arguments: list[str] | None = None) -> None:
    from bench.papers.mandulak import sensing_figures as chapter_figures

    parser = argparse.ArgumentParser(prog="chapter", description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--exponent", type=int, default=22, help="2^exponent packets")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "sensing")
    parser.add_argument("--merge", type=Path, nargs="*", default=[], help="files of other runs")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    found = [] if options.draw else [measure(options.exponent, options.engine, options.runs)]
    for file in options.merge:
        found += json.loads(file.read_text())["runs"]
    result = merged(found)
    (options.out / NAME).write_text(json.dumps(result, indent=1))
    chapter_figures.show(result)
    try:
        chapter_figures.draw(result, options.out)
    except ImportError as error:
        print(f"no pictures: {error}")


if __name__ == "__main__":
    main()

"""Table 3.2 of the thesis like for like: from GraphBLAS matrices in files to the nine quantities.

    python -m bench.papers.mandulak.sensing_archives [--exponent 28] [--seconds 20] -o FILE

Random packets, a matrix for each 2^17 of them, 64 to an archive, compressed by zstd where a package
for it is installed; files lie in memory (the page cache).  Then, on all threads and on a GPU where
there is one:

    archives   `sense` of the folder: reading, quantities of each window, the sum, its quantities
    batches    packets in arrays of the host to the quantities, in 1, 5 and 10 batches
    sliding    the nine quantities of a window of 2^17 packets after every packet

Every time is kept; answers are compared first.  `--tables` writes the page's tables of FILE.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import harness
from bench.papers.mandulak.sensing import BATCHES, THESIS, _compression, same
from matchwood import engines, generators
from matchwood.engines.cpu import default_threads
from matchwood.sensing import archive_writer, sense, sliding_statistics, traffic_statistics

BLOCK = 1 << 23  # packets
WINDOW = 1 << 17
RUNS, LEAST = 5, 2
SLIDING = 24  # 2^24 packets
SMALL = 21  # 2^21 packets, in which all kernels are met
NAME = "sensing_archives.json"
Row = dict[str, Any]


def blocks(packets: int) -> Iterator[Any]:
    for k in range(-(-packets // BLOCK)):
        yield generators.packets(min(BLOCK, packets), "uniform", rng=k)[:2]


def places() -> list[tuple[str, dict[str, Any]]]:
    threads = default_threads()
    found: list[tuple[str, dict[str, Any]]] = [(f"{threads} threads", {"engine": "cpu"})]
    return [*found, ("1 GPU", {"engine": "gpu"})] if engines.gpu_available() else found


def times(call: Callable[[], Any], right: Any, limit: float) -> list[float]:
    """Seconds of some calls, after one whose answer is compared; fewer where they take long."""
    same(call(), right)
    found: list[float] = []
    begun = time.perf_counter()
    while len(found) < RUNS:
        start = time.perf_counter()
        if len(found) >= LEAST and start - begun + found[-1] > limit:
            break
        call()
        found.append(time.perf_counter() - start)
    return found


def from_archives(exponent: int, limit: float, rows: list[Row]) -> None:
    n = 1 << exponent
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        start = time.perf_counter()
        with archive_writer(folder, compression=_compression()) as writer:
            right = sense(blocks(n), on_window=writer.add).statistics
        row: Row = {"what": "packets to archives", "where": places()[0][0], "packets": n}
        tell(rows, {**row, "seconds": [time.perf_counter() - start]})
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        for where, given in places():
            phases: dict[str, float] = {}

            def call(given: Any = given, phases: Any = phases) -> Any:
                found = sense(folder, **given)
                phases |= found.seconds
                return found.statistics

            seconds = times(call, right, limit)
            tell(rows, {"what": "archives", "where": where, "packets": n, "bytes": size,
                        "compression": _compression(), "seconds": seconds,
                        "phases of the last": phases})  # fmt: skip


def in_batches(exponent: int, limit: float, rows: list[Row]) -> None:
    n = 1 << exponent
    arrays = generators.packets(n, "uniform")[:2]
    right = traffic_statistics(arrays)
    for where, given in places():
        for batches in BATCHES:
            seconds = times(
                lambda g=given, b=batches: traffic_statistics(arrays, batches=b, **g), right, limit
            )
            tell(rows, {"what": "batches", "where": where, "packets": n, "batches": batches,
                        "seconds": seconds})  # fmt: skip


def sliding(exponent: int, limit: float, rows: list[Row]) -> None:
    n = 1 << exponent
    for kind in ("uniform", "zipf"):
        arrays = generators.packets(n, kind)[:2]
        right = None
        for where, given in places():
            there = tuple(engines.moved(array, given["engine"]) for array in arrays)

            def call(there: Any = there) -> Any:  # a row of it is on the host: all is done
                return sliding_statistics(*there, min(WINDOW, n // 2))[-1]

            right = right or call()
            seconds = times(call, right, limit)
            tell(rows, {"what": f"sliding, {kind}", "where": where, "packets": n,
                        "seconds": seconds})  # fmt: skip


def tell(rows: list[Row], row: Row) -> None:
    row["load"] = os.getloadavg()[0]
    row["packets_per_s"] = row["packets"] / min(row["seconds"])
    rows.append(row)
    print(f"{row['what']}, {row['where']}, {row.get('batches', '')}: "
          f"{row['packets_per_s'] / 1e6:.1f} M/s {row['seconds']}", flush=True)  # fmt: skip


def rates(found: dict[str, Any], part: str, where: str, **wanted: Any) -> float:
    """Packets a second of the quickest run."""
    (row,) = [
        row
        for row in found[part]["rows"]
        if row["where"] == where and all(row.get(key) == value for key, value in wanted.items())
    ]
    return float(row["packets"] / min(row["seconds"]))


def tables(found: dict[str, Any], folder: Path) -> Iterator[Path]:
    """Table 3.2, batches and sliding windows, as csv."""
    where = list(dict.fromkeys(row["where"] for row in found["archives"]["rows"]))
    n = found["archives"]["rows"][0]["packets"].bit_length() - 1
    thesis = THESIS["8 GPUs, 1 batch"]["packets_per_s"]
    archives = [rates(found, "archives", place, what="archives") for place in where]
    first = [
        f"from archives of 2^{n} packets",
        f"{thesis:,}",
        *(f"{rate:,.0f}" for rate in archives),
    ]
    _write(folder / "sensing_table_3_2.csv", [["packets a second", "thesis, 8 A100", *where], first,
           ["times the thesis", "1", *(f"{rate / thesis:.2f}" for rate in archives)]])  # fmt: skip
    yield folder / "sensing_table_3_2.csv"
    rows = [["batches", "thesis, analysis, up to 8 GPUs", *where]]
    told = {1: "1", 5: "2.4 (mean of 5 and 10)", 10: "up to 2.7"}
    for batches in BATCHES:
        gains = [rates(found, "batches", place, batches=batches)
                 / rates(found, "batches", place, batches=1) for place in where]  # fmt: skip
        rows.append([str(batches), told[batches], *(f"{gain:.2f}" for gain in gains)])
    _write(folder / "sensing_batches.csv", rows)
    yield folder / "sensing_batches.csv"
    rows = [["packets", *where]]
    for kind in ("uniform", "zipf"):
        speeds = (rates(found, "sliding", place, what=f"sliding, {kind}") for place in where)
        rows.append([kind, *(f"{speed / 1e6:.0f} million/s" for speed in speeds)])
    _write(folder / "sensing_sliding.csv", rows)
    yield folder / "sensing_sliding.csv"


def _write(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--exponent", type=int, default=28, help="2^exponent packets")
    parser.add_argument("--batched", type=int, help="the same of packets in batches")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts")
    parser.add_argument("--tables", action="store_true", help="of the file, without measuring")
    parser.add_argument("--seconds", type=float, default=20, help="of the runs of one place")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    if given.output.exists():
        found = json.loads(given.output.read_text())
    for part in () if given.tables else given.only or PARTS:
        exponent = given.batched if part == "batches" and given.batched else given.exponent
        exponent = min(SLIDING, exponent) if part == "sliding" else exponent
        PARTS[part](min(exponent, SMALL), 0, [])  # compiles
        rows: list[Row] = []
        environment = harness.environment()
        PARTS[part](exponent, given.seconds, rows)
        found[part] = {"environment": environment, "rows": rows}
        given.output.write_text(json.dumps(found, indent=1) + "\n")
    if given.tables:
        for written in tables(found, given.output.parent):
            print(written)


PARTS = {"archives": from_archives, "batches": in_batches, "sliding": sliding}


if __name__ == "__main__":
    main()

"""How graphs come to ranks: memory of a generator, and the time to read text.

    mpiexec -n 16 python -m bench.engines.ranks.making memory --scale 26
    mpiexec -n 16 python -m bench.engines.ranks.making text --scale 22

`memory`: the most memory that a rank had while an R-MAT graph was made, over the bytes of its
block.  `text`: an edge list in a file of the temporary folder, 2^scale lines, read by one rank and
by all.  Bars: three times the blocks; on 16 cores, 16 ranks read 8 times as fast as one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from matchwood.report.cluster import on_first

PEAK = 3.0  # times the block, at most
SPEEDUP = 8.0
FIRST = 1_000_000  # the smallest vertex of the text: all have seven digits
VERTICES = 1 << 20
LINE = 16  # bytes: two numbers of seven digits, a blank and the end
SEED = 20240607


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(comm: Any, scale: int) -> list[dict[str, Any]]:
    """The peak of the rank that needed most, over its block, and of all ranks together."""
    matchwood.generators.rmat(10, comm=comm)  # what libraries and kernels take is no part of it
    comm.barrier()
    before, start = peak_bytes(), time.perf_counter()
    G = matchwood.generators.rmat(scale, comm=comm)
    seconds = time.perf_counter() - start
    view = G.entries()
    block = view.indptr.nbytes + view.indices.nbytes
    more = peak_bytes() - before
    told = np.array(comm.objects((block, more, seconds)))
    worst = int((told[:, 1] / told[:, 0]).argmax())
    return [{
        "experiment": "memory", "graph": f"R-MAT {scale}", "ranks": comm.size,
        "seconds": float(told[:, 2].max()), "blocks": int(told[:, 0].sum()),
        "peak": int(told[:, 1].sum()), "ratio": float(told[:, 1].sum() / told[:, 0].sum()),
        "worst": float(told[worst, 1] / told[worst, 0]), "entries": int(G.nnz), "bar": PEAK,
    }]  # fmt: skip


def write_text(path: Path, lines: int) -> None:
    """Random edges, seven digits each."""
    rng = np.random.default_rng(SEED)
    with path.open("wb") as file:
        for begin in range(0, lines, 1 << 20):
            count = min(1 << 20, lines - begin)
            text = np.full((count, LINE), ord(" "), np.uint8)
            text[:, LINE - 1] = ord("\n")
            for first in (0, LINE // 2):
                rest = rng.integers(FIRST, FIRST + VERTICES, count)
                for digit in range(6, -1, -1):
                    rest, last = np.divmod(rest, 10)
                    text[:, first + digit] = ord("0") + last
            file.write(text.tobytes())


def text(comm: Any, scale: int) -> list[dict[str, Any]]:
    """Times to read an edge list, on one rank and on all."""
    folder = tempfile.mkdtemp() if comm.rank == 0 else ""
    path = Path(comm.objects(folder)[0]) / "edges.txt"
    if comm.rank == 0:
        write_text(path, 1 << scale)
    comm.barrier()

    def work(part: Any) -> list[dict[str, Any]]:
        times = []
        for _ in range(2):  # the first call compiles, and brings the file to memory
            part.barrier()
            start = time.perf_counter()
            matchwood.io.read(path, comm=part)
            times.append(time.perf_counter() - start)
        seconds = part.allreduce(np.array(times[1:]), "max")
        size = path.stat().st_size
        return [{
            "experiment": "text", "ranks": part.size, "lines": 1 << scale, "bytes": size,
            "seconds": float(seconds[0]), "bytes_per_second": size / float(seconds[0]),
        }]  # fmt: skip

    rows = [row for count in (comm.size, 1) for row in on_first(comm, count, work)]
    if comm.rank == 0:
        os.unlink(path)
    rows[0]["speedup"], rows[0]["bar"] = rows[1]["seconds"] / rows[0]["seconds"], SPEEDUP
    return rows


EXPERIMENTS = {"memory": memory, "text": text}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    with matchwood.dist.world() as comm:
        rows = EXPERIMENTS[options.experiment](comm, options.scale)
        if comm.rank > 0:
            return
    for row in rows:
        print(json.dumps(row), flush=True)
    if options.json is not None:
        content = {"environment": harness.environment(), "rows": rows}
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()

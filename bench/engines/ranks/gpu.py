"""Ranks that share one GPU, by CUDA IPC and through the host, against one rank on it.

    python -m bench.engines.ranks.gpu --scale 24 --json one.json
    mpiexec -n 4 python -m bench.engines.ranks.gpu --scale 24 --against one.json --json four.json

Components, matching and PageRank of an R-MAT graph.  Each row has the whole time of a call, the
part of it in collectives, and bytes and messages of the busiest rank.  The graph is made once: its
blocks stay where they are while the way of the data changes.  Then single collectives: so many
bytes on each rank, on the GPU.  NCCL is tried where it lets the ranks have it; with one rank it
always does.

Bar: four ranks by IPC take at most twice the time of one.

Processes that share a GPU take turns on it, and a turn takes time: on an H200 a kernel and the wait
for it took 0.5 ms with four of them.  NVIDIA's MPS lets them run at the same time; start it before:
``nvidia-cuda-mps-control -d``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from matchwood import engines
from matchwood.engines.ranks.exchanges import Exchange
from matchwood.errors import EngineUnavailable
from matchwood.report import cluster as figures
from matchwood.report.cluster import measure

CALLS: dict[str, Callable[[Any], Any]] = {
    "components": matchwood.connected_components,
    "matching": matchwood.weighted_matching,
    "pagerank": lambda G: matchwood.pagerank(
        G, tol=0, max_iterations=figures.PAGERANK_ITERATIONS, weighted=False
    ),
}
WAYS = ("ipc", "host", "nccl")
BAR = 2.0
COLLECTIVE_BYTES = 1 << 26  # of each rank
TRIES = 5


def moved_to(G: Any, comm: Any) -> Any:
    """The graph with its exchanges over another communicator of the same ranks."""
    G.comm = comm
    G.exchange = Exchange(comm, G.grid, G.order)
    return G


def rows_of(G: Any, name: str, transport: str, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for algorithm, call in CALLS.items():
        row = {
            "algorithm": algorithm, "graph": name, "ranks": G.comm.size, "transport": transport,
            **measure(G, call, repeats),
        }  # fmt: skip
        rows.append(row)
        tell(G.comm, row)
    return rows


def tell(comm: Any, row: dict[str, Any]) -> None:
    """A row as soon as it is known."""
    if comm.rank == 0:
        print(json.dumps(row), flush=True)


def collectives(comm: Any, transport: str) -> list[dict[str, Any]]:
    """Milliseconds of collectives of arrays on the GPU."""
    cupy = engines.cupy()
    words = cupy.ones(COLLECTIVE_BYTES // 8, np.int64)
    even = [words.size // comm.size] * comm.size
    part = words[: sum(even)]
    calls = {
        "allreduce": lambda: comm.allreduce(words),
        "reduce_scatter": lambda: comm.reduce_scatter(part, even),
        "allgather": lambda: comm.allgather(words),
        "alltoallv": lambda: comm.alltoallv(part, even),
    }
    rows = []
    for name, call in calls.items():
        times = []
        for _ in range(TRIES + 1):
            comm.barrier()
            start = time.perf_counter()
            call()
            cupy.cuda.get_current_stream().synchronize()
            times.append(time.perf_counter() - start)
        slowest = comm.allreduce(np.array(times[1:]), "max")
        row = {
            "collective": name, "transport": transport, "ranks": comm.size,
            "bytes": COLLECTIVE_BYTES, "seconds": statistics.median(slowest.tolist()),
        }  # fmt: skip
        rows.append(row)
        tell(comm, row)
    return rows


def with_nccl(comm: Any) -> Any:
    """The communicator with NCCL for arrays on GPUs; None where it refuses."""
    from matchwood.engines.ranks import opening
    from matchwood.engines.ranks.networks import nccl

    try:
        if comm.size > 1:
            return opening.with_transport(comm, "nccl")
        return nccl.open_nccl(comm)
    except EngineUnavailable as error:
        if comm.rank == 0:
            print(f"no NCCL: {error}", flush=True)
        return None


def measured(scale: int, repeats: int, ways: Sequence[str] = WAYS) -> list[dict[str, Any]]:
    """The rows of these ranks, whose data go these ways; all of them call it."""
    name = f"R-MAT {scale}"
    with matchwood.dist.world("gpu", kind="mpi", transport="host") as comm:
        start = time.perf_counter()
        G = matchwood.generators.rmat(scale, weights="uniform", comm=comm).on("gpu")
        G.undirected_pattern(), G.undirected_weights()
        tell(comm, {"made": name, "seconds": time.perf_counter() - start})
        rows = []
        if comm.size > 1 and "ipc" in ways:
            from matchwood.engines.ranks.networks.ipc import open_ipc

            near = open_ipc(comm, tolerant=False)
            rows += rows_of(moved_to(G, near), name, "ipc", repeats)
            rows += collectives(near, "ipc")
        if "host" in ways:
            rows += rows_of(moved_to(G, comm), name, "host", repeats)
            rows += collectives(comm, "host")
        by_nccl = with_nccl(comm) if "nccl" in ways else None
        if by_nccl is not None:
            rows += rows_of(moved_to(G, by_nccl), name, "nccl", repeats)
            rows += collectives(by_nccl, "nccl")
        return rows


def judge(rows: list[dict[str, Any]], alone: list[dict[str, Any]]) -> None:
    """Times over those of one rank, beside the bar."""
    once = {row["algorithm"]: row["seconds"] for row in alone if "algorithm" in row}
    for row in rows:
        if "algorithm" in row and row["algorithm"] in once:
            ratio = row["seconds"] / once[row["algorithm"]]
            bar = f", bar {BAR:g}x {'met' if ratio <= BAR else 'missed'}"
            print(
                f"{row['algorithm']:10} {row['ranks']} ranks by {row['transport']:4} "
                f"{1e3 * row['seconds']:8.2f} ms, computing {1e3 * row['computing']:8.2f} ms, "
                f"{ratio:5.2f}x one rank{bar if row['transport'] == 'ipc' else ''}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--against", type=Path, help="what one rank wrote")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    rows = measured(options.scale, options.repeats, options.ways)
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() > 0:
        return
    if options.against is not None:
        judge(rows, json.loads(options.against.read_text())["rows"])
    if options.json is not None:
        content = {"environment": harness.environment(), "rows": rows}
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()

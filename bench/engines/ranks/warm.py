"""Compile what the benchmarks of clusters call, before many ranks do that at once.

    python -m bench.engines.ranks.warm

A process for each call, on four ranks that are threads, on a small graph, and one for what ranks
that are processes or have large graphs need besides.  The kernels stay in Numba's cache, from which
the processes of a run take them.
"""

from __future__ import annotations

import subprocess
import sys

import matchwood
from matchwood.machine import warm
from matchwood.report import cluster as figures

SCALE = 15  # large enough for the kernels that small graphs do not need
BESIDES = "besides"
CALLS = {**figures.BENCHMARKS, **figures.COMPLEX}


def called(comm: matchwood.dist.Communicator, name: str) -> None:
    """One call, twice: some algorithms do more from the second on."""
    for grid in (None, f"1x{comm.size}"):
        G = figures.rmat(figures.Asked(SCALE), SCALE, comm, grid=grid, weights="uniform")
        for _ in range(2):
            CALLS[name](G)


def main() -> None:
    if sys.argv[1:] == [BESIDES]:
        for _, work in warm.steps_on_ranks((), (), lambda index, value: ()):
            work()
        return
    if len(sys.argv) > 1:
        for ranks in (4, 1):
            matchwood.dist.run(called, ranks, sys.argv[1])
        return
    command = [sys.executable, "-m", "bench.engines.ranks.warm"]
    started = [subprocess.Popen([*command, name]) for name in (*CALLS, BESIDES)]
    sys.exit(max(abs(process.wait()) for process in started))


if __name__ == "__main__":
    main()

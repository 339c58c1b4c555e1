"""The GPU engine: loads, types, caches and launches CUDA text; memory; captured rounds.

A problem keeps its kernels in `gpu.cu` and its host loop in `gpu.py`:

    SOURCE = gpu.Source(__package__, "gpu.cu", ("hook<I>", "relax<I,W>"))

    def run(indptr, indices):                              # cupy arrays
        k = SOURCE.kernels(I=indices.dtype)                # compiled once per device and types
        space = gpu.workspace("bfs", queue=(n, indices.dtype), size=(1, np.uint64))
        k.hook(n, (n, indptr, indices, space.queue))       # threads needed, arguments

Read on in source.py (text to kernels), launch.py (arguments, grids), memory.py (preflight,
workspace), rounds.py (captured rounds, convergence flag, status word), constants.py (numbers that
CUDA and Python share).  Headers that several families include are in device/, the others beside
their problem or primitive; all are included as ``#include "matchwood/atomics.cuh"``:

    threads, atomics    numbers of a thread, warp and block sums; relaxed accesses, counters
    edges, sorted_row   entries of rows shared among lanes; a search in a sorted row
    by_owner            elements that go to chosen ranks, and records of them
    status              how a kernel reports an error
    grid_barrier        many rounds in one kernel
    cluster, roll_call  blocks that read each other's memory; a barrier of the blocks that run
    exact               float32 as the CPU has it (CuPy flushes subnormal numbers to zero)

Rules: everything runs on the current stream; nothing waits for the device except `Flag.read`
and `Status.check`; nothing here imports cupy before it is called.
"""

from __future__ import annotations

from matchwood.engines.gpu.constants import KernelError
from matchwood.engines.gpu.launch import Kernel, Kernels, multiprocessors
from matchwood.engines.gpu.memory import Layout, empty, free_bytes, guard, reserve, workspace
from matchwood.engines.gpu.rounds import Captured, Flag, Status, capture
from matchwood.engines.gpu.source import SOURCES, Source

__all__ = [
    "SOURCES",
    "Captured",
    "Flag",
    "Kernel",
    "KernelError",
    "Kernels",
    "Layout",
    "Source",
    "Status",
    "capture",
    "empty",
    "free_bytes",
    "guard",
    "multiprocessors",
    "reserve",
    "workspace",
]

"""Path scans on the GPU.  Kernels: gpu.cu; what they are: __init__.py.

Waits for the device, to know whether the table is right, and whether there are cycles.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.path_scan import fault

_KERNELS = (
    "orient<I>",
    "cut_links",
    "double_up<V,Op>",
    "unpack<I,V>",
    "find_smallest<I>",
    "mark_cycles<I>",
    "choose<V>",
    "walk_stretches<V,Op>",
    "rank_nodes<V,Op>",
    "distribute<V,Op>",
    "find_cycles<V>",
)
_OPERATIONS = {"add": "Plus", "minimum": "Least", "maximum": "Most"}
# What the compile test builds: values of 4 and of 8 bytes, an operation of ours and the user's.
_TYPES = {"V": (np.int32, np.float64), "Op": ("Least", "Own")}
SOURCE = gpu.Source(__package__, "gpu.cu", _KERNELS, types=_TYPES)

SPACING = 32  # vertices per node, on average
BLOCK = 256  # threads
RANK_BLOCK, RANK_BLOCKS = 512, 264  # fewer blocks, cheaper barriers: two for each multiprocessor
MOST = 1 << 30  # vertices; links have 31 bits
LEFT, ROUNDS, CYCLES, WORDS = SOURCE.constants("LEFT", "ROUNDS", "CYCLES", "WORDS")
_BROKEN = SOURCE.constant("BROKEN")


@functools.lru_cache(maxsize=64)
def _source(op: str) -> gpu.Source:
    """The source for an operation; one of the user's own is an option of the compiler."""
    if op in _OPERATIONS:
        return SOURCE
    made = gpu.Source(
        __package__, "gpu.cu", _KERNELS, types=_TYPES, options=(f"-DMATCHWOOD_OWN={op}",)
    )
    gpu.SOURCES[SOURCE.package, SOURCE.file] = SOURCE  # not `made`, which is the user's
    return made


class Scan:
    """The arrays of one scan on the GPU, and its parts one by one."""

    def __init__(self, table: Any, values: Any, op: str, method: str) -> None:
        cupy = engines.cupy()
        self.n = n = int(table.shape[0])
        if n >= MOST:
            raise ValueError(f"path_scan: at most {MOST - 1} vertices on the GPU, got {n}")
        self.table, self.values = cupy.ascontiguousarray(table), cupy.ascontiguousarray(values)
        self.op, self.method = op, method
        kind, number = table.dtype, values.dtype
        size = 16 if number.itemsize == 4 else 32  # bytes of a state
        self._size = size
        arrays: dict[str, Any] = {
            "links": (2 * n, np.int32),
            "cut": (n, np.uint8),
            "words": (WORDS, np.uint32),
        }
        self._capacity = n // SPACING + n // (16 * SPACING) + 1024
        arrays["states"] = (n * size, np.uint8)
        if method == "doubling":
            arrays["spare"] = (n * size, np.uint8)
        else:
            arrays |= {
                "rows": (n * 16, np.uint8),
                "number": (n, np.int32),
                "listed": (n, np.int32),
                "nodes": (self._capacity, np.int32),
                "stretches": (2 * self._capacity * 16, np.uint8),
                "spare": (2 * self._capacity * 16, np.uint8),
            }
        gpu.reserve(n * (2 * kind.itemsize + 2 * number.itemsize + 1), "path_scan")
        self.ends = gpu.empty((n, 2), kind, "path_scan")
        self.reduced = gpu.empty((n, 2), number, "path_scan")
        self.cycle = gpu.empty(n, np.bool_, "path_scan")
        self.space = gpu.workspace("path_scan", **arrays)
        name = _OPERATIONS.get(op, "Own")
        self._k = _source(op).kernels(I=kind, V=number, Op=name)

    def orient(self, status: Any) -> None:
        self._k.orient(self.n, (self.n, self.table, self.space.links, status))

    def double(self, values: Any, kernels: Any, until_still: bool = False) -> None:
        space, n = self.space, self.n
        space.words.data.memset_async(0, space.words.nbytes)
        args = (n, space.links, values, until_still, space.states, space.spare, space.words)
        kernels.double_up(n, args, cooperative=True)

    def run(self) -> None:
        """One scan over the links as they are."""
        space, k, n = self.space, self._k, self.n
        if self.method == "doubling":
            self.double(self.values, k)
            k.unpack(n, (n, space.states, space.spare, space.words, self.ends, self.reduced))
            return
        for array in (space.words, space.cut, space.states):
            array.data.memset_async(0, array.nbytes)
        rows = (space.rows, SPACING, self._capacity, space.nodes, space.number)
        chosen = (space.rows, space.number, space.nodes, space.listed, space.words)
        k.choose(n, (n, space.links, self.values, SPACING, self._capacity, *chosen))
        threads = min(n, k.walk_stretches.resident() * BLOCK)
        k.walk_stretches(threads, (*rows, space.stretches, space.words))
        ranked = (space.nodes, space.stretches, space.spare, space.cut, space.words)
        blocks = min(k.rank_nodes.resident(RANK_BLOCK), -(-self._capacity // RANK_BLOCK))
        k.rank_nodes(
            None, (self._capacity, *ranked), block=RANK_BLOCK, grid=min(blocks, RANK_BLOCKS),
            cooperative=True,
        )  # fmt: skip
        distributed = (space.listed, space.stretches, space.spare, space.states, space.words)
        threads = min(n, k.distribute.resident() * BLOCK)
        k.distribute(threads, (*rows, *distributed))
        found_cycles = (space.states, space.cut, space.words)
        k.find_cycles(n, (n, space.links, SPACING, space.number, *found_cycles))
        k.unpack(n, (n, space.states, space.states, space.words, self.ends, self.reduced))

    def has_cycles(self) -> bool:
        """Wait for `run`; where there are cycles, their smallest vertices are marked."""
        words = self.space.words.get()
        return bool(words[LEFT if self.method == "doubling" else CYCLES])

    def find_smallest(self) -> None:
        """After a run by doubling: mark the smallest vertex of each cycle."""
        cupy = engines.cupy()
        space, n = self.space, self.n
        names = cupy.arange(n, dtype=np.int32)
        k = SOURCE.kernels("double_up", V=np.int32, Op="Least")
        self.double(names, k, until_still=True)
        args = (n, self.ends, space.states, space.spare, space.words, space.cut)
        self._k.find_smallest(n, args)

    def finish_cycles(self) -> None:
        """Cut the cycles, run again, and mark their vertices."""
        if self.method == "doubling":
            self.find_smallest()
        kept = self.space.cut.copy()
        self._k.cut_links(self.n, (self.n, kept, self.space.links))
        self.run()
        self._k.mark_cycles(self.n, (self.n, self.ends, kept, self.cycle))


def path_scan(
    table: Any, values: Any, op: str, *, method: str, threads: int | None = None
) -> tuple[Any, Any, Any]:
    scan = Scan(table, values, op, method)
    if scan.n:
        status = gpu.Status()
        scan.orient(status)
        scan.run()
        status.check({_BROKEN: lambda slot: fault(table, slot)})
        if scan.has_cycles():
            scan.finish_cycles()
        else:
            scan.cycle.fill(False)
    return scan.ends, scan.reduced, scan.cycle

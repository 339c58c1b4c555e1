"""Row reduction on the GPU.  Instances: gpu.cu; skeleton: matchwood/row_reduce.cuh.

An operation of your own is a struct in your `.cu`, and a kernel whose first six parameters are
those that `Tiles.launch` hands over (see `spmv` in gpu.cu) and whose last template argument is
the size of the tiles, say "propose<I,W,2048>"; the other parameters are yours:

    tiles = row_reduce.Tiles(indptr)                       # once per matrix
    tiles.launch(k.propose, accumulator_bytes, indices, (data, charge, proposal))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.row_reduce import lowest
from matchwood.primitives.scan import gpu as scan

_SLOTS = (1, 2, 4, 8)  # neighbours that a kernel keeps

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "first_rows<I>",
        "survey<I>",
        "cut_evenly<I>",
        "count_tiles<I>",
        "write_tiles<I>",
        "spmv<I,M,X,Y,A,P,S,true,T>",
        "sums = spmv<I,X,X,Y,A,P,S,false,T>",
        "strongest1 = strongest<I,W,1,T>",
        "strongest2 = strongest<I,W,2,T>",
        "strongest4 = strongest<I,V,4,T>",
        "strongest8 = strongest<I,V,8,T>",
        "smallest<I,L,T>",
        "largest<I,X,T>",
    ),
    # What the compile test builds.  T is the size of the tiles.  P and S follow from the others.
    # V is W again, in one type, since these take long to compile.
    types={
        "T": ("2048",),
        "V": (np.float64,),
        "M": (np.float32,),
        "X": (np.float32,),
        "Y": (np.float64,),
        "A": (np.float64,),
        "P": (np.float64,),
        "S": (np.float64,),
        "L": (np.int32, np.int64),
    },
)

ROW_BLOCK = SOURCE.constant("ROW_BLOCK")
WARP = SOURCE.constant("WARP")
CHUNK = SOURCE.constant("CHUNK")
CHUNK_THREADS = SOURCE.constant("CHUNK_THREADS")


class Chunks:
    """The entries of a pattern cut into chunks of 2048, and the row in which each begins.

    For kernels that take a matrix entry by entry (matchwood/entry_rows.cuh).  `indptr` need not be
    sound.  Does not wait for the device; keeps an index for every chunk.
    """

    def __init__(self, indptr: Any, entries: int) -> None:
        self.indptr = engines.cupy().ascontiguousarray(indptr)
        self.entries = entries
        self.count = -(-entries // CHUNK) if indptr.size > 1 else 0
        self.first_row = gpu.empty(self.count + 1, indptr.dtype, "row_reduce")
        if self.count:
            k = SOURCE.kernels("first_rows", I=indptr.dtype)
            rows = indptr.size - 1
            k.first_rows(WARP * (self.count + 1), (self.count, rows, self.indptr, self.first_row))


class Tiles:
    """A pattern cut into tiles of about equal work, for any number of reductions over it.

    `size` is the number of rows and entries of a tile: 2048, or 1024 for kernels that read a
    vector of 8-byte numbers (row_reduce.cuh says why).  Takes one pass over `indptr` and waits
    once for the device; three more passes and another wait where rows are longer than a quarter of
    a tile.  Keeps two indices for every tile.
    """

    def __init__(self, indptr: Any, size: int = 2048) -> None:
        self.indptr = engines.cupy().ascontiguousarray(indptr)
        self.rows = n = indptr.size - 1
        self.size = size
        kind = indptr.dtype
        self.count, self._chunked = 0, False
        if n == 0:
            return
        k = SOURCE.kernels("survey", "cut_evenly", I=kind)
        found = gpu.empty(2, kind, "row_reduce")
        found.data.memset_async(0, found.nbytes)
        k.survey(n, (n, self.indptr, size, found))
        self.count, some_are_long = (int(value) for value in found.get())
        if some_are_long:
            self._cut_around_long_rows()
            return
        self.row, self.entry = self._lists()
        k.cut_evenly(
            WARP * (self.count + 1), (self.count, n, self.indptr, size, self.row, self.entry)
        )

    def _cut_around_long_rows(self) -> None:
        n, size, kind = self.rows, self.size, self.indptr.dtype
        k = SOURCE.kernels("count_tiles", "write_tiles", I=kind)
        space = gpu.workspace("row_reduce", counts=(n, kind), starts=(n + 2, kind))
        found = space.starts[n:]  # how many tiles; whether a row has several chunks
        found.fill(0)
        k.count_tiles(n, (n, self.indptr, size, space.counts, found[1:]))
        scan.scan_into(space.counts, space.starts[: n + 1])
        self.count, chunked = (int(value) for value in found.get())
        self._chunked = bool(chunked)
        self.row, self.entry = self._lists()
        k.write_tiles(n, (n, self.indptr, size, space.starts, self.row, self.entry))

    def _lists(self) -> tuple[Any, Any]:
        """First row and first entry of each tile, and one more."""
        kind = self.indptr.dtype
        row = gpu.empty(self.count + 1, kind, "row_reduce")
        return row, gpu.empty(self.count + 1, kind, "row_reduce")

    def scratch(self, accumulator_bytes: int) -> Any:
        """Memory that a launch needs where rows have several chunks; None where none has."""
        if self.count == 0 or not self._chunked:
            return None
        return gpu.workspace(
            "row_reduce",
            partials=(self.count * accumulator_bytes, np.uint8),
            chunks_done=(self.count, np.uint32),
        )

    def launch(
        self, kernel: gpu.Kernel, accumulator_bytes: int, indices: Any, args: Sequence[Any],
        scratch: Any = None,
    ) -> None:  # fmt: skip
        """Launch a kernel that calls `reduce_rows` on the current stream.

        `accumulator_bytes` is the size of the operation's accumulator in the kernel.  Inside
        `gpu.capture`, which must not allocate, hand over what `scratch` gave before.
        """
        if kernel.arguments[-1:] != (str(self.size),):
            raise ValueError(f"{kernel.name} is not made for tiles of {self.size}")
        if self.count == 0:
            return
        space = self.scratch(accumulator_bytes) if scratch is None else scratch
        partials = chunks_done = None
        if space is not None:
            partials, chunks_done = space.partials, space.chunks_done
            chunks_done.data.memset_async(0, chunks_done.nbytes)
        tiles = (self.indptr, indices, self.row, self.entry, partials, chunks_done)
        kernel(None, (*tiles, *args), block=ROW_BLOCK, grid=self.count)


def _tiles(indptr: Any, vector: Any) -> Tiles:
    """Tiles for a reduction that reads a vector with elements of this type."""
    return Tiles(indptr, 1024 if np.dtype(vector).itemsize == 8 else 2048)


def spmv(
    indptr: Any, indices: Any, data: Any, x: Any, *, dtype: Any, accumulator: Any,
    threads: int | None = None, tiles: Tiles | None = None,
) -> Any:  # fmt: skip
    cupy = engines.cupy()
    product = x.dtype if data is None else np.result_type(data.dtype, x.dtype)
    tiles = _tiles(indptr, product) if tiles is None else tiles
    indices, x = cupy.ascontiguousarray(indices), cupy.ascontiguousarray(x)
    y = gpu.empty(indptr.size - 1, dtype, "spmv")
    types = {
        "T": str(tiles.size),
        "I": indices.dtype,
        "X": x.dtype,
        "Y": dtype,
        "A": accumulator,
        "P": product,
        "S": np.result_type(accumulator, product),
    }
    width = np.dtype(accumulator).itemsize
    if data is None:
        tiles.launch(SOURCE.kernels("sums", **types).sums, width, indices, (None, x, y))
    else:
        data = cupy.ascontiguousarray(data)
        k = SOURCE.kernels("spmv", M=data.dtype, **types)
        tiles.launch(k.spmv, width, indices, (data, x, y))
    return y


def strongest_neighbours(
    indptr: Any, indices: Any, data: Any, n: int, *, threads: int | None = None,
    tiles: Tiles | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    cupy = engines.cupy()
    tiles = Tiles(indptr) if tiles is None else tiles
    indices, data = cupy.ascontiguousarray(indices), cupy.ascontiguousarray(data)
    columns = gpu.empty((tiles.rows, n), indices.dtype, "strongest_neighbours")
    weights = gpu.empty((tiles.rows, n), data.dtype, "strongest_neighbours")
    slots = min(slots for slots in _SLOTS if slots >= n)
    name = f"strongest{slots}"
    k = SOURCE.kernels(name, I=indices.dtype, W=data.dtype, V=data.dtype, T=str(tiles.size))
    word = max(indices.itemsize, data.itemsize)  # the pairs, then the row, in C's layout
    tiles.launch(getattr(k, name), (2 * slots + 1) * word, indices, (data, n, columns, weights))
    return columns, weights


def minimum_label(
    indptr: Any, indices: Any, label: Any, *, threads: int | None = None, tiles: Tiles | None = None
) -> Any:
    cupy = engines.cupy()
    tiles = _tiles(indptr, label.dtype) if tiles is None else tiles
    indices, label = cupy.ascontiguousarray(indices), cupy.ascontiguousarray(label)
    smallest = gpu.empty(tiles.rows, label.dtype, "minimum_label")
    k = SOURCE.kernels("smallest", I=indices.dtype, L=label.dtype, T=str(tiles.size))
    tiles.launch(k.smallest, label.itemsize, indices, (label, smallest))
    return smallest


def maximum_neighbour(
    indptr: Any, indices: Any, x: Any, *, threads: int | None = None, tiles: Tiles | None = None
) -> Any:
    cupy = engines.cupy()
    tiles = _tiles(indptr, x.dtype) if tiles is None else tiles
    indices, x = cupy.ascontiguousarray(indices), cupy.ascontiguousarray(x)
    largest = gpu.empty(tiles.rows, x.dtype, "maximum_neighbour")
    k = SOURCE.kernels("largest", I=indices.dtype, X=x.dtype, T=str(tiles.size))
    tiles.launch(k.largest, x.itemsize, indices, (x, lowest(x.dtype), largest))
    return largest

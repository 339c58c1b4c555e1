"""`inspect` on the GPU.  Kernels: gpu.cu.  Each function waits once for the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.inspect import FAULTS, Structure, Symmetry, Values, keys
from matchwood.primitives.row_reduce.gpu import CHUNK_THREADS, Chunks

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("check_indptr<I>", "structure<I>", "symmetry<I>", "values<I,W>", "join_products"),
)

# places in the table of facts
_NAMES = [
    "STATUS",
    "DESCENTS",
    "LONGEST",
    "LOOPS",
    "ZEROS",
    "LEAST",
    "MOST",
    "ABOVE",
    "BELOW",
    "WORDS",
]
_STATUS, _DESCENTS, _LONGEST, _LOOPS, _ZEROS, _LEAST, _MOST, _ABOVE, _BELOW, _WORDS = (
    SOURCE.constants(*_NAMES)
)
_SOUND = 0xFFFF_FFFF_FFFF_FFFF  # of the status, as status.cuh has it
_DETAIL_BITS = 56


def _table() -> Any:
    """A table in which nothing has been found yet."""
    table = gpu.empty(_WORDS, np.uint64, "inspect")
    table.data.memset_async(0, table.nbytes)
    table.data.memset_async(0xFF, table.itemsize)  # the status comes first
    return table


def _launch(
    kernel: gpu.Kernel, chunks: Chunks, arrays: tuple[Any, ...], rest: tuple[Any, ...]
) -> int:
    """As many blocks as run at the same time; they share the chunks among them."""
    if not chunks.count:
        return 0
    blocks = _blocks(kernel, chunks)
    args = (chunks.entries, chunks.indptr, *arrays, chunks.first_row, chunks.count, *rest)
    kernel(None, args, block=CHUNK_THREADS, grid=blocks)
    return blocks


def _blocks(kernel: gpu.Kernel, chunks: Chunks) -> int:
    return min(chunks.count, int(kernel.resident(CHUNK_THREADS)))


def _compare(
    kernel: gpu.Kernel, chunks: Chunks, arrays: tuple[Any, ...], secret: tuple[int, ...], table: Any
) -> list[int]:
    """Run a kernel that multiplies; the facts, with the products of all blocks among them."""
    words = [np.uint64(number >> shift & _SOUND) for number in secret for shift in (0, 64)]
    products = gpu.empty(4 * max(_blocks(kernel, chunks), 1), np.uint64, "inspect")
    blocks = _launch(kernel, chunks, arrays, (*words, table, products))
    SOURCE.kernels("join_products").join_products(None, (blocks, products, table), grid=1)
    facts: list[int] = table.get().tolist()
    return facts


def _balanced(facts: list[int]) -> bool:
    return facts[_ABOVE : _ABOVE + 2] == facts[_BELOW : _BELOW + 2]


def structure(indptr: Any, indices: Any, n: int, *, threads: int | None = None) -> Structure:
    """See matchwood.primitives.inspect.structure."""
    cupy = engines.cupy()
    indptr, indices = cupy.ascontiguousarray(indptr), cupy.ascontiguousarray(indices)
    rows, nnz = indptr.size - 1, indices.size
    table = _table()
    k = SOURCE.kernels("check_indptr", "structure", I=indices.dtype)
    blocks = min(rows // 256 + 1, k.check_indptr.resident())
    k.check_indptr(None, (rows, indptr, nnz, table), grid=blocks)
    limit = min(n, int(np.iinfo(indices.dtype).max))  # what the kernel can take; no index is larger
    _launch(k.structure, Chunks(indptr, nnz), (indices,), (limit, table))
    facts = table.get().tolist()
    if facts[_STATUS] != _SOUND:
        code, at = divmod(facts[_STATUS], 1 << _DETAIL_BITS)
        return Structure(FAULTS[code], at, False, 0)
    return Structure("", -1, facts[_DESCENTS] == 0, facts[_LONGEST])


def symmetry(indptr: Any, indices: Any, *, threads: int | None = None) -> Symmetry:
    """See matchwood.primitives.inspect.symmetry."""
    indices = engines.cupy().ascontiguousarray(indices)
    table = _table()
    k = SOURCE.kernels("symmetry", I=indices.dtype)
    r, _ = keys.point()
    facts = _compare(k.symmetry, Chunks(indptr, indices.size), (indices,), (r,), table)
    return Symmetry(facts[_LOOPS], _balanced(facts))


def values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    """See matchwood.primitives.inspect.values."""
    cupy = engines.cupy()
    indices, data = cupy.ascontiguousarray(indices), cupy.ascontiguousarray(data)
    table = _table()
    k = SOURCE.kernels("values", I=indices.dtype, W=data.dtype)
    facts = _compare(k.values, Chunks(indptr, indices.size), (indices, data), keys.point(), table)
    if facts[_STATUS] != _SOUND:
        return Values(False, facts[_STATUS] % (1 << _DETAIL_BITS), 0.0, 0.0, 0, False)
    any_off_diagonal = facts[_MOST] != 0
    return Values(
        finite=True,
        at=-1,
        minimum=_extreme(~facts[_LEAST]) if any_off_diagonal else 0.0,
        maximum=_extreme(facts[_MOST]) if any_off_diagonal else 0.0,
        zeros=facts[_ZEROS],
        symmetric=_balanced(facts),
    )


def _extreme(key: int) -> float:
    """The number behind an extreme of the table: its bits, ordered like unsigned numbers."""
    bits = key & _SOUND
    bits = bits ^ 1 << 63 if bits >> 63 else bits ^ _SOUND
    return float(np.uint64(bits).view(np.float64))

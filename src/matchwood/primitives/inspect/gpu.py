"""`inspect` on the GPU.  Kernels: gpu.cu.  Each function waits once for the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.inspect import FAULTS, SPREAD, Structure, Symmetry, Values, keys
from matchwood.primitives.row_reduce.gpu import CHUNK_THREADS, Chunks

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("check_indptr<I>", "structure<I>", "symmetry<I>", "values<I,W>", "sum_words<U>"),
    types={"U": (np.uint8, np.uint32, np.uint64)},
)

# places in the table of facts
_STATUS, _DESCENTS, _LONGEST, _LOOPS, _ZEROS, _LEAST, _MOST = SOURCE.constants(
    "STATUS", "DESCENTS", "LONGEST", "LOOPS", "ZEROS", "LEAST", "MOST"
)
_SUM1, _SUM2, _NEGATIVE_LOOP, _WORDS = SOURCE.constants("SUM1", "SUM2", "NEGATIVE_LOOP", "WORDS")
_KEY_WORDS = SOURCE.constant("KEY_WORDS")
_SOUND = 0xFFFF_FFFF_FFFF_FFFF  # the status without a failure; see status.cuh
_DETAIL_BITS = 56  # bits of a status below its code


def _table() -> Any:
    table = gpu.empty(_WORDS, np.uint64, "inspect")
    table.data.memset_async(0, table.nbytes)
    table.data.memset_async(0xFF, table.itemsize)  # the status is the first word
    return table


def _launch(
    kernel: gpu.Kernel, chunks: Chunks, arrays: tuple[Any, ...], rest: tuple[Any, ...]
) -> None:
    """Launch as many blocks as run at the same time; they share the chunks."""
    if chunks.count:
        blocks = min(chunks.count, kernel.resident(CHUNK_THREADS))
        args = (chunks.entries, chunks.indptr, *arrays, chunks.first_row, chunks.count, *rest)
        kernel(None, args, block=CHUNK_THREADS, grid=blocks)


def _balanced(facts: list[int]) -> bool:
    return facts[_SUM1] == facts[_SUM2] == 0


def structure(indptr: Any, indices: Any, n: int, *, threads: int | None = None) -> Structure:
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
    indices = engines.cupy().ascontiguousarray(indices)
    table = _table()
    k = SOURCE.kernels("symmetry", I=indices.dtype)
    _launch(k.symmetry, Chunks(indptr, indices.size), (indices,), (*keys.words(_KEY_WORDS), table))
    facts = table.get().tolist()
    return Symmetry(facts[_LOOPS], _balanced(facts))


def values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    cupy = engines.cupy()
    indices, data = cupy.ascontiguousarray(indices), cupy.ascontiguousarray(data)
    table = _table()
    k = SOURCE.kernels("values", I=indices.dtype, W=data.dtype)
    rest = (*keys.words(_KEY_WORDS), table)
    _launch(k.values, Chunks(indptr, indices.size), (indices, data), rest)
    facts = table.get().tolist()
    if facts[_STATUS] != _SOUND:
        return Values(False, facts[_STATUS] % (1 << _DETAIL_BITS), 0.0, 0.0, 0, False, False)
    any_off_diagonal = facts[_MOST] != 0
    return Values(
        finite=True,
        at=-1,
        minimum=_extreme(~facts[_LEAST]) if any_off_diagonal else 0.0,
        maximum=_extreme(facts[_MOST]) if any_off_diagonal else 0.0,
        zeros=facts[_ZEROS],
        symmetric=_balanced(facts),
        negative_loop=facts[_NEGATIVE_LOOP] != 0,
    )


def _extreme(key: int) -> float:
    """The number behind an extreme of the table: its bits, ordered like unsigned numbers."""
    bits = key & _SOUND
    bits = bits ^ 1 << 63 if bits >> 63 else bits ^ _SOUND
    return float(np.uint64(bits).view(np.float64))


def word_sums(words: Any, *, threads: int | None = None) -> tuple[int, int]:
    table = _table()
    kernel = SOURCE.kernels("sum_words", U=words.dtype).sum_words
    blocks = min(words.size // 256 + 1, kernel.resident())
    kernel(None, (words.size, words, SPREAD, table), grid=blocks)
    facts = table.get().tolist()
    return facts[_SUM1], facts[_SUM2]

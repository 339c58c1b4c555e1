"""The bytes of a serialized GraphBLAS matrix: the header, and where its five arrays lie.

All numbers are little-endian.

    0    u64  bytes of the whole
    8    u32  type of the values in bits 0-3; bits 4-7, 8-11, 12-15: 1 where i, h, p have 32 bits
    12   i32  version of GraphBLAS
    16   i64  vlen, vdim, nvec, non-empty vectors, nvals, bytes of a value, bytes of p, h, b, i, x
    104  f32  two thresholds
    112  i32  sparsity control; 4 * format + 2 * iso + by_column
    120  i32  for p, h, b, i, x: number of blocks, method of compression
    160  i64  for each array: where its blocks end; then the blocks; then two names
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from matchwood.errors import FileFormatError

HEADER = struct.Struct("<QIi11q2f2i10i")
VERSION = 7_003_000  # the layout has not changed since; later releases of GraphBLAS read it
HYPER_SWITCH, BITMAP_SWITCH, ANY_SPARSITY = 0.0625, 0.4, 15  # as GraphBLAS sets them
HYPERSPARSE, SPARSE, BITMAP, FULL = 1, 2, 4, 8
UNCOMPRESSED, LZ4, LZ4HC, ZSTD = -1, 1000, 2000, 3000
LEVELS = 1000  # methods from ZSTD to ZSTD + LEVELS - 1 are levels of zstd
LEAST_COMPRESSED = 256  # bytes: shorter arrays are not compressed
ARRAYS = ("p", "h", "b", "i", "x")
TYPES = {
    1: np.bool_, 2: np.int8, 3: np.uint8, 4: np.int16, 5: np.uint16, 6: np.int32, 7: np.uint32,
    8: np.int64, 9: np.uint64,
}  # fmt: skip
OTHER_TYPES = {10: "fp32", 11: "fp64", 12: "fc32", 13: "fc64", 14: "a type of the user"}
TYPE_NAMES = {7: b"GrB_UINT32", 8: b"GrB_INT64"}
MOST_BLOCKS = 1 << 20  # of an array: GraphBLAS makes some for each thread


class Header(NamedTuple):
    """The fixed part of a blob, as far as it is needed."""

    size: int
    kind: int  # of the values, a key of TYPES
    narrow: tuple[bool, bool, bool]  # whether p, h, i have 32 bits
    vlen: int  # columns where by row
    vdim: int  # rows
    nvec: int  # rows stored
    nvals: int
    lengths: tuple[int, ...]  # bytes of p, h, b, i, x
    form: int
    iso: bool
    by_column: bool
    blocks: tuple[int, ...]
    methods: tuple[int, ...]


def damaged(name: str, offset: int, message: str) -> FileFormatError:
    """The error for what is wrong at a byte of an archive."""
    return FileFormatError(f"{name}, byte {offset}: {message}")


def unpack(name: str, offset: int, blob: memoryview) -> Header:
    """The header of a blob, with everything that does not depend on its arrays looked at."""
    if len(blob) < HEADER.size:
        raise damaged(name, offset + len(blob), "the header of a matrix is cut off")
    size, code, _, *rest = HEADER.unpack(blob[: HEADER.size])
    vlen, vdim, nvec, _, nvals, width = rest[:6]
    lengths, (control,), tail = tuple(rest[6:11]), rest[14:15], rest[15:]
    kind = code & 15
    if kind not in TYPES:
        what = OTHER_TYPES.get(kind, f"type {kind}")
        raise damaged(name, offset + 8, f"values must be integers, counts of packets, got {what}")
    if width != np.dtype(TYPES[kind]).itemsize:
        raise damaged(name, offset + 56, f"values of {width} bytes do not fit their type")
    if size > len(blob) or size < HEADER.size:
        raise damaged(name, offset, f"the matrix has {len(blob)} bytes, its header says {size}")
    if not (0 <= vlen <= 2**60 and 0 <= vdim <= 2**60 and 0 <= nvec and 0 <= nvals):
        raise damaged(name, offset + 16, "dimensions or counts are negative or beyond 2^60")
    form = control >> 2
    if form not in (HYPERSPARSE, SPARSE, BITMAP, FULL):
        raise damaged(name, offset + 116, f"format {form} is unknown")
    header = Header(
        size, kind, (bool(code >> 12 & 15), bool(code >> 8 & 15), bool(code >> 4 & 15)), vlen, vdim,
        nvec, nvals, lengths, form, bool(control & 2), bool(control & 1), tuple(tail[::2]),
        tuple(tail[1::2]),
    )  # fmt: skip
    _check_methods(name, offset, header)
    return header


def _check_methods(name: str, offset: int, header: Header) -> None:
    for k, (array, length) in enumerate(zip(ARRAYS, header.lengths, strict=True)):
        blocks, method = header.blocks[k], header.methods[k]
        place = offset + 120 + 8 * k
        if length < 0 or not 0 <= blocks <= MOST_BLOCKS or (blocks == 0) != (length == 0):
            raise damaged(name, place, f"{blocks} blocks cannot hold {length} bytes of {array}")
        if method == UNCOMPRESSED or ZSTD <= method < ZSTD + LEVELS or not blocks:
            continue
        if LZ4 <= method < ZSTD:
            raise damaged(
                name, place + 4,
                "the matrix is compressed by LZ4, which is not read here; write it with zstd "
                "(python-graphblas: ss.serialize('zstd'))",
            )  # fmt: skip
        raise damaged(name, place + 4, f"compression method {method} is unknown")


def index_widths(header: Header) -> tuple[int, int, int]:
    """Bytes of an element of p, h and i."""
    p, h, i = (4 if narrow else 8 for narrow in header.narrow)
    return p, h, i


def expected_lengths(header: Header) -> tuple[int, ...]:
    """Bytes of p, h, b, i, x that follow from the counts in the header."""
    p, h, i = index_widths(header)
    width = np.dtype(TYPES[header.kind]).itemsize
    cells = header.vlen * header.vdim
    if header.form == FULL:
        return 0, 0, 0, 0, width * (1 if header.iso else cells)
    if header.form == BITMAP:
        return 0, 0, cells, 0, width * (1 if header.iso else cells)
    stored = width * (1 if header.iso else header.nvals)
    rows = header.nvec if header.form == HYPERSPARSE else header.vdim
    own = h * rows if header.form == HYPERSPARSE else 0
    return p * (rows + 1), own, 0, i * header.nvals, stored


def pack(
    size: int, kind: int, rows: int, nvals: int, lengths: list[int], iso: bool,
    stored: list[tuple[int, int]],
) -> bytes:  # fmt: skip
    """The header of a matrix of 2^32 x 2^32, hypersparse by row."""
    return HEADER.pack(
        size, kind, VERSION, 2**32, 2**32, rows, rows, nvals, np.dtype(TYPES[kind]).itemsize,
        *lengths, HYPER_SWITCH, BITMAP_SWITCH, ANY_SPARSITY, 4 * HYPERSPARSE + 2 * iso,
        *(number for pair in stored for number in pair),
    )  # fmt: skip

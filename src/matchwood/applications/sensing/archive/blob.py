"""A traffic matrix as the bytes of a serialized GraphBLAS matrix (a blob), and back.

All numbers are little-endian.

    0    u64  bytes of the whole
    8    u32  type of the values in bits 0-3; bits 4-7, 8-11, 12-15: 1 where i, h, p have 32 bits
    12   i32  version of GraphBLAS
    16   i64  vlen, vdim, nvec, non-empty vectors, nvals, bytes of a value, bytes of p, h, b, i, x
    104  f32  two thresholds
    112  i32  sparsity control; 4 * format + 2 * iso + by_column
    120  i32  for p, h, b, i, x: number of blocks, method of compression
    160  i64  for each array: where its blocks end; then the blocks; then two names

Arrays are compressed as whole zstd frames, by whichever package is installed.  A frame is unpacked
only where its size is the one expected: nothing is allocated on the word of the file alone.
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.archive import cpu
from matchwood.applications.sensing.capture.sources import damaged
from matchwood.applications.sensing.packets import ADDRESSES
from matchwood.applications.sensing.traffic.result import (
    MOST_PACKETS,
    TrafficMatrix,
    packets_of,
    trusted,
)
from matchwood.gate.resources import require_memory
from matchwood.io.files import zstd_package
from matchwood.io.options import Limits

Array = np.ndarray[Any, Any]

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
MOST_BLOCKS = 1 << 20  # blocks of an array: GraphBLAS makes some for each thread
NARROWED = (1, 3)  # places of h and i among the arrays
VALUES = 4  # place of x
WIDE = (8, 9)  # types of counts whose sum may leave int64; narrower ones would need 2^31 links
BLOCK = 1 << 26  # bytes of an array that are compressed as one block
WIDENED = 1 << 22  # addresses converted to 64 bits at once; Ctrl-C takes effect in between
PIECE = 1 << 17  # bytes compressed before Ctrl-C takes effect; a block of zstd
AT_ONCE = 1 << 20  # bytes compressed in one call, 20 ms, at a level of ...
FAST_LEVEL = 3  # ... at most this


# The header


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


def header_of(name: str, offset: int, blob: memoryview) -> Header:
    """The header of a blob; all that does not depend on its arrays is checked."""
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


def header_bytes(
    size: int, kind: int, rows: int, nvals: int, lengths: list[int], iso: bool,
    stored: list[tuple[int, int]],
) -> bytes:  # fmt: skip
    """The header of a matrix of 2^32 x 2^32, hypersparse by row."""
    return HEADER.pack(
        size, kind, VERSION, 2**32, 2**32, rows, rows, nvals, np.dtype(TYPES[kind]).itemsize,
        *lengths, HYPER_SWITCH, BITMAP_SWITCH, ANY_SPARSITY, 4 * HYPERSPARSE + 2 * iso,
        *(number for pair in stored for number in pair),
    )  # fmt: skip


# zstd


@functools.cache
def _tools() -> tuple[Any, bool]:
    """(the package, whether it is Python's own or its backport)."""
    package = zstd_package()
    return package, hasattr(package, "ZstdFile")


_kept = threading.local()


def _decoder() -> Any:
    """This thread's zstandard decoder, reused for all frames."""
    if not hasattr(_kept, "decoder"):
        _kept.decoder = _tools()[0].ZstdDecompressor()
    return _kept.decoder


def compressor(level: int, stop: threading.Event | None = None) -> Callable[[memoryview], bytes]:
    """A function from bytes to one frame, which gives up when `stop` is set (see `PIECE`)."""
    package, own = _tools()
    made = package.ZstdCompressor(level=level)

    def compress(content: memoryview) -> bytes:
        if len(content) <= AT_ONCE and level <= FAST_LEVEL:
            return bytes(package.compress(content, level=level) if own else made.compress(content))
        if own:
            stream = package.ZstdCompressor(level=level)
            stream.set_pledged_input_size(len(content))
        else:
            stream = made.compressobj(size=len(content))
        found = []
        for k in range(0, len(content), PIECE):
            if stop is not None and stop.is_set():
                raise CancelledError
            found.append(stream.compress(content[k : k + PIECE]))
        return b"".join([*found, stream.flush()])

    return compress


def unpacked_frame(frame: memoryview, size: int, goal: memoryview) -> Any:
    """The `size` bytes of a frame; ValueError where it is damaged or has another size.

    They are written to `goal` where the package can do so; else a new bytes object is returned.
    """
    package, own = _tools()
    try:
        if own:
            announced = package.get_frame_info(frame).decompressed_size
        else:
            announced = package.frame_content_size(frame)
        if announced is not None and announced >= 0 and announced != size:
            raise ValueError(f"a frame of {announced} bytes where {size} were expected")
        if own:
            decoder = package.ZstdDecompressor()
            found = decoder.decompress(frame, size + 1)
            complete = decoder.eof and not decoder.unused_data
        else:
            with _decoder().stream_reader(frame, read_size=max(len(frame), 1)) as stream:
                found, complete = goal[: stream.readinto(goal)], not stream.read(1)
    except ValueError:
        raise
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise ValueError(f"the zstd data is damaged ({error})") from None
    if not complete or len(found) != size:
        raise ValueError(f"{len(found)} bytes where {size} were expected")
    return found


# Matrices to blobs


class Packer:
    """Makes the bytes of matrices."""

    def __init__(self, compression: str | None, level: int, stop: Any = None) -> None:
        self._compress = compressor(level, stop) if compression else None
        self._level = level

    def pieces(self, matrix: TrafficMatrix) -> list[Any]:
        """The bytes of a matrix, in pieces."""
        counts = matrix.counts
        iso = bool(counts.size) and bool((counts == counts[0]).all())
        kept = counts[:1] if iso else counts
        kind = 7 if not kept.size or int(kept.max()) < ADDRESSES else 8
        arrays = [
            matrix.indptr.astype("<i8", copy=False) if counts.size else np.zeros(1, "<i8"),
            _widened(matrix.sources),
            np.empty(0, np.int8),
            _widened(matrix.destinations),
            kept.astype(np.dtype(TYPES[kind]).newbyteorder("<"), copy=False),
        ]
        ends, stored, methods = [], [], []
        for array in arrays:
            blocks, method = _blocks(array, self._compress, self._level)
            stored += blocks
            sizes = itertools.accumulate(len(block) for block in blocks)
            ends.append(struct.pack(f"<{len(blocks)}q", *sizes))
            methods.append((len(blocks), method))
        tail = [b"".join(ends), *stored, b"\0" + TYPE_NAMES[kind] + b"\0"]
        size = HEADER.size + sum(map(len, tail))
        lengths = [array.nbytes for array in arrays]
        head = header_bytes(
            size, kind, matrix.sources.size, counts.size, lengths, iso, methods
        )  # fmt: skip
        return [head, *tail]


def _widened(narrow: Array) -> Array:
    """Addresses as 64-bit numbers."""
    found = np.empty(narrow.size, "<u8")
    for k in range(0, narrow.size, WIDENED):
        found[k : k + WIDENED] = narrow[k : k + WIDENED]
    return found


def dump(matrix: TrafficMatrix, compression: str | None = None) -> bytes:
    """The bytes of a matrix."""
    return b"".join(Packer(compression, 1).pieces(matrix))


def _blocks(array: Array, compress: Any, level: int) -> tuple[list[Any], int]:
    """(blocks, method) of an array."""
    content = array.data.cast("B") if array.size else memoryview(b"")
    if not len(content):
        return [], UNCOMPRESSED
    if compress is None or len(content) < LEAST_COMPRESSED:
        return [content], UNCOMPRESSED
    number = -(-len(content) // BLOCK)
    bounds = [_bound(k, len(content), number) for k in range(number + 1)]
    pairs = itertools.pairwise(bounds)
    return [compress(content[lo:hi]) for lo, hi in pairs], ZSTD + level


def _bound(k: int, length: int, blocks: int) -> int:
    """Where block k begins, as GraphBLAS computes it: in double precision."""
    return length if k == blocks else math.floor((float(k) * float(length)) / float(blocks))


# Blobs to matrices


def load(name: str, offset: int, blob: memoryview, limits: Limits) -> TrafficMatrix:
    """The matrix in a blob that begins at byte `offset` of a file."""
    header = header_of(name, offset, blob)
    wanted = expected_lengths(header)
    if header.nvals == 0 and header.form in (HYPERSPARSE, SPARSE):
        # releases before 7.2.1 do not store the number of values
        header = header._replace(nvals=header.lengths[3] // index_widths(header)[2])
        wanted = expected_lengths(header)
    if header.iso and header.nvals == 0 and header.lengths[4] == 0:
        wanted = (*wanted[:4], 0)
    if header.lengths != wanted:
        raise damaged(
            name, offset + 64, f"arrays of {header.lengths} bytes contradict the counts: {wanted}"
        )
    total, most = sum(header.lengths), limits.most_bytes(len(blob))
    if header.form in (BITMAP, FULL):
        total += 8 * header.vlen * header.vdim  # one stored value may stand for all
    if total > most:
        raise damaged(
            name, offset + 64, f"{len(blob)} bytes unpack to {total}, more than {most}; "
            "pass most_bytes= to read more",
        )  # fmt: skip
    require_memory("read_archive", 2 * total, name)
    arrays = list(_arrays(name, offset, blob[: header.size], header))
    return _matrix(name, offset, header, arrays)


def _arrays(name: str, offset: int, blob: memoryview, header: Header) -> Iterator[Any]:
    """The bytes of p, h, b, i and x."""
    place = HEADER.size + 8 * sum(header.blocks)
    table = HEADER.size
    if place > len(blob):
        raise damaged(name, offset + len(blob), "the table of blocks is cut off")
    for k, (blocks, length) in enumerate(zip(header.blocks, header.lengths, strict=True)):
        ends = np.frombuffer(blob, "<i8", blocks, table).tolist()
        table += 8 * blocks
        packed = header.methods[k] != UNCOMPRESSED
        owned = packed or not _is_changed(k, header)
        goal = np.empty(length, np.uint8).data if owned else None  # all blocks of the array
        pieces = []
        for block, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if not start <= end <= len(blob) - place:
                raise damaged(name, offset + table, f"block {block} of {ARRAYS[k]} lies "
                              f"from {start} to {end}, outside of the matrix")  # fmt: skip
            lo, hi = _bound(block, length, blocks), _bound(block + 1, length, blocks)
            piece = blob[place + start : place + end]
            found: Any = piece
            if packed and goal is not None:
                try:
                    found = unpacked_frame(piece, hi - lo, goal[lo:hi])
                except ValueError as error:
                    raise damaged(name, offset + place + start, str(error)) from None
                if blocks > 1 and isinstance(found, bytes):  # of a package that fills no memory
                    goal[lo:hi] = found
            elif len(piece) != hi - lo:
                raise damaged(name, offset + place + start,
                              f"a block of {len(piece)} bytes where {hi - lo} are")  # fmt: skip
            elif goal is not None:
                goal[lo:hi] = piece
                found = goal[lo:hi]
            pieces.append(found)
        place += ends[-1] if ends else 0
        if len(pieces) > 1 and goal is not None:
            yield goal
        else:
            yield pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _is_changed(k: int, header: Header) -> bool:
    """Whether the array is converted to another type; else the matrix keeps these bytes."""
    return k in NARROWED or (k == VALUES and TYPES[header.kind] is not np.int64)


def _numbers(content: Any, kind: Any) -> Array:
    """The bytes as an aligned array in this machine's byte order."""
    found = np.frombuffer(content, np.dtype(kind).newbyteorder("<"))
    if found.flags.aligned and found.dtype.isnative:
        return found
    return found.astype(np.dtype(kind))


def _matrix(name: str, offset: int, header: Header, arrays: list[Any]) -> TrafficMatrix:
    counts = _counts(name, offset, header, arrays[4])
    shape = (header.vdim, header.vlen)
    if header.by_column:
        shape = shape[::-1]
    if max(shape) > ADDRESSES and header.nvals:
        raise damaged(name, offset + 16, f"a matrix of {shape} is larger than 2^32 x 2^32")
    if header.form in (BITMAP, FULL):
        major, minor, counts = _dense(header, arrays, counts)
        return _from_links(name, offset, header.by_column, major, minor, counts)
    widths = index_widths(header)
    p, i = (_indices(arrays[k], widths[w]) for k, w in ((0, 0), (3, 2)))
    if header.form == HYPERSPARSE:
        h = _indices(arrays[1], widths[1])
    else:
        h = np.arange(header.vdim, dtype=np.int64)
    if p[0] != 0 or p[-1] != i.size:
        raise damaged(name, offset, f"p must go from 0 to {i.size}, got {p[0]} and {p[-1]}")

    for array in (p, h, i):
        array.flags.writeable = False  # the kernel is compiled for read-only arrays alone
    dimensions = (header.vdim, header.vlen)
    sources, destinations, gaps, wrong = cpu.narrowed(p, h, i, dimensions)
    if wrong:
        raise damaged(name, offset, _fault(p, h, i, dimensions))
    if header.by_column:
        major = np.repeat(sources, np.diff(p))
        return _from_links(name, offset, True, major, destinations, counts)
    if gaps:
        filled = p[1:] > p[:-1]
        sources = sources[filled]
        p = np.concatenate((p[:1], p[1:][filled]))
    return trusted(sources, p, destinations, counts)


def _fault(p: Array, h: Array, i: Array, dimensions: tuple[int, int]) -> str:
    """What is wrong: p must not fall, h ascend, and i within each row."""
    rows, columns = (np.uint64(length) for length in dimensions)
    falls = p[1:] < p[:-1]
    if falls.any():
        return f"p falls at {falls.argmax()}"
    falls = np.append(False, h[1:] <= h[:-1]) | (h.view(np.uint64) >= rows)
    if falls.any():
        return f"h does not ascend below the dimension at {falls.argmax()}"
    falls = np.append(False, i[1:] <= i[:-1])
    falls[p[:-1][p[:-1] < i.size]] = False  # from a row to the next
    falls |= i < 0
    if falls.any():
        return f"i does not ascend within its row at {falls.argmax()}"
    row = np.searchsorted(p, (i.view(np.uint64) >= columns).argmax(), "right") - 1
    return f"i leaves the dimension in the row at {row}"


def _indices(content: Any, width: int) -> Array:
    found = _numbers(content, np.uint32 if width == 4 else np.int64)
    return found.astype(np.int64) if width == 4 else found


def _counts(name: str, offset: int, header: Header, content: Any) -> Array:
    """The values as int64, one at least."""
    kind = TYPES[header.kind]
    values = _numbers(content, np.uint8 if header.kind == 1 else kind)
    stored = header.form in (HYPERSPARSE, SPARSE)
    if values.size and kind is np.uint64 and int(values.max()) > np.iinfo(np.int64).max:
        raise damaged(name, offset, f"{int(values.max())} packets are more than 2^63 - 1")
    if values.size and int(values.min()) < stored:  # of a dense matrix 0 means no link
        raise damaged(name, offset, f"a link of {int(values.min())} packets")
    packets = 0
    if header.iso and values.size:
        size = header.nvals if stored else header.vlen * header.vdim
        packets = size * int(values[0])
        values = np.full(size, values[0], np.int64)
    elif header.kind in WIDE:
        values = values.astype(np.int64, copy=False)
        packets = packets_of(values)
    if stored and packets > MOST_PACKETS:  # links of a dense matrix are checked later
        raise damaged(name, offset, f"{packets} packets in all are more than 2^63 - 1")
    return values.astype(np.int64, copy=False)


def _dense(header: Header, arrays: list[Any], counts: Array) -> tuple[Array, Array, Array]:
    """(major, minor, counts) of a bitmap or full matrix; its entries of 0 packets are no links."""
    present = counts != 0
    if header.form == BITMAP:
        present &= np.frombuffer(arrays[2], np.int8) != 0
    places = np.flatnonzero(present)
    width = max(header.vlen, 1)
    return (places // width).astype(np.uint32), (places % width).astype(np.uint32), counts[places]


def _from_links(
    name: str, offset: int, by_column: bool, major: Array, minor: Array, counts: Array
) -> TrafficMatrix:
    """A matrix from links in any order; each occurs once."""
    src, dst = (minor, major) if by_column else (major, minor)
    order = np.lexsort((dst, src))
    src, dst, counts = src[order], dst[order], counts[order]
    sources, first = np.unique(src, return_index=True)
    indptr = np.append(first, src.size).astype(np.int64)
    try:
        return TrafficMatrix(sources, indptr, dst, counts)
    except ValueError as error:
        raise damaged(name, offset, str(error)) from None

"""A traffic matrix as the bytes of a serialized GraphBLAS matrix, and back."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.applications.sensing.archive import layout, zstd
from matchwood.applications.sensing.archive.layout import Header, damaged
from matchwood.applications.sensing.traffic import TrafficMatrix, trusted
from matchwood.applications.sensing.traffic.matrix import MOST_PACKETS, packets_of
from matchwood.gate.resources import require_memory
from matchwood.io.limits import Limits

Array = np.ndarray[Any, Any]

ADDRESSES = 2**32
NARROWED = (1, 3)  # places of h and i among the arrays
VALUES = 4  # place of x
WIDE = (8, 9)  # types of counts whose sum may leave int64; so many of the others never come
BLOCK = 1 << 26  # bytes of an array that are compressed as one block
WIDENED = 1 << 22  # addresses that are made 64-bit numbers at once


class Packer:
    """Makes the bytes of matrices; its buffers serve one matrix after the other."""

    def __init__(self, compression: str | None, level: int, stop: Any = None) -> None:
        self._compress = zstd.compressor(level, stop) if compression else None
        self._level = level
        self._wide = [np.empty(0, "<u8"), np.empty(0, "<u8")]

    def pieces(self, matrix: TrafficMatrix) -> list[Any]:
        """The bytes of a matrix, in pieces; to be written before the next matrix comes."""
        counts = matrix.counts
        iso = bool(counts.size) and bool((counts == counts[0]).all())
        kept = counts[:1] if iso else counts
        kind = 7 if not kept.size or int(kept.max()) < ADDRESSES else 8
        arrays = [
            matrix.indptr.astype("<i8", copy=False) if counts.size else np.zeros(1, "<i8"),
            self._widened(0, matrix.sources),
            np.empty(0, np.int8),
            self._widened(1, matrix.destinations),
            kept.astype(np.dtype(layout.TYPES[kind]).newbyteorder("<"), copy=False),
        ]
        ends, stored, methods = [], [], []
        for array in arrays:
            blocks, method = _blocks(array, self._compress, self._level)
            stored += blocks
            sizes = itertools.accumulate(len(block) for block in blocks)
            ends.append(struct.pack(f"<{len(blocks)}q", *sizes))
            methods.append((len(blocks), method))
        tail = [b"".join(ends), *stored, b"\0" + layout.TYPE_NAMES[kind] + b"\0"]
        size = layout.HEADER.size + sum(map(len, tail))
        lengths = [array.nbytes for array in arrays]
        head = layout.pack(
            size, kind, matrix.sources.size, counts.size, lengths, iso, methods
        )  # fmt: skip
        return [head, *tail]

    def _widened(self, which: int, narrow: Array) -> Array:
        """Addresses as 64-bit numbers, in a buffer of ours."""
        if self._wide[which].size < narrow.size:
            self._wide[which] = np.empty(narrow.size + narrow.size // 4, "<u8")
        found = self._wide[which][: narrow.size]
        for k in range(0, narrow.size, WIDENED):  # Ctrl-C is heard in between
            found[k : k + WIDENED] = narrow[k : k + WIDENED]
        return found


def dump(matrix: TrafficMatrix, compression: str | None = None, level: int = 1) -> bytes:
    """The bytes of a matrix."""
    return b"".join(Packer(compression, level).pieces(matrix))


def _blocks(array: Array, compress: Any, level: int) -> tuple[list[Any], int]:
    """(blocks, method) of an array."""
    content = array.data.cast("B") if array.size else memoryview(b"")
    if not len(content):
        return [], layout.UNCOMPRESSED
    if compress is None or len(content) < layout.LEAST_COMPRESSED:
        return [content], layout.UNCOMPRESSED
    number = -(-len(content) // BLOCK)
    bounds = [_bound(k, len(content), number) for k in range(number + 1)]
    pairs = itertools.pairwise(bounds)
    return [compress(content[lo:hi]) for lo, hi in pairs], layout.ZSTD + level


def _bound(k: int, length: int, blocks: int) -> int:
    """Where block k begins, as GraphBLAS computes it: in double precision."""
    return length if k == blocks else math.floor((float(k) * float(length)) / float(blocks))


def load(name: str, offset: int, blob: memoryview, limits: Limits) -> TrafficMatrix:
    """The matrix in a blob that begins at byte `offset` of a file."""
    header = layout.unpack(name, offset, blob)
    wanted = layout.expected_lengths(header)
    if header.nvals == 0 and header.form in (layout.HYPERSPARSE, layout.SPARSE):
        # releases before 7.2.1 do not tell how many values there are
        header = header._replace(nvals=header.lengths[3] // layout.index_widths(header)[2])
        wanted = layout.expected_lengths(header)
    if header.iso and header.nvals == 0 and header.lengths[4] == 0:
        wanted = (*wanted[:4], 0)
    if header.lengths != wanted:
        raise damaged(
            name, offset + 64, f"arrays of {header.lengths} bytes contradict the counts: {wanted}"
        )
    total, most = sum(header.lengths), limits.most_bytes(len(blob))
    if header.form in (layout.BITMAP, layout.FULL):
        total += 8 * header.vlen * header.vdim  # one stored value may stand for all
    if total > most:
        raise damaged(
            name, offset + 64, f"{len(blob)} bytes unpack to {total}, more than {most}; "
            "pass most_bytes= to read so many",
        )  # fmt: skip
    require_memory("read_archive", 2 * total, name)
    arrays = list(_arrays(name, offset, blob[: header.size], header))
    return _matrix(name, offset, header, arrays)


def _arrays(name: str, offset: int, blob: memoryview, header: Header) -> Iterator[Any]:
    """The bytes of p, h, b, i and x."""
    place = layout.HEADER.size + 8 * sum(header.blocks)
    table = layout.HEADER.size
    if place > len(blob):
        raise damaged(name, offset + len(blob), "the table of blocks is cut off")
    for k, (blocks, length) in enumerate(zip(header.blocks, header.lengths, strict=True)):
        ends = np.frombuffer(blob, "<i8", blocks, table).tolist()
        table += 8 * blocks
        packed = header.methods[k] != layout.UNCOMPRESSED
        goal = _goal(k, header, length) if packed or not _is_changed(k, header) else None
        pieces = []
        for block, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if not start <= end <= len(blob) - place:
                raise damaged(name, offset + table, f"block {block} of {layout.ARRAYS[k]} lies "
                              f"from {start} to {end}, outside of the matrix")  # fmt: skip
            lo, hi = _bound(block, length, blocks), _bound(block + 1, length, blocks)
            piece = blob[place + start : place + end]
            found: Any = piece
            if packed and goal is not None:
                try:
                    found = zstd.unpacked(piece, hi - lo, goal[lo:hi])
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


def _goal(k: int, header: Header, length: int) -> memoryview:
    """Memory for all blocks of an array.

    Arrays that are copied to another type at once share theirs with those of other matrices.
    """
    if _is_changed(k, header):
        return zstd.scratch(k, length)
    return np.empty(length, np.uint8).data


def _is_changed(k: int, header: Header) -> bool:
    """Whether the matrix has the array in another type; else it keeps these bytes."""
    return k in NARROWED or (k == VALUES and layout.TYPES[header.kind] is not np.int64)


def _numbers(content: Any, kind: Any) -> Array:
    """The bytes as an aligned array in the order of this machine."""
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
    if header.form in (layout.BITMAP, layout.FULL):
        major, minor, counts = _dense(header, arrays, counts)
        return _from_links(name, offset, header.by_column, major, minor, counts)
    widths = layout.index_widths(header)
    p, i = (_indices(arrays[k], widths[w]) for k, w in ((0, 0), (3, 2)))
    if header.form == layout.HYPERSPARSE:
        h = _indices(arrays[1], widths[1])
    else:
        h = np.arange(header.vdim, dtype=np.int64)
    if p[0] != 0 or p[-1] != i.size:
        raise damaged(name, offset, f"p must go from 0 to {i.size}, got {p[0]} and {p[-1]}")
    from matchwood.applications.sensing.archive import cpu

    def wrong(words: str) -> Any:
        return lambda at: damaged(name, offset, f"{words} at {at}")

    errors = {
        cpu.BAD_STARTS: wrong("p falls"),
        cpu.BAD_ROW: wrong("h does not ascend below the dimension"),
        cpu.BAD_COLUMN: wrong("i leaves the dimension in the row"),
        cpu.BAD_ORDER: wrong("i does not ascend within its row"),
    }
    for array in (p, h, i):
        array.flags.writeable = False  # the kernel is compiled once, for arrays nobody changes
    found = cpu.narrowed(p, h, i, (header.vdim, header.vlen), errors)
    sources, destinations, gaps = found
    if header.by_column:
        major = np.repeat(sources, np.diff(p))
        return _from_links(name, offset, True, major, destinations, counts)
    if gaps:
        filled = p[1:] > p[:-1]
        sources = sources[filled]
        p = np.concatenate((p[:1], p[1:][filled]))
    return trusted(sources, p, destinations, counts)


def _indices(content: Any, width: int) -> Array:
    found = _numbers(content, np.uint32 if width == 4 else np.int64)
    return found.astype(np.int64) if width == 4 else found


def _counts(name: str, offset: int, header: Header, content: Any) -> Array:
    """The values as int64, one at least."""
    kind = layout.TYPES[header.kind]
    values = _numbers(content, np.uint8 if header.kind == 1 else kind)
    stored = header.form in (layout.HYPERSPARSE, layout.SPARSE)
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
    if stored and packets > MOST_PACKETS:  # links of a dense matrix are looked at later
        raise damaged(name, offset, f"{packets} packets in all are more than 2^63 - 1")
    return values.astype(np.int64, copy=False)


def _dense(header: Header, arrays: list[Any], counts: Array) -> tuple[Array, Array, Array]:
    """(major, minor, counts) of a bitmap or full matrix; its entries of 0 packets are no links."""
    present = counts != 0
    if header.form == layout.BITMAP:
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

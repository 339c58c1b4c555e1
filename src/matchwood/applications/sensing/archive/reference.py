"""The content of an archive, in plain Python, link by link; slow on purpose."""

from __future__ import annotations

import io
import struct
import tarfile
from typing import Any

Links = dict[tuple[int, int], int]

FORMATS = {1: "hypersparse", 2: "sparse", 4: "bitmap", 8: "full"}
CODES = {1: "?", 2: "b", 3: "B", 4: "h", 5: "H", 6: "i", 7: "I", 8: "q", 9: "Q"}


def links_of_archive(content: bytes) -> list[Links]:
    """{(source, destination): packets} of every matrix."""
    if content[257:262] != b"ustar":
        return [links_of(content)]
    found = []
    with tarfile.open(fileobj=io.BytesIO(content), ignore_zeros=False) as archive:
        for member in archive:
            if member.isfile():
                inner = archive.extractfile(member)
                found += links_of_archive(inner.read() if inner else b"")
    return found


def links_of(blob: bytes) -> Links:
    """{(source, destination): packets} of a serialized matrix."""
    code = struct.unpack("<I", blob[8:12])[0]
    vlen, vdim, nvec = struct.unpack("<3q", blob[16:40])
    lengths = struct.unpack("<5q", blob[64:104])
    control = struct.unpack("<i", blob[116:120])[0]
    p, h, b, i, x = _arrays(blob, lengths)
    iso, by_column, form = bool(control & 2), bool(control & 1), FORMATS[control >> 2]
    values = _numbers(x, CODES[code & 15])
    links: Links = {}

    def put(major: int, minor: int, place: int) -> None:
        value = int(values[0 if iso else place])
        links[(minor, major) if by_column else (major, minor)] = value

    if form in ("bitmap", "full"):
        for place in range(vlen * vdim):
            if form == "full" or b[place]:
                put(place // vlen, place % vlen, place)
        return {link: value for link, value in links.items() if value}
    starts = _numbers(p, "I" if code >> 12 & 15 else "q")
    rows = _numbers(h, "I" if code >> 8 & 15 else "q") if form == "hypersparse" else range(vdim)
    columns = _numbers(i, "I" if code >> 4 & 15 else "q")
    for k, row in enumerate(rows[:nvec] if form == "hypersparse" else rows):
        for place in range(starts[k], starts[k + 1]):
            put(row, columns[place], place)
    return links


def _numbers(content: bytes, code: str) -> Any:
    return struct.unpack(f"<{len(content) // struct.calcsize(code)}{code}", content)


def _arrays(blob: bytes, lengths: tuple[int, ...]) -> list[bytes]:
    pairs = struct.unpack("<10i", blob[120:160])
    counts, methods = pairs[::2], pairs[1::2]
    table, place = 160, 160 + 8 * sum(counts)
    found = []
    for blocks, method, length in zip(counts, methods, lengths, strict=True):
        ends = struct.unpack(f"<{blocks}q", blob[table : table + 8 * blocks])
        content, start = b"", 0
        for end in ends:
            piece = blob[place + start : place + end]
            content += piece if method == -1 else _frame(piece)
            start = end
        if len(content) != length:
            raise ValueError(f"an array of {len(content)} bytes, {length} expected")
        table, place = table + 8 * blocks, place + start
        found.append(content)
    return found


def _frame(piece: bytes) -> bytes:
    import zstandard

    return bytes(zstandard.ZstdDecompressor().decompress(piece, max_output_size=1 << 30))

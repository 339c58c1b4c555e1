"""The definition of what a capture holds, in plain Python on the bytes of the file.

One record after the other, one byte after the other; slow on purpose.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.applications.sensing.packets import Packets
from matchwood.errors import FileFormatError

MAGICS = {0xA1B2C3D4: 10**6, 0xA1B23C4D: 10**9}
LONGEST = 262_144
MOST = 2**28
LATEST = 2**63 - 1
TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
FAMILIES_OF_IPV6 = (10, 24, 28, 30)

Frame = tuple[int, int, int, bytes]  # link layer, nanoseconds, original length, captured bytes


def packets_of(content: bytes, compat: bool = False) -> tuple[Packets, dict[str, int]]:
    """All packets of a capture, and what was skipped by reason."""
    rows, skipped = [], dict.fromkeys(("IPv6", "ARP", "other", "short", "cut off"), 0)
    if compat:
        skipped["broadcast"] = 0
    for frame in frames(content):
        found: Any = "cut off" if frame is None else packet_of(*frame, compat)
        if isinstance(found, str):
            skipped[found] += 1
        else:
            rows.append(found)
    columns = zip(*rows, strict=True) if rows else ((),) * 5
    kinds = (np.uint32, np.uint32, np.int64, np.uint32, np.uint8)
    arrays = (np.array(column, kind) for column, kind in zip(columns, kinds, strict=True))
    return Packets(*arrays), skipped


def packet_of(link: int, time: int, length: int, frame: bytes, compat: bool) -> Any:
    """(source, destination, time, length, protocol), or why the frame is not counted."""
    header = ipv4_header(link, frame, compat)
    if isinstance(header, str):
        return header
    order = "<" if compat else ">"
    src, dst = struct.unpack(order + "II", header[12:20])
    if compat and 2**32 - 1 in (src, dst):
        return "broadcast"
    return src, dst, time, length, header[9]


def ipv4_header(link: int, frame: bytes, compat: bool) -> bytes | str:
    """The IPv4 header of a frame, or why there is none."""
    if compat and link not in (1, 12, 101):
        return "other"
    if link in (12, 14, 101, 228):
        if not frame:
            return "short"
        if frame[0] >> 4 != 4:
            return "IPv6" if frame[0] >> 4 == 6 else "other"
        return frame if len(frame) >= 20 else "short"
    if link in (1, 113, 276):
        place, head = {1: (12, 14), 113: (14, 16), 276: (0, 20)}[link]
        if len(frame) < head:
            return "short"
        kind = int.from_bytes(frame[place : place + 2], "big")
        rest = frame[head:]
        tags = 0
        while kind in (TAGS[:1] if compat else TAGS) and not (compat and tags):
            if len(rest) < 4:
                return "short"
            kind, rest, tags = int.from_bytes(rest[2:4], "big"), rest[4:], tags + 1
        if kind != 0x0800:
            return {0x86DD: "IPv6", 0x0806: "ARP"}.get(kind, "other")
    elif link in (0, 108):
        if len(frame) < 4:
            return "short"
        family = int.from_bytes(frame[:4], "big")
        if link == 0 and family > 0xFFFF:
            family = int.from_bytes(frame[:4], "little")
        if family != 2:
            return "IPv6" if family in FAMILIES_OF_IPV6 else "other"
        rest = frame[4:]
    else:
        return "other"
    if not rest:
        return "short"
    if rest[0] >> 4 != 4:
        return "other"
    return rest if len(rest) >= 20 else "short"


def frames(content: bytes) -> Iterator[Frame | None]:
    """The frames of a capture; None at the end for one that is cut off."""
    first = content[:4]
    for order in "<>":
        magic = struct.unpack(order + "I", first)[0] if len(first) == 4 else 0
        if magic in MAGICS:
            return _records(content, order, MAGICS[magic])
    if first == b"\x0a\x0d\x0d\x0a":
        return _blocks(content)
    raise FileFormatError("byte 0: no capture")


def _records(content: bytes, order: str, fractions: int) -> Iterator[Frame | None]:
    if len(content) < 24:
        raise FileFormatError(f"byte {len(content)}: the header is cut off")
    major, _, _, _, snaplen, link = struct.unpack(order + "HHiIII", content[4:24])
    if major != 2:
        raise FileFormatError("byte 4: unknown version")
    place = 24
    while place < len(content):
        if place + 16 > len(content):
            yield None
            return
        seconds, fraction, kept, length = struct.unpack(order + "IIII", content[place : place + 16])
        if kept > min(max(snaplen, LONGEST), MOST):
            raise FileFormatError(f"byte {place + 8}: a record of {kept} bytes")
        if place + 16 + kept > len(content):
            yield None
            return
        time = seconds * 10**9 + fraction * (10**9 // fractions)
        yield link & 0xFFFF, time, length, content[place + 16 : place + 16 + kept]
        place += 16 + kept


def _blocks(content: bytes) -> Iterator[Frame | None]:
    place, order = 0, "<"
    interfaces: list[tuple[int, int, int, int]] = []
    while place < len(content):
        if content[place : place + 4] == b"\x0a\x0d\x0d\x0a" and place + 12 <= len(content):
            if place + 28 > len(content):
                yield from _cut(place)
                return
            orders = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
            if content[place + 8 : place + 12] not in orders:
                raise FileFormatError(f"byte {place + 8}: no byte-order magic")
            order, interfaces = orders[content[place + 8 : place + 12]], []
        if place + 12 > len(content):
            yield from _cut(place)
            return
        kind, total = struct.unpack(order + "II", content[place : place + 8])
        least = 28 if kind == 0x0A0D0D0A else 12
        if total < least or total % 4 or total > MOST:
            raise FileFormatError(f"byte {place + 4}: a block of {total} bytes")
        block = content[place : place + total]
        if len(block) < total:
            yield from _cut(place)
            return
        if kind == 0x0A0D0D0A and struct.unpack(order + "H", block[12:14])[0] != 1:
            raise FileFormatError(f"byte {place + 12}: unknown version")
        if struct.unpack(order + "I", block[-4:])[0] != total:
            raise FileFormatError(f"byte {place + total - 4}: another length at the end")
        if kind == 1:
            interfaces.append(_interface(block, order, place))
        elif kind in (2, 3, 6):
            yield _frame(block, order, kind, interfaces, place)
        place += total


def _cut(place: int) -> Iterator[None]:
    if place == 0:
        raise FileFormatError("byte 0: the section header is cut off")
    yield None


def _interface(block: bytes, order: str, place: int) -> tuple[int, int, int, int]:
    """(link layer, snaplen, resolution as in the file, seconds to add)."""
    if len(block) < 20:
        raise FileFormatError(f"byte {place + 4}: a short interface block")
    link, _, snaplen = struct.unpack(order + "HHI", block[8:16])
    resolution, offset, rest = 6, 0, block[16:-4]
    while len(rest) >= 4:
        code, length = struct.unpack(order + "HH", rest[:4])
        if code == 0:
            break
        value = rest[4 : 4 + length]
        if len(value) < length or {9: 1, 14: 8}.get(code, length) != length:
            raise FileFormatError(f"byte {place}: an option has the wrong length")
        if code == 9:
            resolution = value[0]
        elif code == 14:
            (offset,) = struct.unpack(order + "q", value)
        rest = rest[4 + length + -length % 4 :]
    return link, snaplen, resolution, offset


def _frame(
    block: bytes, order: str, kind: int, interfaces: list[tuple[int, int, int, int]], place: int
) -> Frame:
    """The frame of an enhanced (6), obsolete (2) or simple (3) packet block."""
    head = 12 if kind == 3 else 28
    if len(block) < head + 4:
        raise FileFormatError(f"byte {place + 4}: a short packet block")
    which = 0
    if kind != 3:
        which = struct.unpack(order + ("I" if kind == 6 else "Hxx"), block[8:12])[0]
    if which >= len(interfaces):
        raise FileFormatError(f"byte {place + 8}: an unknown interface")
    link, snaplen, resolution, offset = interfaces[which]
    time = 0
    if kind == 3:
        (length,) = struct.unpack(order + "I", block[8:12])
        kept = min(length, snaplen) if snaplen else length
    else:
        high, low, kept, length = struct.unpack(order + "IIII", block[12:28])
        time = nanoseconds((high << 32) | low, resolution, offset)
    if kept > len(block) - head - 4:
        raise FileFormatError(f"byte {place}: more captured bytes than the block has")
    return link, time, length, block[head : head + kept]


def nanoseconds(units: int, resolution: int, offset: int) -> int:
    """A time in units of 10^-k or 2^-k seconds, and seconds to add, rounded down."""
    scale = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    time = min(units * 10**9 // scale, LATEST)
    return min(time + max(min(offset * 10**9, LATEST), -LATEST), LATEST)

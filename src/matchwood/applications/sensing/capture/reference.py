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


def packets_of(
    content: bytes, compat: bool = False, version: int = 4, known: dict[int, int] | None = None
) -> tuple[Packets, dict[str, int]]:
    """All packets of a capture, and what was skipped by reason.

    Addresses of IPv6 are numbered in the order in which they come, in `known` where it is given.
    """
    other = "IPv6" if version == 4 else "IPv4"
    rows, skipped = [], dict.fromkeys((other, "ARP", "other", "short", "cut off"), 0)
    known = {} if known is None else known
    if compat:
        skipped["broadcast"] = 0
    for frame in frames(content):
        found: Any = "cut off" if frame is None else packet_of(*frame, compat, version)
        if isinstance(found, str):
            skipped[found] += 1
        elif version == 6:
            src, dst = (known.setdefault(address, len(known)) for address in found[:2])
            rows.append((src, dst, *found[2:]))
        else:
            rows.append(found)
    columns = zip(*rows, strict=True) if rows else ((),) * 5
    kinds = (np.uint32, np.uint32, np.int64, np.uint32, np.uint8)
    arrays = (np.array(column, kind) for column, kind in zip(columns, kinds, strict=True))
    return Packets(*arrays), skipped


def packet_of(link: int, time: int, length: int, frame: bytes, compat: bool, version: int) -> Any:
    """(source, destination, time, length, protocol), or why the frame is not counted."""
    header = ip_header(link, frame, compat, version)
    if isinstance(header, str):
        return header
    if version == 6:
        src, dst = (int.from_bytes(header[at : at + 16], "big") for at in (8, 24))
        return src, dst, time, length, header[6]
    order = "<" if compat else ">"
    src, dst = struct.unpack(order + "II", header[12:20])
    if compat and 2**32 - 1 in (src, dst):
        return "broadcast"
    return src, dst, time, length, header[9]


def ip_header(link: int, frame: bytes, compat: bool, version: int) -> bytes | str:
    """The header of this version of IP in a frame, or why there is none."""
    if compat and link not in (1, 12, 101):
        return "other"
    if link in (12, 14, 101, 228, 229):
        return _of_version(frame, version)
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
        return _of_kind(kind, rest, compat, version)
    if link in (0, 108):
        if len(frame) < 4:
            return "short"
        family = int.from_bytes(frame[:4], "big")
        if link == 0 and family > 0xFFFF:
            family = int.from_bytes(frame[:4], "little")
        if family != 2 and family not in FAMILIES_OF_IPV6:
            return "other"
        if (family == 2) != (version == 4):
            return _other(version)
        return _of_version(frame[4:], version, "other")
    if link == 105:
        return _of_wifi(frame, version)
    if link == 127:
        if len(frame) < 4:
            return "short"
        head = int.from_bytes(frame[2:4], "little")
        return _of_wifi(frame[head:], version, padded=_is_padded(frame[:head]))
    return "other"


def _other(version: int) -> str:
    return "IPv6" if version == 4 else "IPv4"


def _of_version(rest: bytes, version: int, another: str | None = None) -> bytes | str:
    """What begins with a header of this version; `another`: the reason for the other version."""
    if not rest:
        return "short"
    if rest[0] >> 4 == 10 - version:
        return another or _other(version)
    if rest[0] >> 4 != version:
        return "other"
    return rest if len(rest) >= {4: 20, 6: 40}[version] else "short"


def _of_kind(kind: int, rest: bytes, compat: bool, version: int) -> bytes | str:
    """The header in a frame of this type: IP itself, or IP in MPLS or PPPoE."""
    if kind == {4: 0x0800, 6: 0x86DD}[version]:
        return _of_version(rest, version, "other")
    if kind in (0x0800, 0x86DD):
        return _other(version)
    if kind == 0x0806:
        return "ARP"
    if kind in (0x8847, 0x8848) and not compat:
        last = False
        while not last:
            if len(rest) < 4:
                return "short"
            last, rest = bool(rest[2] & 1), rest[4:]
        return _of_version(rest, version)
    if kind == 0x8864 and not compat:
        if len(rest) < 8:
            return "short"
        inner = int.from_bytes(rest[6:8], "big")
        return _of_version(rest[8:], version) if inner in (0x0021, 0x0057) else "other"
    return "other"


def _is_padded(radiotap: bytes) -> bool:
    """Whether the flags of a radiotap header say that the frame's header is filled up to a word."""
    words = 0
    while True:
        words += 1
        if len(radiotap) < 4 + 4 * words:
            return False
        if not radiotap[4 * words + 3] & 0x80:
            break
    at = 4 + 4 * words
    if radiotap[4] & 1:  # a time of eight bytes comes before the flags
        at = -(-at // 8) * 8 + 8
    return bool(radiotap[4] & 2 and at < len(radiotap) and radiotap[at] & 0x20)


def _of_wifi(frame: bytes, version: int, *, padded: bool = False) -> bytes | str:
    """The header in a frame of 802.11: data that is neither encrypted nor several frames."""
    if len(frame) < 24:
        return "short"
    is_data, is_empty = frame[0] >> 2 & 3 == 2, frame[0] & 0x40
    if not is_data or is_empty or frame[1] & 0x40:
        return "other"
    head = 30 if frame[1] & 3 == 3 else 24
    if frame[0] & 0x80:
        if len(frame) < head + 2:
            return "short"
        if frame[head] & 0x80:
            return "other"
        head += 6 if frame[1] & 0x80 else 2
    if padded:
        head = -(-head // 4) * 4
    rest = frame[head:]
    if len(rest) < 8:
        return "short"
    if rest[:6] != b"\xaa\xaa\x03\0\0\0":
        return "other"
    return _of_kind(int.from_bytes(rest[6:8], "big"), rest[8:], False, version)


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

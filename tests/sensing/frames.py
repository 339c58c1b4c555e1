"""Small captures made by hand, byte by byte, for the tests of captures."""

from __future__ import annotations

import struct

PAIRS = [(1, 2), (1, 2), (1, 3), (2, 1), (4, 3), (4, 3), (4, 3), (5, 3)]
"""The worked example: who sent to whom, in 10.0.0.0/24."""

ADDRESS = 10 << 24
SECOND = 1_700_000_000
ETHER = bytes(range(12))
SHA256 = "67e75a9cf80a86c91cf01f34ffe6749ab1be6b1e433321b3cab7d97b6fc87487"
MAGICS = {("<", 1000): 0xA1B2C3D4, (">", 1000): 0xA1B2C3D4,
          ("<", 1): 0xA1B23C4D, (">", 1): 0xA1B23C4D}  # fmt: skip


def ipv4(src: int, dst: int, protocol: int = 17, length: int = 20, first: int = 0x45) -> bytes:
    """A header, and nothing behind it."""
    return struct.pack(">BBHHHBBHII", first, 0, length, 0, 0, 64, protocol, 0, src, dst)


def example() -> list[bytes]:
    """The eight packets of the worked example."""
    return [ipv4(ADDRESS + a, ADDRESS + b) for a, b in PAIRS]


def ethernet(packet: bytes, *tags: int, kind: int = 0x0800) -> bytes:
    words = b"".join(struct.pack(">HH", tag, 5) for tag in tags)
    return ETHER + words + struct.pack(">H", kind) + packet


def pcap(frames, link=101, order="<", unit=1000, snaplen=65535, lengths=None, times=None) -> bytes:
    """A PCAP file; `unit` is 1000 for microseconds and 1 for nanoseconds."""
    parts = [struct.pack(order + "IHHiIII", MAGICS[order, unit], 2, 4, 0, 0, snaplen, link)]
    for k, frame in enumerate(frames):
        length = len(frame) if lengths is None else lengths[k]
        time = SECOND * 10**9 + k * 1000 if times is None else times[k]
        fields = (time // 10**9, time % 10**9 // unit, len(frame), length)
        parts += [struct.pack(order + "IIII", *fields), frame]
    return b"".join(parts)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    total = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + total + body + total


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(link=101, snaplen=0, order="<", options=b"") -> bytes:
    return block(1, struct.pack(order + "HHI", link, 0, snaplen) + options, order)


def enhanced(frame, units=0, which=0, order="<", length=None, kept=None) -> bytes:
    length = len(frame) if length is None else length
    kept = len(frame) if kept is None else kept
    head = struct.pack(order + "IIIII", which, units >> 32, units & 0xFFFFFFFF, kept, length)
    return block(6, head + frame, order)


def obsolete(frame, units=0, which=0, drops=0, order="<") -> bytes:
    head = struct.pack(
        order + "HHIIII", which, drops, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame)
    )
    return block(2, head + frame, order)


def simple(frame, length=None, order="<") -> bytes:
    length = len(frame) if length is None else length
    return block(3, struct.pack(order + "I", length) + frame, order)


def pcapng(frames, order="<") -> bytes:
    """The frames as enhanced blocks of one interface, microseconds."""
    blocks = [section(order), interface(order=order)]
    for k, frame in enumerate(frames):
        blocks.append(enhanced(frame, SECOND * 10**6 + k, order=order))
    return b"".join(blocks)

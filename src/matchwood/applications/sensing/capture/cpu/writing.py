"""Packets to the bytes of a capture, PCAP or PCAPNG, on a team of threads.

The host writes what stands before the packets; each thread writes the records of its own packets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.capture.cpu.records import Output
from matchwood.applications.sensing.packets import Packets
from matchwood.engines.cpu import Team, crew, device, interrupted, kernel, share
from matchwood.io.files import write_pieces
from matchwood.io.options import PathLike

Array = np.ndarray[Any, Any]

AT_ONCE = 1 << 16  # packets made into bytes at once
RAW = 101  # the link layer of packets without one
SNAPLEN = 65_535
HEAD_PCAP, HEAD_BLOCK, TAIL_BLOCK, HEAD_IPV4 = 16, 28, 4, 20  # bytes
ENHANCED = 6  # type of the block
_VERSION, _HOPS = 0x45, 64  # version 4, a header of five words; time to live
_LONGEST = 65_535  # the field for the length of an IPv4 packet has two bytes
_BILLION = 1_000_000_000


class Layout(NamedTuple):
    """How the file is written."""

    blocks: bool  # PCAPNG
    big: bool  # the largest byte of a number first
    fine: bool  # nanoseconds
    captured: int  # bytes of each packet


@device
def _put(out: Array, at: int, value: int, big: bool) -> None:
    """Write a number of four bytes, big-endian if `big`."""
    for k in range(4):
        shift = 24 - 8 * k if big else 8 * k
        out[at + k] = np.uint8((value >> shift) & 0xFF)


@kernel
def pack(
    team: Team, packets: Output, captured: int, blocks: bool, big: bool, unit: int,
    starts: Array, out: Array,
) -> None:  # fmt: skip
    """Write the record of each packet to out[starts[k]:starts[k + 1]], which is zero."""
    lo, hi = share(team, packets.src.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        at, length = starts[k], np.int64(packets.length[k])
        kept = min(captured, max(length, HEAD_IPV4))
        time = packets.time[k]
        if blocks:
            total = starts[k + 1] - at
            _put(out, at, ENHANCED, big)
            _put(out, at + 4, total, big)
            _put(out, at + 12, time >> 32, big)
            _put(out, at + 16, time & 0xFFFFFFFF, big)
            _put(out, at + 20, kept, big)
            _put(out, at + 24, length, big)
            _put(out, at + total - TAIL_BLOCK, total, big)
            at += HEAD_BLOCK
        else:
            _put(out, at, time // _BILLION, big)
            _put(out, at + 4, time % _BILLION // unit, big)
            _put(out, at + 8, kept, big)
            _put(out, at + 12, length, big)
            at += HEAD_PCAP
        shown: Any = min(max(length, HEAD_IPV4), _LONGEST)
        out[at] = _VERSION
        out[at + 2], out[at + 3] = np.uint8(shown >> 8), np.uint8(shown & 0xFF)
        out[at + 8], out[at + 9] = _HOPS, packets.protocol[k]
        _put(out, at + 12, np.int64(packets.src[k]), True)
        _put(out, at + 16, np.int64(packets.dst[k]), True)


def write(path: PathLike, packets: Packets, layout: Layout, threads: int | None) -> None:
    """Write the file, all of it or nothing."""
    write_pieces(path, _pieces(packets, layout, threads))


def _pieces(packets: Packets, layout: Layout, threads: int | None) -> Iterator[bytes]:
    yield _section(layout) if layout.blocks else _header(layout)
    unit = 1 if layout.fine else 1000
    for start in range(0, packets.src.size, AT_ONCE):
        part = packets.part(start, min(start + AT_ONCE, packets.src.size))
        kept = np.minimum(layout.captured, np.maximum(part.length.astype(np.int64), 20))
        if layout.blocks:
            sizes = kept + -kept % 4 + HEAD_BLOCK + TAIL_BLOCK
        else:
            sizes = kept + HEAD_PCAP
        starts = np.zeros(kept.size + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        out = np.zeros(int(starts[-1]), np.uint8)
        crew(threads, work=4 * kept.size).run(
            pack, Output(*part), layout.captured, layout.blocks,
            layout.big, unit, starts, out,
        )  # fmt: skip
        yield out.tobytes()


def _order(layout: Layout) -> str:
    return ">" if layout.big else "<"


def _header(layout: Layout) -> bytes:
    magic = 0xA1B23C4D if layout.fine else 0xA1B2C3D4
    return struct.pack(_order(layout) + "IHHiIII", magic, 2, 4, 0, 0, SNAPLEN, RAW)


def _section(layout: Layout) -> bytes:
    """A section header, and one interface whose times are nanoseconds."""
    order = _order(layout)
    section = struct.pack(order + "IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    resolution = struct.pack(order + "HHBxxxHH", 9, 1, 9, 0, 0)
    interface = struct.pack(order + "IIHHI", 1, 32, RAW, 0, SNAPLEN) + resolution
    return section + interface + struct.pack(order + "I", 32)

"""Packets to a capture file, PCAP or PCAPNG, compressed if its name says so."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.packets import Packets
from matchwood.arguments import vector
from matchwood.io.files import PathLike, write_pieces

Array = np.ndarray[Any, Any]

AT_ONCE = 1 << 16  # packets made into bytes at once
RAW = 101  # the link layer of packets without one
SNAPLEN = 65_535
LATEST_SECOND = 2**32 - 1
BILLION = 10**9
KINDS = {"src": "uint32", "dst": "uint32", "time": "int64", "length": "uint32", "protocol": "uint8"}


class Layout(NamedTuple):
    """How the file is written."""

    blocks: bool  # PCAPNG
    big: bool  # the largest byte of a number first
    fine: bool  # nanoseconds
    captured: int  # bytes of each packet


def checked_packets(caller: str, packets: Any) -> Packets:
    """The five arrays, of one size and of the right kinds."""
    if not isinstance(packets, tuple) or len(packets) != len(KINDS):
        kind = type(packets).__name__
        raise TypeError(f"{caller}: packets must be Packets, five arrays, got {kind}")
    fields = []
    for (name, kind), value in zip(KINDS.items(), packets, strict=True):
        fields.append(np.ascontiguousarray(vector(caller, f"packets.{name}", value, (kind,))))
        if fields[-1].size != fields[0].size:
            raise ValueError(
                f"{caller}: packets.{name} must have the size of packets.src, "
                f"got {fields[-1].size} and {fields[0].size}"
            )
    return Packets(*fields)


def require_times(caller: str, time: Array, blocks: bool) -> None:
    """What the format can hold."""
    if not time.size:
        return
    least, most = int(time.min()), int(time.max())
    if least < 0 or (not blocks and most // BILLION > LATEST_SECOND):
        last = "" if blocks else f" and {LATEST_SECOND} seconds"
        worst = least if least < 0 else most
        raise ValueError(f"{caller}: packets.time must lie between 0{last}, got {worst}")


def has_nanoseconds(time: Array) -> bool:
    """Whether some time is no whole number of microseconds; Ctrl-C is heard between pieces."""
    starts = range(0, time.size, AT_ONCE)
    return any(bool((time[start : start + AT_ONCE] % 1000).any()) for start in starts)


def write(path: PathLike, packets: Packets, layout: Layout, threads: int | None) -> None:
    """Write the file, all of it or nothing."""
    write_pieces(path, _pieces(packets, layout, threads))


def _pieces(packets: Packets, layout: Layout, threads: int | None) -> Iterator[bytes]:
    from matchwood.applications.sensing.capture import cpu_records, cpu_writing
    from matchwood.engines.cpu import crew

    yield _section(layout) if layout.blocks else _header(layout)
    unit = 1 if layout.fine else 1000
    for start in range(0, packets.src.size, AT_ONCE):
        part = packets.part(start, min(start + AT_ONCE, packets.src.size))
        kept = np.minimum(layout.captured, np.maximum(part.length.astype(np.int64), 20))
        if layout.blocks:
            sizes = kept + -kept % 4 + cpu_writing.HEAD_BLOCK + cpu_writing.TAIL_BLOCK
        else:
            sizes = kept + cpu_writing.HEAD_PCAP
        starts = np.zeros(kept.size + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        out = np.zeros(int(starts[-1]), np.uint8)
        crew(threads, work=4 * kept.size).run(
            cpu_writing.pack, cpu_records.Output(*part), layout.captured, layout.blocks,
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

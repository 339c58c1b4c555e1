"""What stands before the packets: the header of PCAP, the section and interface blocks of PCAPNG.

There are few of them, so they are read in Python; the kernel stops where one begins.
"""

from __future__ import annotations

import struct
import sys
from typing import NamedTuple

import numpy as np

from matchwood.applications.sensing.capture import cpu_link as link
from matchwood.applications.sensing.capture.cpu_records import LATEST, MOST_BYTES, Format, Table
from matchwood.errors import FileFormatError

# The first four bytes of PCAP: (order of its numbers, fractions in a second)
MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
SECTION = b"\x0a\x0d\x0d\x0a"  # the first four bytes of PCAPNG
ORDER_MAGICS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
HEADER = 24  # bytes of the header of PCAP
LEAST_SECTION = 28  # bytes
LEAST_INTERFACE = 20  # bytes
USUAL_LONGEST = 262_144  # bytes of a packet that libpcap takes whatever the header announces

# Numbers of link layers in files, and what they are
LINKS = {
    0: link.NULL,
    1: link.ETHERNET,
    12: link.RAW,
    14: link.RAW,
    101: link.RAW,
    108: link.LOOP,
    113: link.SLL,
    228: link.RAW,
    276: link.SLL2,
}
COMPAT_LINKS = {1: link.ETHERNET, 12: link.RAW, 101: link.RAW}  # of pcap2grb
NATIVE = "<" if sys.byteorder == "little" else ">"

MOST_INTERFACES = 1 << 16  # of a section: obsolete blocks have two bytes for their number
COLUMNS = (np.int64, np.int64, np.uint64, np.uint64, np.int64, np.int64)  # of Table
OPTION_END, OPTION_RESOLUTION, OPTION_OFFSET = 0, 9, 14


class Interface(NamedTuple):
    """Where packets were captured: the link layer, and how their times are written."""

    number: int  # of the link layer
    snaplen: int  # bytes kept of a packet; 0 for all
    multiply: int = 1000  # a unit of time is multiply / divide nanoseconds,
    divide: int = 1
    shift: int = 0  # or multiply / 2^shift, where divide is 0
    offset: int = 0  # nanoseconds to add


def damaged(name: str, offset: int, message: str) -> FileFormatError:
    """The error for what is wrong at a byte of a capture."""
    return FileFormatError(f"{name}, byte {offset}: {message}")


def pcap_header(name: str, first: bytes, compat: bool, part: int) -> tuple[Format, Interface]:
    """What the 24 bytes at the beginning say."""
    order, fractions = MAGICS[first[:4]]
    if len(first) < HEADER:
        raise damaged(name, len(first), f"the header of {HEADER} bytes is cut off")
    major, minor, _, _, snaplen, number = struct.unpack(order + "HHiIII", first[4:HEADER])
    if major != 2:
        raise damaged(name, 4, f"version {major}.{minor} is unknown, expected 2.4")
    form = Format(
        blocks=False,
        swapped=order != NATIVE,
        compat=compat,
        snaplen=snaplen,
        longest=min(max(snaplen, USUAL_LONGEST), MOST_BYTES),
        fraction=fractions,
        nanoseconds=10**9 // fractions,
        part=part,
    )
    return form, Interface(number & 0xFFFF, snaplen)


def section_order(name: str, offset: int, block: bytes) -> tuple[str, int]:
    """(order of numbers, bytes of the block) of a section header; `block` has 12 bytes or more."""
    order = ORDER_MAGICS.get(bytes(block[8:12]))
    if order is None:
        raise damaged(name, offset + 8, f"no byte-order magic, got {block[8:12].hex()}")
    (total,) = struct.unpack(order + "I", block[4:8])
    if total < LEAST_SECTION or total % 4 or total > MOST_BYTES:
        raise damaged(name, offset + 4, f"a section header cannot have {total} bytes")
    return order, total


def check_section(name: str, offset: int, block: bytes, order: str) -> None:
    """A whole section header: its version, and its length at the end."""
    major, minor = struct.unpack(order + "HH", block[12:16])
    if major != 1:
        raise damaged(name, offset + 12, f"version {major}.{minor} is unknown, expected 1.0")
    (again,) = struct.unpack(order + "I", block[-4:])
    if again != len(block):
        at = offset + len(block) - 4
        raise damaged(name, at, f"the block has {len(block)} bytes, its end says {again}")


def pcapng_format(order: str, compat: bool, part: int) -> Format:
    """How the blocks of a section are read; the lengths of PCAP are not used."""
    return Format(True, order != NATIVE, compat, 0, 0, 0, 0, part)


def interface_of(name: str, offset: int, block: bytes, order: str) -> Interface:
    """A whole interface block, whose lengths the kernel has compared."""
    if len(block) < LEAST_INTERFACE:
        raise damaged(name, offset + 4, f"an interface block cannot have {len(block)} bytes")
    number, _, snaplen = struct.unpack(order + "HHI", block[8:16])
    found = Interface(number, snaplen)
    place, last = 16, len(block) - 4
    while place + 4 <= last:
        code, length = struct.unpack(order + "HH", block[place : place + 4])
        if code == OPTION_END:
            break
        value = block[place + 4 : place + 4 + length]
        if place + 4 + length > last:
            raise damaged(name, offset + place, f"an option of {length} bytes leaves its block")
        if code == OPTION_RESOLUTION:
            if length != 1:
                raise damaged(name, offset + place, f"if_tsresol must have 1 byte, got {length}")
            found = found._replace(**_resolution(value[0]))
        elif code == OPTION_OFFSET:
            if length != 8:
                raise damaged(name, offset + place, f"if_tsoffset must have 8 bytes, got {length}")
            (seconds,) = struct.unpack(order + "q", value)
            most = int(LATEST)
            found = found._replace(offset=min(max(seconds * 10**9, -most), most))
        place += 4 + length + -length % 4
    return found


def _resolution(value: int) -> dict[str, int]:
    """A unit of 10^-k seconds, or of 2^-k where the top bit is set."""
    if value & 0x80:
        return {"multiply": 10**9, "divide": 0, "shift": value & 0x7F}
    if value <= 9:
        return {"multiply": 10 ** (9 - value), "divide": 1}
    if value <= 28:
        return {"multiply": 1, "divide": 10 ** (value - 9)}
    return {"multiply": 0, "divide": 1}  # 64 bits of such units are less than a nanosecond


class Interfaces:
    """The interfaces of a section, as arrays for the kernel that grow by doubling."""

    def __init__(self, compat: bool) -> None:
        self._links = COMPAT_LINKS if compat else LINKS
        self._columns = Table(*(np.zeros(4, kind) for kind in COLUMNS))
        self.count = 0

    def append(self, name: str, offset: int, one: Interface) -> None:
        """Add what the block at byte `offset` declares."""
        if self.count == MOST_INTERFACES:
            raise damaged(name, offset, f"more than {MOST_INTERFACES} interfaces in a section")
        if self.count == self._columns.link.size:
            self._columns = Table(*(np.concatenate((old, old)) for old in self._columns))
        kind = self._links.get(one.number, link.UNKNOWN)
        row = (kind, one.snaplen, one.multiply, one.divide, one.shift, one.offset)
        for column, value in zip(self._columns, row, strict=True):
            column[self.count] = value
        self.count += 1

    @property
    def table(self) -> Table:
        return Table(*(column[: self.count] for column in self._columns))

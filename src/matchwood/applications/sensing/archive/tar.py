"""UNIX tar, as much as archives of matrices need: names and sizes in, plain files out.

Nothing is ever written to where a member's name says: names are shown in messages, no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from matchwood.applications.sensing.archive.layout import damaged
from matchwood.gate.plain_files import PlainFile

BLOCK = 512  # bytes: headers and contents begin at multiples of it
PLAIN = (b"0", b"\0", b"7")  # kinds of members that are files
TOP = 0x80  # of the first byte of a size that is written in base 256
NAME, SIZE, CHECKSUM, KIND, MAGIC = (
    slice(0, 100), slice(124, 136), slice(148, 156), slice(156, 157), slice(257, 262),
)  # fmt: skip
MOST_SIZE = 1 << 62


class Member(NamedTuple):
    """A file in an archive: its name, where its content begins and how many bytes it has."""

    name: str
    start: int
    size: int


def is_tar(content: bytearray | memoryview) -> bool:
    """Whether the bytes begin with the header of an archive, or with the end of an empty one."""
    if len(content) < BLOCK:
        return False
    return bytes(content[MAGIC]) == b"ustar" or not any(content[:BLOCK])


def is_archive(content: bytes) -> bool:
    """Whether the bytes begin with the header of an archive that has a member."""
    return bytes(content[MAGIC]) == b"ustar"


def members(
    name: str, content: PlainFile | memoryview, start: int, stop: int
) -> Iterator[Member]:  # fmt: skip
    """The files of the archive that lies in start..stop.

    It ends with blocks of zeros, as tar writes them, or with the file, as pcap2grb does.
    """
    place, end = start, stop
    while place < end:
        if place + BLOCK > end:
            raise damaged(name, place, "the header of a member is cut off")
        header = bytes(content[place : place + BLOCK])
        if not any(header):
            return
        size = _size(name, place, header)
        _compare_checksum(name, place, header)
        member = Member(_shown(header), place + BLOCK, size)
        if size > end - place - BLOCK:
            left = end - place - BLOCK
            raise damaged(name, place + 124, f"{member.name} has {size} bytes, {left} are left")
        if header[KIND] in PLAIN:
            yield member
        place += BLOCK + size + -size % BLOCK


def _shown(header: bytes) -> str:
    return repr(header[NAME].split(b"\0")[0].decode("utf-8", "replace"))


def _size(name: str, place: int, header: bytes) -> int:
    field = header[SIZE]
    if field[0] & TOP:
        size = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
    else:
        digits = field.strip(b" \0")
        if digits and not all(48 <= digit < 56 for digit in digits):
            raise damaged(name, place + 124, f"the size of {_shown(header)} is no number")
        size = int(digits or b"0", 8)
    if size > MOST_SIZE:
        raise damaged(name, place + 124, f"{_shown(header)} cannot have {size} bytes")
    return size


def _compare_checksum(name: str, place: int, header: bytes) -> None:
    digits = header[CHECKSUM].strip(b" \0")
    counted = sum(header[: CHECKSUM.start]) + 8 * 32 + sum(header[CHECKSUM.stop :])
    if not digits or not all(48 <= digit < 56 for digit in digits) or int(digits, 8) != counted:
        raise damaged(name, place + 148, f"the header of {_shown(header)} has a wrong checksum")


def member_header(name: str, size: int) -> bytes:
    """The header of a file of `size` bytes, without owner and time: equal content, equal bytes."""
    if size >= 1 << 33:
        raise ValueError(f"write_archive: a member of {size} bytes is too large for tar")
    fields = bytearray(BLOCK)
    fields[0 : len(name)] = name.encode("ascii")
    fields[100:108], fields[108:116], fields[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    fields[SIZE] = b"%011o\0" % size
    fields[136:148] = b"00000000000\0"
    fields[KIND] = b"0"
    fields[257:265] = b"ustar\x0000"
    fields[CHECKSUM] = b" " * 8
    fields[CHECKSUM] = b"%06o\0 " % sum(fields)
    return bytes(fields)

"""A capture as an iterator of blocks of packets, and what it has counted so far."""

from __future__ import annotations

import builtins
import struct
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.capture import cpu
from matchwood.applications.sensing.capture.cpu import records
from matchwood.applications.sensing.capture.cpu.records import LATEST, MOST_BYTES, Format, Table
from matchwood.applications.sensing.capture.sources import Source, damaged, open_source
from matchwood.applications.sensing.packets import AddressTable, Packets
from matchwood.engines.cpu import crew
from matchwood.errors import FileFormatError
from matchwood.io.options import NO_LIMITS, Limits

Array = np.ndarray[Any, Any]

REASONS = ("family", "ARP", "other", "short", "broadcast")  # in the order of cpu/records.py
CUT_OFF = "cut off"
NUMBERED = 1 << 16  # packets of IPv6 that get their numbers at once: 2 MiB of addresses
PART = 1 << 21  # bytes that a member parses at once: its packets stay in its cache
SMALL_PART = 1 << 14
BYTES_PER_STEP = 32  # bytes parsed in about the time of one work step (engines.cpu.crew)
SAMPLE = 1 << 12  # packets read before the total is estimated
STREAM_STEP = 1 << 16  # packets; least room for the rest of a stream, whose length is unknown
SPARE = 1.05  # room relative to the estimate: slightly shorter records cost no second copy

# What stands before the packets: the header of PCAP, the section and interface blocks of PCAPNG.
# There are few of them, so they are read in Python; the kernel stops where one begins.

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
USUAL_LONGEST = 262_144  # bytes of a packet that libpcap accepts whatever the header says

# Numbers of link layers in files, and what they are
LINKS = {
    0: records.NULL,
    1: records.ETHERNET,
    12: records.RAW,
    14: records.RAW,
    101: records.RAW,
    108: records.LOOP,
    113: records.SLL,
    105: records.WIFI,
    127: records.RADIOTAP,
    228: records.RAW,
    229: records.RAW,
    276: records.SLL2,
}
COMPAT_LINKS = {1: records.ETHERNET, 12: records.RAW, 101: records.RAW}  # those that pcap2grb reads
NATIVE = "<" if sys.byteorder == "little" else ">"

MOST_INTERFACES = 1 << 16  # interfaces of a section: obsolete blocks have two bytes for the number
COLUMNS = (np.int64, np.int64, np.uint64, np.uint64, np.int64, np.int64)  # types of Table
OPTION_END, OPTION_RESOLUTION, OPTION_OFFSET = 0, 9, 14


class Options(NamedTuple):
    """What is read."""

    compat: bool = False
    version: int = 4  # of IP


class Interface(NamedTuple):
    """Where packets were captured: the link layer, and how their times are written."""

    number: int  # of the link layer
    snaplen: int  # bytes kept of a packet; 0 for all
    multiply: int = 1000  # a unit of time is multiply / divide nanoseconds,
    divide: int = 1
    shift: int = 0  # or multiply / 2^shift, where divide is 0
    offset: int = 0  # nanoseconds to add


def pcap_header(name: str, first: bytes, options: Options, part: int) -> tuple[Format, Interface]:
    """The format and interface that the 24 bytes of a PCAP header describe."""
    order, fractions = MAGICS[first[:4]]
    if len(first) < HEADER:
        raise damaged(name, len(first), f"the header of {HEADER} bytes is cut off")
    major, minor, _, _, snaplen, number = struct.unpack(order + "HHiIII", first[4:HEADER])
    if major != 2:
        raise damaged(name, 4, f"version {major}.{minor} is unknown, expected 2.4")
    form = Format(
        blocks=False,
        swapped=order != NATIVE,
        compat=options.compat,
        snaplen=snaplen,
        longest=min(max(snaplen, USUAL_LONGEST), MOST_BYTES),
        fraction=fractions,
        nanoseconds=10**9 // fractions,
        part=part,
        version=options.version,
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
    """Check the version of a whole section header, and its length at the end."""
    major, minor = struct.unpack(order + "HH", block[12:16])
    if major != 1:
        raise damaged(name, offset + 12, f"version {major}.{minor} is unknown, expected 1.0")
    (again,) = struct.unpack(order + "I", block[-4:])
    if again != len(block):
        at = offset + len(block) - 4
        raise damaged(name, at, f"the block has {len(block)} bytes, its end says {again}")


def pcapng_format(order: str, options: Options, part: int) -> Format:
    """How the blocks of a section are read; the lengths of PCAP are not used."""
    return Format(True, order != NATIVE, options.compat, 0, 0, 0, 0, part, options.version)


def interface_of(name: str, offset: int, block: bytes, order: str) -> Interface:
    """The interface that a block declares; the kernel has compared its two lengths."""
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
        """Add the interface of the block at byte `offset`."""
        if self.count == MOST_INTERFACES:
            raise damaged(name, offset, f"more than {MOST_INTERFACES} interfaces in a section")
        if self.count == self._columns.link.size:
            self._columns = Table(*(np.concatenate((old, old)) for old in self._columns))
        kind = self._links.get(one.number, records.UNKNOWN)
        if kind == records.UNKNOWN:
            warnings.warn(
                f"{name}, byte {offset}: the link type {one.number} is not read; its frames are "
                "skipped as 'other'",
                stacklevel=2,
            )
        row = (kind, one.snaplen, one.multiply, one.divide, one.shift, one.offset)
        for column, value in zip(self._columns, row, strict=True):
            column[self.count] = value
        self.count += 1

    @property
    def table(self) -> Table:
        return Table(*(column[: self.count] for column in self._columns))


# The iterator


class Capture(Iterator[Packets]):
    """The packets of a capture, block after block.

    Iterating gives `Packets`; what the file held up to there can be read at any time.  Made by
    `matchwood.iter_capture`.

    Attributes
    ----------
    packets : int
        Packets given so far.
    bytes : int
        Bytes of the capture, unpacked, that were read for them.
    skipped : dict
        Frames that are no IPv4 packet with a whole header, counted by reason: "IPv6", "ARP",
        "other", "short" (fewer bytes were captured), "broadcast" (with ``compat`` only), and
        "cut off" for a record at the end that is not all there.  Of IPv6 "IPv4" is a reason.
    addresses : AddressTable or None
        Of IPv6: `src` and `dst` of packets are numbers of this table.
    name : str
        The file.
    """

    def __init__(
        self, caller: str, path: Any, target: int, options: Options, threads: int | None,
        limits: Limits = NO_LIMITS, *, reuse: bool = False, addresses: AddressTable | None = None,
    ) -> None:  # fmt: skip
        self.packets = 0
        self.addresses = addresses
        if addresses is None and options.version == 6:
            self.addresses = AddressTable()
        self._reasons = ("IPv4" if options.version == 6 else "IPv6", *REASONS[1:])
        self.skipped = dict.fromkeys((*self._reasons, CUT_OFF), 0)
        if not options.compat:
            del self.skipped["broadcast"]
        self._target, self._options, self._threads = target, options, threads
        self._reuse = reuse  # a block is valid until the next one, which uses its memory
        self._room: Packets | None = None
        self._source: Source = open_source(caller, path, limits)
        self.name = self._source.name
        self._interfaces = Interfaces(options.compat)
        self._position = 0
        self._alike = 0  # see cpu.scan
        self._finished = False
        self._kept: Packets | None = None  # packets beyond the last block, for the next one
        self._error: FileFormatError | None = None
        try:
            self._crew = crew(threads, work=(self._source.size or 1 << 30) // BYTES_PER_STEP)
            self._source.members = self._crew.size
            self._begin()
        except BaseException:
            self._source.close()
            raise

    @property
    def bytes(self) -> int:
        return self._source.base + self._position

    @property
    def progress(self) -> tuple[int, int | None]:
        """(bytes of the file read, bytes that it has), as stored; None for a pipe."""
        source = self._source
        return (source.taken if source.length is None else self.bytes), source.size

    def __next__(self) -> Packets:
        if self._error is not None and self._kept is None:
            error, self._error = self._error, None
            self.close()
            raise error
        if self._finished and self._kept is None:
            self.close()
            raise StopIteration
        out = self._new_block()
        filled = self._resume(out)
        filled = self._fill(out, filled, self._target)
        given = min(filled, self._target)
        if filled > given:
            self._kept = Packets(*(field[given:filled].copy() for field in out))
        if given == 0:
            return self.__next__()
        self.packets += given
        return out.part(0, given)

    def _new_block(self) -> Packets:
        size = self._target + self._slack()
        if self._room is not None and self._room.src.size >= size:
            return self._room
        made = Packets.empty(size)
        if self._reuse:
            self._room = made
        return made

    def __iter__(self) -> Capture:
        return self

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; no packets follow."""
        self._finished, self._kept = True, None
        self._source.close()

    def rest(self) -> Packets:
        """All packets that are left, in one block."""
        start, target = self.bytes, SAMPLE
        out = Packets.empty(target + self._slack())
        filled = self._fill(out, self._resume(out), target)
        while not self._finished:
            target = filled + self._expected(filled, self.bytes - start)
            out = _widened(out, filled, target + self._slack())
            filled = self._fill(out, filled, target)
        if self._error is not None:
            raise self._error
        self.packets += filled
        self.close()
        for field in out:  # what is left over goes back to the system; nothing is copied
            field.resize(filled, refcheck=False)
        return out

    def _expected(self, filled: int, read: int) -> int:
        """Estimate of the packets left, where `filled` were found in `read` bytes."""
        if self._source.length is None:
            return filled + STREAM_STEP
        ahead = self._source.length - self.bytes
        likely = int(SPARE * (filled + 1) * ahead / max(read, 1)) + 1
        return min(cpu.most_packets(ahead), likely)

    def _resume(self, out: Packets) -> int:
        kept, self._kept = self._kept, None
        if kept is None:
            return 0
        for field, saved in zip(out, kept, strict=True):
            field[: saved.size] = saved
        return kept.src.size

    def _slack(self) -> int:
        """The number of packets that a round may find beyond the target."""
        return cpu.most_of_round(self._form.part, self._crew.size)

    def _begin(self) -> None:
        """Read what stands before the first packet."""
        source = self._source
        self._require(HEADER)
        first = self._bytes(HEADER)
        ahead = (source.end if source.ended else PART) if source.length is None else source.length
        part = min(PART, max(SMALL_PART, ahead // self._crew.size // 4 * 4))
        if first[:4] in MAGICS:
            form, interface = pcap_header(self.name, first, self._options, part)
            self._form = form
            self._interfaces.append(self.name, 20, interface)
            self._position += HEADER
        elif first[:4] == SECTION:
            self._form = pcapng_format("<", self._options, part)
            self._section()
            if self._finished:
                raise damaged(self.name, source.base + source.end, "the section header is cut off")
        else:
            if source.damage is not None:
                raise damaged(self.name, source.end, source.damage)
            got = f"got {first[:4].hex()}" if first else "the file is empty"
            raise damaged(self.name, 0, f"no capture in the formats PCAP or PCAPNG: {got}")
        self._scratch()

    def _scratch(self) -> None:
        size, each = self._crew.size, cpu.most_packets(self._form.part)
        rows = np.zeros((2, size, cpu.ROW_WORDS), np.int64)
        others = records.Output(*Packets.empty((size - 1) * each))
        lanes = np.zeros((size, cpu.LANES), np.int64)
        self._parts = cpu.Parts(rows, others, each, lanes)

    def _bytes(self, count: int) -> builtins.bytes:
        source = self._source
        return source.data[self._position : min(self._position + count, source.end)].tobytes()

    def _require(self, count: int) -> bool:
        """Read until `count` bytes are in the buffer; False if the file ends before."""
        source = self._source
        while source.end - self._position < count and not source.ended:
            self._position = source.more(self._position)
        return source.end - self._position >= count

    def _state(self, target: int, filled: int = 0) -> Array:
        state = np.zeros(cpu.STATE_WORDS, np.int64)
        state[cpu.POSITION], state[cpu.LIMIT] = self._position, self._source.end
        state[cpu.FILLED], state[cpu.TARGET] = filled, target
        state[cpu.ALIKE] = self._alike
        return state

    def _scan(self, out: Packets, state: Array) -> None:
        columns = records.Output(*out)
        data = self._source.data
        table = self._interfaces.table
        self._crew.run(cpu.scan, data, self._form, table, columns, self._parts, state)

    def _fill(self, out: Packets, filled: int, target: int) -> int:
        """Read until `target` packets are there, or the file ends or is damaged."""
        try:
            while filled < target and not self._finished:
                state = self._state(target, filled)
                self._scan(out, state)
                before = filled
                self._position, filled = int(state[cpu.POSITION]), int(state[cpu.FILLED])
                if self.addresses is not None:
                    self._number(out.part(before, filled))
                self._alike = int(state[cpu.ALIKE])
                for reason, count in zip(self._reasons, state[cpu.TALLY :], strict=True):
                    if count:
                        self.skipped[reason] += int(count)
                outcome = int(state[cpu.OUTCOME])
                if filled < target or outcome not in (records.GOES_ON, records.MORE):
                    self._react(outcome)  # at the target a pipe is not waited for
        except FileFormatError as error:  # after the packets before it
            self._error = error
            self._finished = True
        except BaseException:  # Ctrl-C: packets of this block are lost, so no other may follow
            self._error = damaged(self.name, self.bytes, "reading was interrupted here before")
            self._finished = True
            raise
        return filled

    def _number(self, packets: Packets) -> None:
        """Write numbers of the table over the places of IPv6 headers."""
        assert self.addresses is not None
        for start in range(0, packets.src.size, NUMBERED):
            some = packets.part(start, start + NUMBERED)
            places = some.src.astype(np.int64) | (some.dst.astype(np.int64) << 32)
            found = self._source.data[places[:, None] + np.arange(8, 40)]
            # a source and its destination in turns: the order in which packets have them
            wide = found.view(">u8").astype(np.uint64).reshape(-1, 2)
            numbers = self.addresses.numbers(wide).reshape(-1, 2)
            some.src[:], some.dst[:] = numbers[:, 0], numbers[:, 1]

    def _react(self, outcome: int) -> None:
        """Handle what stopped the kernel: a header block, the end of the buffer, damage."""
        if outcome == records.SECTION:
            self._section()
        elif outcome == records.INTERFACE:
            self._interface()
        elif outcome >= records.BAD:
            raise self._wrong(outcome)
        elif outcome == records.MORE or self._position == self._source.end:
            self._further()

    def _further(self) -> None:
        """The buffer holds no whole record: read more, or end."""
        source = self._source
        if not source.ended:
            self._position = source.more(self._position)
            return
        if source.damage is not None and not source.cut:
            raise damaged(self.name, source.base + source.end, source.damage)
        source.finish()
        if self._position < source.end or source.cut:
            self.skipped[CUT_OFF] += 1
            warnings.warn(
                f"{self.name}, byte {source.base + source.end}: the file is cut off; the packets "
                "before that are given",
                stacklevel=2,
            )
        self._finished = True

    def _section(self) -> None:
        """A section header: numbers may change their order, and interfaces start again."""
        offset = self.bytes
        if not self._require(LEAST_SECTION):
            self._further()
            return
        first = self._bytes(LEAST_SECTION)
        order, total = section_order(self.name, offset, first)
        if not self._require(total):
            self._further()
            return
        check_section(self.name, offset, self._bytes(total), order)
        self._order = order
        self._form = pcapng_format(order, self._options, self._form.part)
        self._interfaces = Interfaces(self._options.compat)
        self._position += total

    def _interface(self) -> None:
        """Read all interface blocks in a row.

        The kernel has compared the two lengths of the first; it stops again at a damaged one.
        """
        first = True
        while first or self._another():
            (total,) = np.frombuffer(self._bytes(8)[4:], self._order + "u4").tolist()
            found = interface_of(self.name, self.bytes, self._bytes(total), self._order)
            self._interfaces.append(self.name, self.bytes, found)
            self._position += total
            first = False

    def _another(self) -> bool:
        """Whether a whole interface block follows."""
        if not self._require(LEAST_INTERFACE):
            return False
        number, total = np.frombuffer(self._bytes(8), self._order + "u4").tolist()
        if number != records.BLOCK_INTERFACE:
            return False
        sound = LEAST_INTERFACE <= total <= records.MOST_BYTES and total % 4 == 0
        if not (sound and self._require(total)):
            return False
        block = self._bytes(total)
        return block[-4:] == block[4:8]

    def _wrong(self, outcome: int) -> FileFormatError:
        """The error for the damage that the kernel found."""
        offset, form = self.bytes, self._form
        order = NATIVE
        if form.swapped:
            order = ">" if order == "<" else "<"
        words = np.frombuffer(self._bytes(12), order + "u4").tolist()
        total = words[1]
        if outcome == records.BAD_LENGTH and not form.blocks:
            place, message = 8, f"a record of {words[2]} bytes, at most {form.longest} expected"
        elif outcome == records.BAD_LENGTH:
            place, message = 4, f"a block cannot have {total} bytes"
        elif outcome == records.BAD_TRAILER:
            place, message = total - 4, f"the block has {total} bytes, its end says otherwise"
        elif outcome == records.BAD_BLOCK:
            place, message = 4, f"{total} bytes are too few for a packet"
        elif outcome == records.BAD_INTERFACE:
            declared = self._interfaces.count
            place, message = 8, f"a packet of an unknown interface, {declared} are declared"
        else:
            place, message = 0, "a packet has more captured bytes than its block"
        return damaged(self.name, offset + place, message)


def _widened(packets: Packets, filled: int, room: int) -> Packets:
    wider = Packets.empty(room)
    for old, new in zip(packets, wider, strict=True):
        new[:filled] = old[:filled]
    return wider

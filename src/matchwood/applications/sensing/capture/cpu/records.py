"""The records of PCAP and the blocks of PCAPNG: one after the other, or from a guessed place.

Three parts: numbers in an array of bytes, from a frame to its IPv4 header, and the parsers.  Both
parsers take the records that begin before `stop`, write those that are IPv4 packets, count the
others by reason, and say where they stopped and why.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device, expanded
from matchwood.engines.cpu.compiled import Later, intrinsic
from matchwood.engines.cpu.hints import opaque

Array = np.ndarray[Any, Any]
ir, types, cgutils, config = map(
    Later, ("llvmlite.ir", "numba.core.types", "numba.core.cgutils", "numba.core.config")
)


# Numbers of two and four bytes at any place of an array of bytes

_LITTLE = sys.byteorder == "little"


@intrinsic
def word_at(typingctx: Any, data: Any, position: Any) -> Any:
    """The four bytes from data[position] on, in native order, by one unaligned load."""
    signature = types.uint32(data, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        pointer = cgutils.get_item_pointer(
            context, builder, kind, view, [args[1]], wraparound=False,
            boundscheck=config.BOUNDSCHECK == 1,
        )  # fmt: skip
        pointer = builder.bitcast(pointer, ir.IntType(32).as_pointer())
        return builder.load(pointer, align=1)

    return signature, codegen


@device
def reversed_word(word: np.uint32) -> np.uint32:
    """The four bytes in reverse order."""
    return np.uint32(
        (word >> np.uint32(24))
        | ((word >> np.uint32(8)) & np.uint32(0xFF00))
        | ((word << np.uint32(8)) & np.uint32(0xFF0000))
        | (word << np.uint32(24))
    )


@device
def number_at(data: Array, position: int, swapped: bool) -> np.uint32:
    """A number of four bytes in the order of the file."""
    word = word_at(data, position)
    return reversed_word(word) if swapped else word


@device
def big_at(data: Array, position: int) -> np.uint32:
    """A big-endian number of four bytes."""
    word = word_at(data, position)
    return reversed_word(word) if _LITTLE else word


@device
def short_at(data: Array, position: int) -> Any:
    """A big-endian number of two bytes."""
    return (np.int64(data[position]) << 8) | np.int64(data[position + 1])


@device
def half_at(data: Array, position: int, swapped: bool) -> Any:
    """A number of two bytes in the order of the file."""
    value = short_at(data, position)
    return value if swapped == _LITTLE else ((value & 0xFF) << 8) | (value >> 8)


# From the bytes of a frame to its IP header, for each kind of link layer

UNKNOWN, RAW, ETHERNET, SLL, SLL2, NULL, LOOP, WIFI, RADIOTAP = range(9)  # kinds of link layer
FAMILY, ARP, OTHER, SHORT, BROADCAST = range(5)  # why a frame is not counted
REASONS = 5

IPV4_HEADER, IPV6_HEADER = 20, 40  # bytes of it that must have been captured
TYPE_IPV4, _TYPE_ARP, _TYPE_IPV6 = 0x0800, 0x0806, 0x86DD
TYPE_VLAN, _TYPE_SERVICE, _TYPE_OLD, _TYPE_OLDER = 0x8100, 0x88A8, 0x9100, 0x9200
_TYPE_MPLS, _TYPE_MPLS_MANY, _TYPE_PPPOE = 0x8847, 0x8848, 0x8864
_PPP_IPV4, _PPP_IPV6 = 0x0021, 0x0057
_TAG = 4  # bytes of a VLAN tag, and of an MPLS label
_PPPOE = 8  # bytes of a session header, and of the protocol after it
_FAMILY = 4  # bytes of the word before packets of the links NULL and LOOP
_AF_INET = 2
_WIFI_HEAD, _SNAP = 24, 8  # bytes of an 802.11 header with three addresses, and of what follows it
_HAS_TIME, _HAS_FLAGS, _PADDED = 1, 2, 0x20  # bits of what radiotap has, and of its flags
EVERYONE = np.uint32(0xFFFFFFFF)  # 255.255.255.255


@device
def _no(reason: int) -> int:
    return -1 - reason


@device
def header_at(data: Array, start: int, captured: int, link: int, compat: bool, version: int) -> int:
    """Where the IP header of a frame begins; -1 - reason where the frame is not counted."""
    end = start + captured
    if link == RAW:
        return _of_version(data, start, end, version, FAMILY)
    if link == ETHERNET:
        return _behind_type(data, start, end, 12, 14, compat, version)
    if link == SLL:
        return _behind_type(data, start, end, 14, 16, compat, version)
    if link == SLL2:
        return _behind_type(data, start, end, 0, 20, compat, version)
    if link in (NULL, LOOP):
        return _behind_family(data, start, end, link == NULL, version)
    if link == WIFI:
        return _behind_wifi(data, start, end, version, False)
    if link == RADIOTAP:
        if captured < 4:
            return _no(SHORT)
        head = np.int64(data[start + 2]) | (np.int64(data[start + 3]) << 8)
        padded = _is_padded(data, start, start + head if head < captured else end)
        return _behind_wifi(data, start + head, end, version, padded)
    return _no(OTHER)


@device
def _of_version(data: Array, at: int, end: int, version: int, another: int) -> int:
    """`at` if a whole header of this version begins there; `another`: why not, for the other."""
    if at >= end:
        return _no(SHORT)
    found = np.int64(data[at] >> 4)
    if found != version:
        return _no(another) if found == 4 or found == 6 else _no(OTHER)
    return at if end - at >= (IPV4_HEADER if version == 4 else IPV6_HEADER) else _no(SHORT)


@device
def _is_tag(kind: int, compat: bool) -> bool:
    if kind == TYPE_VLAN:
        return True
    if compat:
        return False
    return kind in (_TYPE_SERVICE, _TYPE_OLD, _TYPE_OLDER)


@device
def _behind_type(
    data: Array, start: int, end: int, type_at: int, head: int, compat: bool, version: int
) -> int:
    """Where the IP header begins, after a link header with a type and any VLAN tags."""
    if end - start < head:
        return _no(SHORT)
    kind, at = short_at(data, start + type_at), start + head
    while _is_tag(kind, compat):
        if end - at < _TAG:
            return _no(SHORT)
        kind = short_at(data, at + 2)
        at += _TAG
        if compat:  # one tag, no more
            break
    return _of_kind(data, at, end, kind, compat, version)


@device
def _of_kind(data: Array, at: int, end: int, kind: int, compat: bool, version: int) -> int:
    """Where the IP header begins, in or after what the type `kind` of a frame announces."""
    if kind == (TYPE_IPV4 if version == 4 else _TYPE_IPV6):
        return _of_version(data, at, end, version, OTHER)
    if kind in (TYPE_IPV4, _TYPE_IPV6):
        return _no(FAMILY)
    if kind == _TYPE_ARP:
        return _no(ARP)
    if compat:
        return _no(OTHER)
    if kind == _TYPE_PPPOE:
        if end - at < _PPPOE:
            return _no(SHORT)
        inner = short_at(data, at + _PPPOE - 2)
        if inner in (_PPP_IPV4, _PPP_IPV6):
            return _of_version(data, at + _PPPOE, end, version, FAMILY)
        return _no(OTHER)
    if kind in (_TYPE_MPLS, _TYPE_MPLS_MANY):
        last = False
        while not last:  # labels, up to the one that says it is the last
            if end - at < _TAG:
                return _no(SHORT)
            last = data[at + 2] & 1 != 0
            at += _TAG
        return _of_version(data, at, end, version, FAMILY)
    return _no(OTHER)


@device
def _is_padded(data: Array, start: int, end: int) -> bool:
    """Whether a radiotap header says that the frame's header is filled up to a word.

    That is a bit of its flags, which come after all words that say what is present, and after a
    time of eight bytes, aligned, if there is one.
    """
    at = start + 4
    if end - at < 4 or data[at] & _HAS_FLAGS == 0:
        return False
    timed = data[at] & _HAS_TIME != 0
    while end - at >= 4 and data[at + 3] & 0x80 != 0:  # another word follows
        at += 4
    at += 4
    if timed:
        at = start + (at - start + 7) // 8 * 8 + 8
    return at < end and data[at] & _PADDED != 0


@device
def _behind_wifi(data: Array, at: int, end: int, version: int, padded: bool) -> int:
    """Where the IP header begins, in a frame of data of 802.11 that is neither encrypted nor many.

    Its header is longer where there is a fourth address, a quality of service, or HT control;
    `padded` ones end at a multiple of four bytes.
    """
    if end - at < _WIFI_HEAD:
        return _no(SHORT)
    first, flags = np.int64(data[at]), np.int64(data[at + 1])
    if first & 0x0C != 0x08 or first & 0x40 != 0 or flags & 0x40 != 0:
        return _no(OTHER)
    head = _WIFI_HEAD + (6 if flags & 3 == 3 else 0)
    if first & 0x80 != 0:  # quality of service
        if end - at < head + 2:
            return _no(SHORT)
        if data[at + head] & 0x80 != 0:  # several frames in one
            return _no(OTHER)
        head += 6 if flags & 0x80 != 0 else 2
    at += (head + 3) // 4 * 4 if padded else head
    if end - at < _SNAP:
        return _no(SHORT)
    if big_at(data, at) != np.uint32(0xAAAA0300) or short_at(data, at + 4) != 0:
        return _no(OTHER)
    return _of_kind(data, at + _SNAP, end, short_at(data, at + 6), False, version)


@device
def _behind_family(data: Array, start: int, end: int, either: bool, version: int) -> int:
    """Where the IP header begins, after a word that names the family of addresses.

    The link NULL has it in the byte order of the capturing machine, so both orders are read.
    """
    if end - start < _FAMILY:
        return _no(SHORT)
    family = big_at(data, start)
    if either and family > np.uint32(0xFFFF):
        family = reversed_word(family)
    # AF_INET6 of Linux, of NetBSD and OpenBSD, of FreeBSD, of macOS
    newer = family == 10 or family == 24 or family == 28 or family == 30
    if family != _AF_INET and not newer:
        return _no(OTHER)
    if newer != (version == 6):
        return _no(FAMILY)
    return _of_version(data, start + _FAMILY, end, version, OTHER)


@device
def address_at(data: Array, position: int, compat: bool) -> np.uint32:
    """An address as a number; compat reads its bytes the other way round."""
    value = big_at(data, position)
    return reversed_word(value) if compat else value


# The parsers

# Why a parser stopped; from BAD on the file is damaged
GOES_ON, MORE, SECTION, INTERFACE, BAD = range(5)
BAD_LENGTH, BAD_TRAILER, BAD_BLOCK, BAD_INTERFACE, BAD_CAPTURED = range(BAD, BAD + 5)

# What a parser leaves in the row of its part
BEGIN, END, COUNT, STATUS, SKIPPED = range(5)

MOST_BYTES = 1 << 28  # bytes of a record or block; Wireshark stops at 2^27
LEAST_RECORD = 36  # bytes of the shortest record that can hold an IPv4 packet
IN_A_ROW = 8  # records that must be plausible where a guess is made
GAP_SECONDS = 3600  # a longer gap between two records makes a guess implausible

RECORD_HEADER = 16  # bytes
BLOCK_SECTION, BLOCK_INTERFACE = 0x0A0D0D0A, 1
_OBSOLETE, _SIMPLE, _ENHANCED = 2, 3, 6
_LEAST_BLOCK, _SIMPLE_HEAD, _PACKET_HEAD, _TAIL = 12, 12, 28, 4  # bytes
_ETHERNET_HEAD, _TAGGED_HEAD, _TYPE_AT = 14, 18, 12  # bytes
_TYPE_AND_VERSION = TYPE_IPV4 << 4 | 4  # the type of a frame, and the upper half of the next byte
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
LATEST = np.int64(0x7FFFFFFFFFFFFFFF)  # a time beyond the year 2262 is given as this


class Format(NamedTuple):
    """The format of a file, from its header and the options of the call."""

    blocks: bool  # PCAPNG, else PCAP
    swapped: bool  # numbers are in the order that this machine does not use
    compat: bool
    snaplen: int  # PCAP: bytes kept of a packet, as announced
    longest: int  # PCAP: a record that keeps more is damaged
    fraction: int  # PCAP: fractions of a second below this are plausible
    nanoseconds: int  # PCAP: in a fraction
    part: int  # bytes that a member parses at once
    version: int  # of IP: 4 or 6


class Table(NamedTuple):
    """The interfaces of the section; a PCAP file has one."""

    link: Array  # int64: kind of link layer
    snaplen: Array  # int64: 0 for none
    multiply: Array  # uint64: a time unit has multiply / divide nanoseconds, or, where
    divide: Array  # uint64:  divide is 0, multiply / 2^shift
    shift: Array  # int64
    offset: Array  # int64: nanoseconds to add


class Output(NamedTuple):
    """Where packets go; the fields of Packets.

    The addresses of IPv6 do not fit: `src` and `dst` get the lower and upper half of the place of
    the header in the bytes.
    """

    src: Array
    dst: Array
    time: Array
    length: Array
    protocol: Array


@device
def _take(
    data: Array, start: int, captured: int, link: int, form: Format, out: Output, at: int
) -> int:
    """Write the packet of a frame to position `at`; returns -1 - reason where it holds none."""
    compat = form.compat
    header = header_at(data, start, captured, link, compat, form.version)
    if header < 0:
        return header
    if form.version == 6:
        out.src[at] = np.uint32(header & 0xFFFFFFFF)
        out.dst[at] = np.uint32(header >> 32)
        out.protocol[at] = data[header + 6]
        return header
    src = address_at(data, header + 12, compat)
    dst = address_at(data, header + 16, compat)
    if compat and (src == EVERYONE or dst == EVERYONE):
        return -1 - BROADCAST
    out.src[at] = src
    out.dst[at] = dst
    out.protocol[at] = data[header + 9]
    return header


@device
def parse_records(
    data: Array, begin: int, stop: int, end: int, form: Format, table: Table,
    out: Output, at: int, row: Array,
) -> None:  # fmt: skip
    """The records of PCAP that begin in begin..stop; data is there up to `end`."""
    position, first, status = begin, at, GOES_ON
    link, swapped = table.link[0], form.swapped
    usual = not swapped and not form.compat and form.version == 4
    while position < stop:
        if usual and link == RAW:
            position, at = _usual_raw(data, position, stop, end, form, out, at)
        elif usual and link == ETHERNET:
            position, at = _usual_ethernet(data, position, stop, end, form, out, at)
        if position >= stop:
            break
        if position + RECORD_HEADER > end:
            status = MORE
            break
        captured = np.int64(number_at(data, position + 8, swapped))
        if captured > form.longest:
            status = BAD_LENGTH
            break
        following = position + RECORD_HEADER + captured
        if following > end:
            status = MORE
            break
        found = _take(data, position + RECORD_HEADER, captured, link, form, out, at)
        if found >= 0:
            seconds = np.int64(number_at(data, position, swapped))
            fraction = np.int64(number_at(data, position + 4, swapped))
            out.time[at] = seconds * np.int64(1_000_000_000) + fraction * form.nanoseconds
            out.length[at] = number_at(data, position + 12, swapped)
            at += 1
        else:
            row[SKIPPED - 1 - found] += 1
        position = following
    row[BEGIN], row[END], row[COUNT], row[STATUS] = begin, position, at - first, status


@expanded
def _usual_raw(
    data: Array, position: int, stop: int, end: int, form: Format, out: Output, at: int
) -> Any:  # fmt: skip
    """Records without a link layer, up to the first that is not an IPv4 packet all there.

    Returns where that record begins, and the place for its packet.  `parse_records` would find the
    same, with more comparisons; nearly all records of nearly all captures are of this kind.
    """
    last = min(stop - 1, end - RECORD_HEADER - IPV4_HEADER)
    place, most = np.uint64(at), np.uint64(form.longest - IPV4_HEADER)
    while position <= last:
        captured = np.uint64(word_at(data, position + 8))
        following = position + RECORD_HEADER + np.int64(captured)
        version = big_at(data, position + RECORD_HEADER) >> np.uint32(28)
        # one comparison: what is less than 20 becomes a very large number
        if captured - np.uint64(IPV4_HEADER) > most or following > end or version != 4:
            break
        _write(data, position, position + RECORD_HEADER, form.nanoseconds, out, place)
        place += np.uint64(1)
        position = following
    return position, np.int64(place)


@expanded
def _usual_ethernet(
    data: Array, position: int, stop: int, end: int, form: Format, out: Output, at: int
) -> Any:  # fmt: skip
    """As `_usual_raw`, for Ethernet frames without a tag or with one of the usual kind."""
    least = _TAGGED_HEAD + IPV4_HEADER
    last = min(stop - 1, end - RECORD_HEADER - least)
    place, most = np.uint64(at), np.uint64(form.longest - least)
    while position <= last:
        captured = np.uint64(word_at(data, position + 8))
        following = position + RECORD_HEADER + np.int64(captured)
        if captured - np.uint64(least) > most or following > end:
            break
        kind = big_at(data, position + (RECORD_HEADER + _TYPE_AT)) >> np.uint32(16)
        tagged = opaque(np.int64(kind == TYPE_VLAN))  # a branch would often be guessed wrong
        header = position + (RECORD_HEADER + _ETHERNET_HEAD) + 4 * tagged
        if big_at(data, header - 2) >> np.uint32(12) != _TYPE_AND_VERSION:
            break
        _write(data, position, header, form.nanoseconds, out, place)
        place += np.uint64(1)
        position = following
    return position, np.int64(place)


@expanded
def _write(
    data: Array, position: int, header: int, nanoseconds: int, out: Output, place: np.uint64
) -> None:
    """The packet of a record whose numbers are in the order of this machine."""
    seconds, fraction = np.int64(word_at(data, position)), np.int64(word_at(data, position + 4))
    out.src[place] = big_at(data, header + 12)
    out.dst[place] = big_at(data, header + 16)
    out.time[place] = seconds * np.int64(1_000_000_000) + fraction * nanoseconds
    out.length[place] = word_at(data, position + 12)
    out.protocol[place] = data[np.uint64(header + 9)]


@device
def parse_blocks(
    data: Array, begin: int, stop: int, end: int, form: Format, table: Table,
    out: Output, at: int, row: Array,
) -> None:  # fmt: skip
    """The blocks of PCAPNG that begin in begin..stop, up to one that changes the interfaces."""
    position, first, status = begin, at, GOES_ON
    swapped = form.swapped
    while position < stop:
        if position + _LEAST_BLOCK > end:
            status = MORE
            break
        kind = np.int64(number_at(data, position, swapped))
        if kind == BLOCK_SECTION:  # the same in both orders; its length may be in the other one
            status = SECTION
            break
        total = np.int64(number_at(data, position + 4, swapped))
        if total < _LEAST_BLOCK or total & 3 != 0 or total > MOST_BYTES:
            status = BAD_LENGTH
            break
        if position + total > end:
            status = MORE
            break
        if np.int64(number_at(data, position + total - _TAIL, swapped)) != total:
            status = BAD_TRAILER
            break
        if kind == BLOCK_INTERFACE:
            status = INTERFACE
            break
        if kind in (_ENHANCED, _OBSOLETE, _SIMPLE):
            status, interface, captured, head = _frame(data, position, total, kind, form, table)
            if status != GOES_ON:
                break
            link = table.link[interface]
            found = _take(data, position + head, captured, link, form, out, at)
            if found >= 0:
                if kind == _SIMPLE:
                    out.time[at] = 0
                    out.length[at] = number_at(data, position + 8, swapped)
                else:
                    out.time[at] = _time(data, position + 12, swapped, table, interface)
                    out.length[at] = number_at(data, position + 24, swapped)
                at += 1
            else:
                row[SKIPPED - 1 - found] += 1
        position += total
    row[BEGIN], row[END], row[COUNT], row[STATUS] = begin, position, at - first, status


@device
def _frame(data: Array, position: int, total: int, kind: int, form: Format, table: Table) -> Any:
    """(status, interface, bytes captured, where they begin) of a block that holds a packet."""
    swapped, interfaces = form.swapped, table.link.size
    head = _SIMPLE_HEAD if kind == _SIMPLE else _PACKET_HEAD
    room = total - head - _TAIL
    if room < 0:
        return BAD_BLOCK, 0, 0, head
    interface = 0
    if kind == _ENHANCED:
        interface = np.int64(number_at(data, position + 8, swapped))
    elif kind == _OBSOLETE:
        interface = half_at(data, position + 8, swapped)
    if interface >= interfaces:
        return BAD_INTERFACE, interface, 0, head
    if kind == _SIMPLE:
        captured = np.int64(number_at(data, position + 8, swapped))
        snaplen = table.snaplen[0]
        if 0 < snaplen < captured:
            captured = snaplen
    else:
        captured = np.int64(number_at(data, position + 20, swapped))
    if captured > room:
        return BAD_CAPTURED, interface, 0, head
    return GOES_ON, interface, captured, head


@device
def _time(data: Array, position: int, swapped: bool, table: Table, interface: int) -> np.int64:
    """Nanoseconds since 1970 of a time in the units of an interface."""
    units = (np.uint64(number_at(data, position, swapped)) << _HALF) | np.uint64(
        number_at(data, position + 4, swapped)
    )
    multiply, divide = table.multiply[interface], table.divide[interface]
    if divide > 1:
        high, low = np.uint64(0), units // divide
    else:
        high, low = _product(units, multiply)
        if divide == 0:
            high, low = _shifted(high, low, table.shift[interface])
    if high != 0 or low > np.uint64(LATEST):
        low = np.uint64(LATEST)
    time, offset = np.int64(low), table.offset[interface]
    if offset > 0 and time > LATEST - offset:
        return LATEST
    return time + offset


@device
def _product(a: np.uint64, b: np.uint64) -> Any:
    """(upper, lower) 64 bits of a * b."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    low, middle, other = a_low * b_low, a_high * b_low, a_low * b_high
    carry = (low >> _HALF) + (middle & _LOW) + (other & _LOW)
    high = a_high * b_high + (middle >> _HALF) + (other >> _HALF) + (carry >> _HALF)
    return high, (carry << _HALF) | (low & _LOW)


@device
def _shifted(high: np.uint64, low: np.uint64, shift: int) -> Any:
    """The 128 bits (high, low) moved to the right by 0 to 127."""
    if shift == 0:
        return high, low
    if shift >= 64:
        return np.uint64(0), high >> np.uint64(shift - 64)
    down = np.uint64(shift)
    return high >> down, (low >> down) | (high << np.uint64(64 - shift))


@device
def guess_record(
    data: Array, begin: int, stop: int, end: int, form: Format, link: int, near: int
) -> int:  # fmt: skip
    """The first place in begin..stop from which records look right; -1 for none.

    `near` is the second of an earlier record.  Zeros and constant fields of equal packets look
    like records too, but have no bytes, times far from those of the capture, or unknown frames.
    """
    for place in range(begin, min(stop, end - RECORD_HEADER)):
        if _records_from(data, place, end, form, link, near):
            return place
    return -1


@device
def second_at(data: Array, position: int, end: int, form: Format) -> int:
    """The second of the record that begins at `position`; 0 where it is cut off."""
    if position + RECORD_HEADER > end:
        return np.int64(0)
    return np.int64(number_at(data, position, form.swapped))


@device
def _records_from(data: Array, first: int, end: int, form: Format, link: int, near: int) -> bool:
    position, before, seen, known = first, near, 0, 0
    while seen < IN_A_ROW and position < end:
        if position + RECORD_HEADER > end:
            return False
        captured = np.int64(number_at(data, position + 8, form.swapped))
        if captured > form.longest or captured == 0:
            return False
        original = np.int64(number_at(data, position + 12, form.swapped))
        if captured > original and captured != form.snaplen:
            return False
        if np.int64(number_at(data, position + 4, form.swapped)) >= form.fraction:
            return False
        seconds = np.int64(number_at(data, position, form.swapped))
        if abs(seconds - before) > GAP_SECONDS:
            return False
        following = position + RECORD_HEADER + captured
        if following > end:
            return False
        found = header_at(data, position + RECORD_HEADER, captured, link, form.compat, form.version)
        known += found >= 0 or found == -1 - FAMILY or found == -1 - ARP
        position, before, seen = following, seconds, seen + 1
    return 0 < seen <= 2 * known


@device
def guess_block(data: Array, begin: int, stop: int, end: int, form: Format) -> int:
    """As `guess_record`, for blocks (multiples of 4 from `begin` on): both ends hold the length."""
    for place in range(begin, min(stop, end - _LEAST_BLOCK), 4):
        if _blocks_from(data, place, end, form):
            return place
    return -1


@device
def _blocks_from(data: Array, position: int, end: int, form: Format) -> bool:
    first = position
    for _ in range(IN_A_ROW):
        if position == end:
            return position > first
        if position + _LEAST_BLOCK > end:
            return False
        total = np.int64(number_at(data, position + 4, form.swapped))
        if total < _LEAST_BLOCK or total & 3 != 0 or position + total > end:
            return False
        if np.int64(number_at(data, position + total - _TAIL, form.swapped)) != total:
            return False
        position += total
    return True

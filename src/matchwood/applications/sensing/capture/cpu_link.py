"""From the bytes of a frame to its IPv4 header, for each kind of link layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.sensing.capture.cpu_bytes import big_at, reversed_word, short_at
from matchwood.engines.cpu import device

Array = np.ndarray[Any, Any]

# Kinds of link layer
UNKNOWN, RAW, ETHERNET, SLL, SLL2, NULL, LOOP = range(7)

# Why a frame is not counted
IPV6, ARP, OTHER, SHORT, BROADCAST = range(5)
REASONS = 5

IPV4_HEADER = 20  # bytes of it that must have been captured
TYPE_IPV4, _TYPE_ARP, _TYPE_IPV6 = 0x0800, 0x0806, 0x86DD
TYPE_VLAN, _TYPE_SERVICE, _TYPE_OLD, _TYPE_OLDER = 0x8100, 0x88A8, 0x9100, 0x9200
_TAG = 4  # bytes of a VLAN tag
_FAMILY = 4  # bytes of the word before packets of the links NULL and LOOP
_AF_INET = 2
EVERYONE = np.uint32(0xFFFFFFFF)  # 255.255.255.255


@device
def _no(reason: int) -> int:
    return -1 - reason


@device
def header_at(data: Array, start: int, captured: int, link: int, compat: bool) -> int:
    """Where the IPv4 header of a frame begins; -1 - reason where the frame is not counted."""
    if link == RAW:
        if captured < 1:
            return _no(SHORT)
        version = data[start] >> 4
        if version != 4:
            return _no(IPV6) if version == 6 else _no(OTHER)
        return start if captured >= IPV4_HEADER else _no(SHORT)
    if link == ETHERNET:
        at = _behind_type(data, start, captured, 12, 14, compat)
    elif link == SLL:
        at = _behind_type(data, start, captured, 14, 16, compat)
    elif link == SLL2:
        at = _behind_type(data, start, captured, 0, 20, compat)
    elif link in (NULL, LOOP):
        at = _behind_family(data, start, captured, link == NULL)
    else:
        return _no(OTHER)
    if at < 0:
        return at
    left = captured - (at - start)
    if left < 1:
        return _no(SHORT)
    if data[at] >> 4 != 4:
        return _no(OTHER)
    return at if left >= IPV4_HEADER else _no(SHORT)


@device
def _is_tag(kind: int, compat: bool) -> bool:
    if kind == TYPE_VLAN:
        return True
    if compat:
        return False
    return kind in (_TYPE_SERVICE, _TYPE_OLD, _TYPE_OLDER)


@device
def _behind_type(
    data: Array, start: int, captured: int, type_at: int, head: int, compat: bool
) -> int:
    """Behind a link header that says what follows, and behind any tags of virtual networks."""
    if captured < head:
        return _no(SHORT)
    kind, at = short_at(data, start + type_at), start + head
    if kind == TYPE_IPV4:
        return at
    while _is_tag(kind, compat):
        if captured < at - start + _TAG:
            return _no(SHORT)
        kind = short_at(data, at + 2)
        at += _TAG
        if compat:  # one tag, no more
            break
    if kind == TYPE_IPV4:
        return at
    if kind == _TYPE_IPV6:
        return _no(IPV6)
    return _no(ARP) if kind == _TYPE_ARP else _no(OTHER)


@device
def _behind_family(data: Array, start: int, captured: int, either: bool) -> int:
    """Behind a word that names the family of addresses.

    The link NULL has it in the order of the machine that captured, so both orders are read.
    """
    if captured < _FAMILY:
        return _no(SHORT)
    family = big_at(data, start)
    if either and family > np.uint32(0xFFFF):
        family = reversed_word(family)
    if family == _AF_INET:
        return start + _FAMILY
    # AF_INET6 of Linux, of NetBSD and OpenBSD, of FreeBSD, of macOS
    if family == 10 or family == 24 or family == 28 or family == 30:
        return _no(IPV6)
    return _no(OTHER)


@device
def address_at(data: Array, position: int, compat: bool) -> np.uint32:
    """An address as a number; compat reads its bytes the other way round."""
    value = big_at(data, position)
    return reversed_word(value) if compat else value

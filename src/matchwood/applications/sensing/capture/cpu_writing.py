"""Packets to the bytes of records, on a team of threads: each writes its own stretch."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.sensing.capture.cpu_records import Output
from matchwood.engines.cpu import Team, device, interrupted, kernel, share

Array = np.ndarray[Any, Any]

HEAD_PCAP, HEAD_BLOCK, TAIL_BLOCK, HEAD_IPV4 = 16, 28, 4, 20  # bytes
ENHANCED = 6  # type of the block
_VERSION, _HOPS = 0x45, 64  # version 4, a header of five words; time to live
_LONGEST = 65_535  # the field for the length of an IPv4 packet has two bytes
_BILLION = 1_000_000_000


@device
def _put(out: Array, at: int, value: int, big: bool) -> None:
    """A number of four bytes in the order asked for."""
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

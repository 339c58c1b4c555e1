"""What a packet leaves behind: five numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines

Array = np.ndarray[Any, Any]


class Packets(NamedTuple):
    """IPv4 packets in the order of the capture, one array for each field.

    Attributes
    ----------
    src, dst : ndarray of uint32
        Addresses as numbers: 10.0.0.1 is 167772161.  With ``compat=True`` their bytes are read the
        other way round, as pcap2grb does: 16777226.
    time : ndarray of int64
        Nanoseconds since 1970-01-01 UTC; 0 where the file has none (simple packet blocks).
    length : ndarray of uint32
        Bytes that the packet had on the wire.
    protocol : ndarray of uint8
        As in the IPv4 header: 1 ICMP, 6 TCP, 17 UDP.
    """

    src: Array
    dst: Array
    time: Array
    length: Array
    protocol: Array

    @classmethod
    def empty(cls, count: int) -> Packets:
        """Room for so many packets; the values are whatever the memory held."""
        count = arguments.count("Packets.empty", "count", count)
        try:
            return cls(
                np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.int64),
                np.empty(count, np.uint32), np.empty(count, np.uint8),
            )  # fmt: skip
        except (MemoryError, ValueError) as error:  # NumPy's words for more than 2^63 bytes
            raise engines.out_of_memory(MemoryError(f"{count} packets")) from error

    def part(self, start: int, stop: int) -> Packets:
        """The packets start..stop; nothing is copied."""
        for name, place in (("start", start), ("stop", stop)):
            arguments.integer("Packets.part", name, place)
        return Packets(*(field[start:stop] for field in self))

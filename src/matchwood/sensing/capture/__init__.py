"""Captures of network traffic: PCAP and PCAPNG to arrays of IPv4 packets, and back."""

from __future__ import annotations

from typing import Any

from matchwood.arguments import count, flag
from matchwood.io.limits import Limits
from matchwood.sensing.capture.reading import Capture
from matchwood.sensing.packets import Packets

__all__ = ["Capture", "Packets", "iter_capture", "read_capture"]


def read_capture(
    path: Any, *, compat: bool = False, threads: int | None = None, most_bytes: int | None = None
) -> Packets:
    """All IPv4 packets of a capture."""
    return _opened("read_capture", path, 1 << 20, compat, threads, most_bytes).rest()


def iter_capture(
    path: Any,
    *,
    packets: int = 2**20,
    compat: bool = False,
    threads: int | None = None,
    most_bytes: int | None = None,
) -> Capture:
    """The IPv4 packets of a capture, block after block."""
    return _opened("iter_capture", path, packets, compat, threads, most_bytes)


def _opened(
    caller: str, path: Any, packets: int, compat: bool, threads: int | None, most: int | None
) -> Capture:
    packets = count(caller, "packets", packets, 1)
    compat = flag(caller, "compat", compat)
    return Capture(caller, path, packets, compat, threads, Limits(bytes=most).checked(caller))

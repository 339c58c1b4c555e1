"""Captures of network traffic: PCAP and PCAPNG to arrays of IPv4 packets, and back.

Read on in reference.py (what a capture holds), cpu/__init__.py (how threads share a file),
cpu/records.py (the two formats), sources.py (files, pipes, compressed files), reading.py (the
iterator), cpu/writing.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.sensing.capture.cpu.writing import Layout, write
from matchwood.applications.sensing.capture.reading import Capture, Options
from matchwood.applications.sensing.packets import Packets
from matchwood.arguments import at_most, count, flag, one_of, vector
from matchwood.arguments import path as file_name
from matchwood.io.options import Limits, PathLike

__all__ = ["Capture", "Packets", "iter_capture", "read_capture", "write_capture"]

FORMATS = ("pcap", "pcapng")
ORDERS = ("little", "big")
LONGEST = 1 << 62  # packets of a block
KINDS = {"src": "uint32", "dst": "uint32", "time": "int64", "length": "uint32", "protocol": "uint8"}
LATEST_SECOND = 2**32 - 1  # seconds since 1970, the latest that PCAP can hold
BILLION = 10**9
AT_ONCE = 1 << 16  # times checked before Ctrl-C takes effect


def read_capture(
    path: Any, *, compat: bool = False, threads: int | None = None, most_bytes: int | None = None
) -> Packets:
    """All IPv4 packets of a capture.

    A packet counts when the 20 bytes of its IPv4 header were captured and its version is 4.  All
    other frames are skipped; `iter_capture` counts them by reason.

    Parameters
    ----------
    path : str, PathLike or binary stream
        A file in PCAP (four magics: both byte orders, micro- or nanoseconds) or PCAPNG (sections
        that change byte order, several interfaces, enhanced, simple and obsolete packet blocks),
        plain or compressed by gzip, bzip2, xz or zstd, recognised by its first bytes; a pipe; "-"
        for standard input; or an object with `read`.
    compat : bool
        Do what pcap2grb of the Graph Challenge does: the bytes of addresses are read in
        little-endian order, one VLAN tag at most, link layers 1, 12 and 101 alone, and packets
        from or to 255.255.255.255 are dropped.
    threads : int or None
        Threads that parse; a plain file gains most.
    most_bytes : int or None
        Bytes that compressed data may unpack to; None takes 200 for each compressed byte, and
        100 MB in any case.

    Returns
    -------
    Packets
        Named tuple of `src`, `dst` (uint32), `time` (int64, nanoseconds), `length` (uint32) and
        `protocol` (uint8).

    Raises
    ------
    FileFormatError
        With file and byte offset: no capture, a damaged length, an unknown interface, compressed
        data that is damaged or unpacks to too much.  A file that merely ends inside a record, or
        early in its compressed data, is read up to there, with a warning.
    TypeError, ValueError, OSError
        If an argument is of the wrong kind, or the file cannot be read.

    Notes
    -----
    The same packets at any number of threads.  Link layers: 0 and 108 (BSD loopback), 1 (Ethernet
    with any number of VLAN tags, MPLS labels or PPPoE), 12, 14, 101, 228 and 229 (no link layer),
    105 and 127 (802.11, also with a radiotap header), 113 and 276 (Linux cooked).  A warning names
    others.
    A plain file may grow while it is read: what it had at first counts.  One that gets shorter, or
    is written to, is refused.  Times beyond the year 2262 are given as the largest int64.  The
    formats: [1]_, [2]_.

    References
    ----------
    .. [1] G. Harris, M. Richardson. PCAP Capture File Format. draft-ietf-opsawg-pcap.
    .. [2] M. Tuexen et al. PCAP Next Generation Capture File Format. draft-ietf-opsawg-pcapng.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.sensing import Packets, read_capture, write_capture
    >>> src = np.array([167772161, 167772162], np.uint32)  # 10.0.0.1 and 10.0.0.2
    >>> sent = Packets(src, src[::-1].copy(), np.array([0, 5000]), src * 0 + 60,
    ...                np.array([6, 17], np.uint8))
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_capture(folder / "two.pcap.gz", sent)
    >>> read_capture(folder / "two.pcap.gz").dst.tolist()
    [167772162, 167772161]
    """
    return _opened("read_capture", path, 1, compat, threads, most_bytes).rest()


def iter_capture(
    path: Any,
    *,
    packets: int = 2**20,
    version: int = 4,
    compat: bool = False,
    threads: int | None = None,
    most_bytes: int | None = None,
) -> Capture:
    """The packets of a capture, block after block, in bounded memory.

    Parameters
    ----------
    path, compat, threads, most_bytes
        As for `read_capture`.
    packets : int
        Packets in a block; the last one has fewer.
    version : {4, 6}
        Of IP.  Addresses of IPv6 have 128 bits, so `src` and `dst` are numbers of the table
        ``capture.addresses``, which grows while packets are read.

    Returns
    -------
    Capture
        An iterator of `Packets`.  Its attributes `packets`, `bytes` and `skipped` (a dict from
        reason to count) say at any time what was read, `rest()` gives all that is left.  If you
        stop before the end, close it or use it in a ``with`` block.

    Raises
    ------
    FileFormatError
        As for `read_capture`, here or by ``next``; all packets before the damage are given first.

    Notes
    -----
    Memory: 21 bytes a packet of a block, and at most 2 MiB a thread beside it.  A plain file has
    two buffers of 16 MiB, or of 4 MiB a thread: one is read while the other is parsed.  A
    compressed file or a pipe has one of 8 MiB.  They grow where one record is larger.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.sensing import Packets, iter_capture, write_capture
    >>> src = np.arange(5, dtype=np.uint32)
    >>> sent = Packets(src, src + 1, np.arange(5), src * 0 + 60, np.zeros(5, np.uint8))
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_capture(folder / "five.pcapng", sent)
    >>> with iter_capture(folder / "five.pcapng", packets=2) as capture:
    ...     print([block.src.tolist() for block in capture], capture.skipped)
    [[0, 1], [2, 3], [4]] {'IPv6': 0, 'ARP': 0, 'other': 0, 'short': 0, 'cut off': 0}
    """
    return _opened("iter_capture", path, packets, compat, threads, most_bytes, version)


def _opened(
    caller: str, path: Any, packets: int, compat: bool, threads: int | None, most: int | None,
    version: int = 4,
) -> Capture:  # fmt: skip
    packets = count(caller, "packets", packets, 1)
    compat = flag(caller, "compat", compat)
    at_most(caller, "packets", packets, LONGEST, "packets of a block")
    if count(caller, "version", version) not in (4, 6):
        raise ValueError(f"{caller}: version must be 4 or 6, got {version}")
    if compat and version == 6:
        raise ValueError(f"{caller}: compat reads IPv4, got version 6")
    limits = Limits(bytes=most).checked(caller)
    return Capture(caller, path, packets, Options(compat, version), threads, limits)


def write_capture(
    path: PathLike,
    packets: Packets,
    *,
    format: str | None = None,
    captured: int = 40,
    nanoseconds: bool | None = None,
    order: str = "little",
    threads: int | None = None,
) -> None:
    """Write packets as a capture without a link layer (type 101).

    Each record has the IPv4 header of its packet, without a checksum, followed by zeros.
    `read_capture` gives the same packets back.

    Parameters
    ----------
    path : str or PathLike
        The file; compressed if its name ends in .gz, .bz2, .xz or .zst.
    packets : Packets
    format : {None, "pcap", "pcapng"}
        None goes by the name: PCAPNG where it has the suffix .pcapng or .ntar.
    captured : int
        Bytes of a packet that are written, from 20 to 65535; fewer where the packet is shorter.
        40 gives the 56-byte records of the Graph Challenge.
    nanoseconds : bool or None
        Of PCAP: whether times have nanoseconds or microseconds, which cuts off the rest.  None
        takes nanoseconds only where some time needs them.
    order : {"little", "big"}
        Of the bytes of a number.
    threads : int or None

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind, or a time does not fit the format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.sensing import Packets, write_capture
    >>> src = np.arange(5, dtype=np.uint32)
    >>> sent = Packets(src, src + 1, np.arange(5), src * 0 + 60, np.zeros(5, np.uint8))
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_capture(folder / "five.pcap", sent)
    >>> (folder / "five.pcap").stat().st_size == 24 + 5 * 56
    True
    """
    caller = "write_capture"
    path = file_name(caller, "path", path)
    packets = _checked_packets(caller, packets)
    if format is None:
        name = path.lower()
        format = "pcapng" if ".pcapng" in name or ".ntar" in name else "pcap"
    blocks = one_of(caller, "format", format, FORMATS) == "pcapng"
    captured = count(caller, "captured", captured, 20, 65_535)
    big = one_of(caller, "order", order, ORDERS) == "big"
    _require_times(caller, packets.time, blocks)
    if nanoseconds is None:
        fine = _has_nanoseconds(packets.time)
    else:
        fine = flag(caller, "nanoseconds", nanoseconds)
    write(path, packets, Layout(blocks, big, fine, captured), threads)


def _checked_packets(caller: str, packets: Any) -> Packets:
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


def _require_times(caller: str, time: Any, blocks: bool) -> None:
    """Raise ValueError for a time that the format cannot hold."""
    if not time.size:
        return
    least, most = int(time.min()), int(time.max())
    if least < 0 or (not blocks and most // BILLION > LATEST_SECOND):
        last = "" if blocks else f" and {LATEST_SECOND} seconds"
        worst = least if least < 0 else most
        raise ValueError(f"{caller}: packets.time must lie between 0{last}, got {worst}")


def _has_nanoseconds(time: Any) -> bool:
    """Whether some time is no whole number of microseconds."""
    starts = range(0, time.size, AT_ONCE)
    return any(bool((time[start : start + AT_ONCE] % 1000).any()) for start in starts)

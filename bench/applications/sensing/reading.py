"""Captures to arrays, against dpkt: raw 56-byte records, and Ethernet frames with VLAN tags.

dpkt takes minutes for large files, so it is compared on small ones; threads on large ones.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness
from matchwood import generators
from matchwood.applications.sensing.capture.check import check_capture
from matchwood.sensing import Packets, read_capture, write_capture

MILLION = 1_000_000
LENGTHS = (64, 128, 576, 600, 1500)  # bytes of Ethernet frames: 600 on average
SHARES = (0.25, 0.10, 0.20, 0.23, 0.22)
PIECE = 1 << 23  # bytes
TAGGED = 0.1  # of the frames have a VLAN tag


def raw_records(path: Path, n: int) -> None:
    """The layout of the public data: every record has 16 + 40 bytes."""
    src, dst = generators.packets(n, rng=1)
    time_ns = np.arange(n, dtype=np.int64) * 1000
    full = np.full(n, 40, np.uint32)
    write_capture(path, Packets(src, dst, time_ns, full, np.full(n, 6, np.uint8)))


def ethernet_mix(path: Path, n: int) -> None:
    """Frames of several lengths, one in ten with a VLAN tag.

    Written in large pieces: so the file lies in the page cache in large pieces too, as one does
    that was copied, or read from disk.  Small writes leave pages of 4 KiB, and to map those takes
    longer than to read the packets.
    """
    rng = np.random.default_rng(2)
    src, dst = generators.packets(n, "zipf", rng=1)
    lengths = rng.choice(LENGTHS, n, p=SHARES).tolist()
    tagged = (rng.random(n) < TAGGED).tolist()
    payload = rng.bytes(max(LENGTHS))
    with open(path, "wb", buffering=PIECE) as stream:
        stream.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for k in range(n):
            head = bytes(12) + (b"\x81\0\0\5" if tagged[k] else b"") + b"\x08\0"
            inner = lengths[k] - len(head)
            pair = (int(src[k]), int(dst[k]))
            ip = struct.pack(">BBHHHBBHII", 0x45, 0, inner, 0, 0, 64, 17, 0, *pair)
            udp = struct.pack(">HHHH", 1, 2, inner - 20, 0)
            frame = (head + ip + udp + payload)[: lengths[k]]
            fields = (k // MILLION, k % MILLION, len(frame), len(frame))
            stream.write(struct.pack("<IIII", *fields) + frame)


def dpkt_raw(path: Path) -> Any:
    """Raw buffers and slicing."""
    import dpkt

    found = []
    with open(path, "rb") as stream:
        for _, buffer in dpkt.pcap.Reader(stream):
            found.append((buffer[12:16], buffer[16:20]))
    return found


def dpkt_objects(path: Path) -> Any:
    """Ethernet and IP objects."""
    import dpkt

    found = []
    with open(path, "rb") as stream:
        for _, buffer in dpkt.pcap.Reader(stream):
            ip = dpkt.ethernet.Ethernet(buffer).data
            if isinstance(ip, dpkt.ip.IP):
                found.append((ip.src, ip.dst))
    return found


def compare(title: str, path: Path, peer: Callable[[Path], Any], bar: float) -> harness.Result:
    """One thread against dpkt, on the whole file both."""
    theirs = peer(path)
    words = np.frombuffer(b"".join(a + b for a, b in theirs), ">u4").reshape(-1, 2)

    def verify(who: str, answer: Any) -> None:
        if who != "dpkt":
            assert np.array_equal(answer.src, words[:, 0])
            assert np.array_equal(answer.dst, words[:, 1])

    return harness.compare(
        title,
        {
            "matchwood, 1 thread": lambda: read_capture(path, threads=1),
            "dpkt": lambda: peer(path),
        },
        verify=verify,
        baseline="dpkt",
        bars={"matchwood, 1 thread": bar},
    )


def scaling(title: str, path: Path) -> harness.Result:
    """Two threads against one."""
    wanted = read_capture(path, threads=1)

    def verify(who: str, answer: Any) -> None:
        for one, other in zip(answer, wanted, strict=True):
            assert np.array_equal(one, other)

    return harness.compare(
        f"{title}, threads",
        {
            "1 thread": lambda: read_capture(path, threads=1),
            "2 threads": lambda: read_capture(path, threads=2),
        },
        verify=verify,
        baseline="1 thread",
        bars={"2 threads": 1.6},
    )


def run(exponent: int = 22) -> list[harness.Result]:
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.pcap")
        ethernet_mix(path, 3000)
        check_capture(path, read_capture(path, threads=2))
        for title, make, peer, less, bar in (
            ("raw 56-byte records", raw_records, dpkt_raw, 4, 100.0),
            ("Ethernet, 600 bytes, VLAN", ethernet_mix, dpkt_objects, 6, 200.0),
        ):
            try:
                make(path, 1 << (exponent - less))
                results.append(compare(title, path, peer, bar))
            except ImportError:
                print("dpkt is not installed: nothing to compare with")
            make(path, 1 << (exponent - (3 if make is ethernet_mix else 0)))
            results.append(scaling(title, path))
    return results


if __name__ == "__main__":
    harness.main(run)

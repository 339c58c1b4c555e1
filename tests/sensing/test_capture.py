"""Captures: every format, link layer and source gives the packets of the definition."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import itertools
import lzma
import os
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

from matchwood import generators
from matchwood.applications.sensing.capture import reading, reference
from matchwood.applications.sensing.capture.check import check_capture
from matchwood.applications.sensing.capture.cpu import records as cpu_records
from matchwood.errors import CheckFailed, FileFormatError
from matchwood.sensing import AddressTable, Packets, iter_capture, read_capture, write_capture
from sensing import frames
from support import THREADS, from_python, same

DATA = Path(os.environ.get("MATCHWOOD_DATA", Path(__file__).parents[3] / "shared" / "data"))
EXAMPLE = frames.pcap(frames.example())
pytestmark = [pytest.mark.filterwarnings("ignore:.*(cut off|link type)")]
EIGHT, _ = reference.packets_of(EXAMPLE)


def read(content: bytes, **options):
    """(packets, skipped) of the bytes of a capture, by a stream."""
    capture = iter_capture(io.BytesIO(content), **options)
    blocks = list(capture)
    fields = [np.concatenate(field) for field in zip(*blocks, strict=True)] if blocks else []
    return (Packets(*fields) if fields else None), capture.skipped


def agrees(content: bytes, tmp_path: Path, **options) -> Packets:
    """The packets, after every source and thread count gave those of the reference."""
    wanted, skipped = reference.packets_of(content, **options)
    path = tmp_path / "capture"
    path.write_bytes(content)
    for threads in THREADS:
        found = read_capture(path, threads=threads, **options)
        assert same(tuple(found), tuple(wanted))
    for packets in (1, 3, 1000):
        capture = iter_capture(path, packets=packets, **options)
        blocks = list(capture)
        assert all(block.src.size == packets for block in blocks[:-1])
        assert capture.skipped == skipped
        assert capture.packets == wanted.src.size == sum(block.src.size for block in blocks)
    piped, counted = read(content, **options)
    assert counted == skipped
    assert piped is None or same(tuple(piped), tuple(wanted))
    check_capture(path, found, skipped, **options)
    return found


def test_the_worked_example(tmp_path):
    assert len(EXAMPLE) == 312
    assert hashlib.sha256(EXAMPLE).hexdigest() == frames.SHA256
    found = agrees(EXAMPLE, tmp_path)
    assert (found.src - frames.ADDRESS).tolist() == [a for a, _ in frames.PAIRS]
    assert (found.dst - frames.ADDRESS).tolist() == [b for _, b in frames.PAIRS]
    assert found.time.tolist() == [frames.SECOND * 10**9 + 1000 * k for k in range(8)]
    assert set(found.length.tolist()) == {20}
    assert set(found.protocol.tolist()) == {17}


def test_every_variant_of_the_example_is_the_same(tmp_path):
    wanted = agrees(EXAMPLE, tmp_path)
    packets = frames.example()
    for order, unit in itertools.product("<>", (1000, 1)):
        assert same(agrees(frames.pcap(packets, order=order, unit=unit), tmp_path), wanted)
    for order in "<>":
        assert same(agrees(frames.pcapng(packets, order), tmp_path), wanted)


def test_compat_reads_addresses_the_other_way_round(tmp_path):
    everyone = 2**32 - 1
    packets = [*frames.example(), frames.ipv4(everyone, 1), frames.ipv4(1, everyone)]
    found = agrees(frames.pcap(packets), tmp_path, compat=True)
    assert found.src[0] == 16777226
    assert found.src.size == 8
    assert read(frames.pcap(packets), compat=True)[1]["broadcast"] == 2
    tagged = [frames.ethernet(p, 0x8100) for p in packets[:2]]
    tagged += [frames.ethernet(packets[2], 0x8100, 0x8100), frames.ethernet(packets[3], 0x88A8)]
    assert agrees(frames.pcap(tagged, link=1), tmp_path, compat=True).src.size == 2
    assert agrees(frames.pcap(tagged, link=1), tmp_path).src.size == 4
    cooked = frames.pcap([bytes(14) + b"\x08\0" + packets[0]], link=113)
    assert agrees(cooked, tmp_path).src.size == 1
    assert agrees(cooked, tmp_path, compat=True).src.size == 0


@pytest.mark.parametrize(
    ("link", "head"),
    [
        (0, b"\2\0\0\0"), (0, b"\0\0\0\2"), (1, frames.ETHER + b"\x08\0"), (12, b""), (14, b""),
        (101, b""), (108, b"\0\0\0\2"), (113, bytes(14) + b"\x08\0"), (228, b""),
        (276, b"\x08\0" + bytes(18)),
    ],
)  # fmt: skip
def test_link_layers(link, head, tmp_path):
    found = agrees(frames.pcap([head + p for p in frames.example()], link=link), tmp_path)
    assert (found.src - frames.ADDRESS).tolist() == [a for a, _ in frames.PAIRS]
    every = [(head + frames.example()[0])[:size] for size in range(len(head) + 20)]
    assert agrees(frames.pcap(every, link=link), tmp_path).src.size == 0
    odd = [head + frames.ipv4(1, 2, first=first) for first in range(0, 256, 7)]
    agrees(frames.pcap(odd, link=link), tmp_path)


def wifi(first: int, flags: int, quality: int | None = None, kind: int = 0x0800) -> bytes:
    """The head of a frame of 802.11 up to the type."""
    head = bytes([first, flags]) + bytes(22 + (6 if flags & 3 == 3 else 0))
    if quality is not None:
        head += bytes([quality, 0]) + (bytes(4) if flags & 0x80 else b"")
    return head + b"\xaa\xaa\x03\0\0\0" + struct.pack(">H", kind)


@pytest.mark.parametrize(
    ("link", "head"),
    [
        (1, frames.ETHER + b"\x88\x47" + b"\0\0\0\7" + b"\0\0\1\7"),
        (1, frames.ETHER + b"\x81\0\0\5\x88\x48" + b"\0\0\1\7"),
        (1, frames.ETHER + b"\x88\x64" + b"\x11\0\0\1\0\x16\0\x21"),
        (105, wifi(0x08, 0x01)), (105, wifi(0x08, 0x03)), (105, wifi(0x88, 0x01, 0)),
        (105, wifi(0x88, 0x83, 0)), (127, b"\0\0\x0c\0" + bytes(8) + wifi(0x88, 0x02, 0)),
        (229, b""),
    ],
)  # fmt: skip
def test_packets_inside_of_others(link, head, tmp_path):
    """MPLS, PPPoE, radiotap and raw IPv6 were skipped as "other"."""
    old = [head + packet for packet in frames.example()]
    found = agrees(frames.pcap(old, link=link), tmp_path)
    assert found.src.size == 8
    every = [(head + frames.example()[0])[:size] for size in range(len(head) + 20)]
    assert agrees(frames.pcap(every, link=link), tmp_path).src.size == 0
    rng = np.random.default_rng(1)
    odd = []
    for _ in range(300):
        frame = bytearray(old[0])
        frame[rng.integers(0, len(frame))] = rng.integers(0, 256)
        odd.append(bytes(frame))
    agrees(frames.pcap(odd, link=link), tmp_path)
    six(frames.pcap(odd, link=link), tmp_path)


def radiotap(flags: int, *, timed: bool = False, words: int = 1) -> bytes:
    """A header with flags, and all else that its words of presence announce."""
    present = [0x80000000] * (words - 1) + [0]
    present[0] |= 2 | timed
    fields = struct.pack(f"<{words}I", *present)
    if timed:
        fields += bytes(-(4 + len(fields)) % 8) + bytes(8)
    fields += bytes([flags, 0])
    return struct.pack("<BBH", 0, 0, 4 + len(fields)) + fields


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("timed", "words"), [(False, 1), (True, 1), (True, 2), (False, 3)])
def test_padded_headers_of_80211(padded, timed, words, tmp_path):
    """Packets behind a header that was filled up to a word were skipped as "other"."""
    head, rest = wifi(0x88, 0x02, 0)[:26], wifi(0x88, 0x02, 0)[26:]
    front = radiotap(0x20 if padded else 0x10, timed=timed, words=words) + head
    front += (bytes(2) if padded else b"") + rest
    made = [front + packet for packet in frames.example()]
    assert agrees(frames.pcap(made, link=127), tmp_path).src.size == 8
    every = [made[0][:size] for size in range(len(front) + 20)]
    assert agrees(frames.pcap(every, link=127), tmp_path).src.size == 0
    rng = np.random.default_rng(2)
    odd = []
    for _ in range(300):
        frame = bytearray(made[0])
        frame[rng.integers(0, len(front))] = rng.integers(0, 256)
        odd.append(bytes(frame))
    agrees(frames.pcap(odd, link=127), tmp_path)


def ipv6(src: int, dst: int) -> bytes:
    words = b"".join(address.to_bytes(16, "big") for address in (src, dst))
    return struct.pack(">IHBB", 6 << 28, 0, 17, 64) + words


def six(content: bytes, tmp_path: Path) -> Packets:
    """The packets of IPv6, after every thread count and block size gave those of the reference."""
    known: dict[int, int] = {}
    wanted, skipped = reference.packets_of(content, version=6, known=known)
    path = tmp_path / "six"
    path.write_bytes(content)
    for threads in (1, 3):
        for packets in (3, 1000):
            capture = iter_capture(path, version=6, packets=packets, threads=threads)
            found = capture.rest()
            assert same(tuple(found), tuple(wanted))
            assert capture.skipped == skipped
            assert capture.addresses is not None
            check_capture(path, found, skipped, addresses=capture.addresses)
    return found


@pytest.mark.parametrize(
    ("link", "head"),
    [
        (101, b""), (229, b""), (1, frames.ETHER + b"\x86\xdd"), (0, b"\x1e\0\0\0"),
        (1, frames.ETHER + b"\x88\x47\0\0\1\7"), (105, wifi(0x08, 1, kind=0x86DD)),
    ],
)  # fmt: skip
def test_packets_of_ipv6(link, head, tmp_path):
    rng = np.random.default_rng(link)
    some = [0x20010DB8 << 96 | int(k) for k in rng.integers(0, 50, 400)]
    made = [head + ipv6(a, b) for a, b in zip(some, some[1:] + some[:1], strict=True)]
    made += [made[0][:size] for size in range(len(made[0]))]
    made += [head + packet for packet in frames.example()]
    found = six(frames.pcap(made, link=link), tmp_path)
    assert found.src.size == 400
    assert set(found.protocol.tolist()) == {17}
    assert agrees(frames.pcap(made, link=link), tmp_path).src.size in (0, 8)
    with pytest.raises(ValueError, match="version must be 4 or 6"):
        iter_capture(tmp_path / "six", version=5)
    with pytest.raises(ValueError, match="compat reads IPv4"):
        iter_capture(tmp_path / "six", version=6, compat=True)
    spoiled = AddressTable()
    with pytest.raises(CheckFailed, match="addresses must be those of the capture"):
        check_capture(tmp_path / "six", found, addresses=spoiled)


def test_unknown_link_types_are_named(tmp_path):
    content = frames.pcap(frames.example(), link=147)
    with pytest.warns(UserWarning, match="the link type 147 is not read"):
        _, skipped = read(content)
    assert skipped["other"] == 8


@pytest.mark.parametrize("link", [1, 113, 276])
def test_tags_and_types(link, tmp_path):
    packet = frames.ipv4(1, 2)
    head = {1: frames.ETHER, 113: bytes(14), 276: b""}[link]
    tail = bytes(18) if link == 276 else b""
    made = []
    for kind in (0x0800, 0x86DD, 0x0806, 0x8035, 0x05DC, 0x8847, 0xFFFF):
        made.append(head + struct.pack(">H", kind) + tail + packet)
        for tags in ([0x8100], [0x88A8, 0x8100], [0x9100, 0x9200, 0x8100]):
            kinds = [*tags, kind]
            words = b"".join(struct.pack(">HH", 7, after) for after in kinds[1:])
            made.append(head + struct.pack(">H", kinds[0]) + tail + words + packet)
    made += [made[2][:size] for size in range(len(made[2]))]
    found, skipped = reference.packets_of(frames.pcap(made, link=link))
    assert found.src.size == 4
    assert skipped["IPv6"] == 4
    assert skipped["ARP"] == 4
    agrees(frames.pcap(made, link=link), tmp_path)


@pytest.mark.parametrize("link", [1, 101])
def test_usual_and_unusual_frames_in_any_order(link, tmp_path):
    rng = np.random.default_rng(link)
    packets = [frames.ipv4(int(a), int(b)) + bytes(30) for a, b in rng.integers(0, 2**32, (9, 2))]
    packets += [frames.ipv4(1, 2, first=first) + bytes(30) for first in (0x65, 0x35, 0xF4)]
    made = packets
    if link == 1:
        tags = [(), (0x8100,), (0x8100, 0x8100), (0x88A8,)]
        made = [
            frames.ethernet(packet, *tag, kind=kind)
            for packet in packets for tag in tags for kind in (0x0800, 0x0800, 0x86DD)
        ]  # fmt: skip
    made = [*made, *(frame[:size] for frame in made[:8] for size in range(len(frame)))]
    mixed = [made[k] for k in rng.permutation(len(made))]
    for order in "<>":
        agrees(frames.pcap(mixed, link=link, order=order), tmp_path)
    whole = frames.pcap(made[:3], link=link)
    for size in range(24, len(whole)):  # a file that ends anywhere
        found = read_capture(io.BytesIO(whole[:size]))
        assert same(tuple(found), tuple(reference.packets_of(whole[:size])[0]))


def test_families_of_the_loopback(tmp_path):
    families = [2, 10, 24, 28, 30, 7, 0, 0x2000000, 0x1E000000]
    for link in (0, 108):
        made = [struct.pack(">I", f) + frames.ipv4(1, 2) for f in families]
        agrees(frames.pcap(made, link=link), tmp_path)


def test_unknown_links_are_counted(tmp_path):
    content = frames.pcap(frames.example(), link=147)
    assert agrees(content, tmp_path).src.size == 0
    assert read(content)[1]["other"] == 8


def test_longer_headers_and_lengths(tmp_path):
    packet = frames.ipv4(1, 2, first=0x4F) + bytes(60)
    found = agrees(frames.pcap([packet], lengths=[9000]), tmp_path)
    assert found.length.tolist() == [9000]


def test_sections_change_the_order_and_the_interfaces(tmp_path):
    packet = frames.ipv4(7, 8)
    content = b"".join(
        [
            frames.section("<"),
            frames.interface(101),
            frames.interface(1),
            frames.enhanced(packet, 5),
            frames.enhanced(frames.ethernet(packet, 0x8100), 6, which=1),
            frames.section(">"),
            frames.interface(1, order=">"),
            frames.enhanced(frames.ethernet(packet), 7, order=">"),
            frames.obsolete(frames.ethernet(packet), 8, drops=0x0102, order=">"),
            frames.simple(frames.ethernet(packet), order=">"),
            frames.block(4, b"names", ">"),
            frames.section("<"),
            frames.interface(113),
            frames.interface(101, snaplen=24),
            frames.obsolete(packet, 9, which=1, drops=0x0100),
            frames.block(0xBAD, b"custom", "<"),
            frames.enhanced(packet, 10, which=1),
        ]
    )
    found = agrees(content, tmp_path)
    assert found.time.tolist() == [5000, 6000, 7000, 8000, 0, 9000, 10000]


def test_a_simple_block_is_as_long_as_its_interface_allows(tmp_path):
    packet = frames.ipv4(7, 8) + bytes(100)
    content = frames.section() + frames.interface(101, snaplen=22)
    found = agrees(content + frames.simple(packet[:22], length=120), tmp_path)
    assert found.length.tolist() == [120]


RESOLUTIONS = [
    0,
    3,
    6,
    9,
    10,
    12,
    19,
    28,
    29,
    40,
    127,
    0x80,
    0x8A,
    0x94,
    0x9E,
    0xA2,
    0xC0,
    0xC1,
    0xFF,
]


@pytest.mark.parametrize("offset", [0, 1, -1, 10**9, 2**63 - 1, -(2**63)])
def test_every_resolution_of_times(offset, tmp_path):
    packet = frames.ipv4(7, 8)
    times = [0, 1, 999, 2**31, 2**32 + 1, 1_700_000_000, 2**53 + 1, 2**63, 2**64 - 1]
    content = frames.section()
    for value in RESOLUTIONS:
        options = frames.option(9, bytes([value])) + frames.option(14, struct.pack("<q", offset))
        content += frames.interface(options=frames.option(2, b"eth0") + options)
    for which, units in itertools.product(range(len(RESOLUTIONS)), times):
        content += frames.enhanced(packet, units, which)
    found = agrees(content, tmp_path)
    pairs = itertools.product(RESOLUTIONS, times)
    assert found.time.tolist() == [reference.nanoseconds(t, r, offset) for r, t in pairs]


def big_capture(count=3000, link=1, rng=1, blocks=False):
    """Frames of many lengths, of which some look like records inside."""
    rng = np.random.default_rng(rng)
    inner = frames.pcap([frames.ipv4(9, 9)] * 20)[24:]
    made = []
    for k in range(count):
        payload = inner if k % 50 == 0 else rng.bytes(int(rng.integers(0, 900)))
        packet = frames.ipv4(int(rng.integers(2**32)), k) + payload
        made.append(frames.ethernet(packet) if k % 7 else frames.ethernet(packet, kind=0x86DD))
    if not blocks:
        return frames.pcap(made, link=link)
    head = frames.section() + frames.interface(1)
    return head + b"".join(frames.enhanced(frame, k) for k, frame in enumerate(made))


@pytest.mark.parametrize("blocks", [False, True])
def test_threads_that_start_in_the_middle(blocks, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "SMALL_PART", 4)
    content = big_capture(blocks=blocks)
    wanted, skipped = reference.packets_of(content)
    path = tmp_path / "big"
    path.write_bytes(content)
    for part in (4, 40, 1000, 4096, 1 << 16, 1 << 20):
        monkeypatch.setattr(reading, "PART", part)
        for threads in (1, 2, 3, 8):
            capture = iter_capture(path, threads=threads, packets=700)
            found = list(capture)
            merged = tuple(np.concatenate(field) for field in zip(*found, strict=True))
            assert same(merged, tuple(wanted))
            assert capture.skipped == skipped


def test_payloads_that_look_like_records_mislead_nobody(tmp_path, monkeypatch):
    """Every guess is wrong: the payload is a capture of its own."""
    monkeypatch.setattr(reading, "SMALL_PART", 4)
    monkeypatch.setattr(reading, "PART", 512)
    inner = frames.pcap([frames.ipv4(9, 9)] * 400)[24:]
    made = [frames.ipv4(k, 1) + inner for k in range(20)]
    content = frames.pcap(made)
    wanted, _ = reference.packets_of(content)
    path = tmp_path / "nested"
    path.write_bytes(content)
    for threads in (2, 3, 7):
        assert same(tuple(read_capture(path, threads=threads)), tuple(wanted))


@pytest.mark.parametrize("start", [0, 3, 1_715_091_767])
@pytest.mark.parametrize("link", [101, 1])
def test_guesses_are_right_where_all_records_are_alike(start, link):
    """Equal packets have the same bytes at the same places: zeros, lengths, constant fields.

    The public data of the Graph Challenge are such.  A wrong guess costs the work of a thread.
    """
    n = 2000
    src, dst = generators.packets(n, rng=1)
    packets = [
        frames.ipv4(int(a), int(b), length=40) + bytes(20) for a, b in zip(src, dst, strict=True)
    ]
    times = [start * 10**9 + 700_000 * k * 1000 for k in range(n)]
    made = packets if link == 101 else [frames.ethernet(p) for p in packets]
    content = frames.pcap(made, link=link, times=times)
    data = np.frombuffer(content, np.uint8)
    step = (len(content) - 24) // n
    with iter_capture(io.BytesIO(content)) as capture:
        form, kind = capture._form, int(capture._interfaces.table.link[0])
    guess_record = from_python(cpu_records.guess_record)
    for begin in range(24, 24 + 60 * step, 3):
        found = guess_record(data, begin, begin + 4096, data.size, form, kind, start)
        assert 0 <= found - begin < step
        assert (found - 24) % step == 0


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [False, True])
def test_records_alike_up_to_one_that_is_not(blocks, tmp_path, monkeypatch):
    """Members write where their packets belong if all are alike.  Shorter ones are too many."""
    monkeypatch.setattr(reading, "SMALL_PART", 4)
    monkeypatch.setattr(reading, "PART", 512)
    usual = [frames.ipv4(k, 1) + bytes(20) for k in range(400)]
    others = {
        "none": [],
        "one shorter": [frames.ipv4(1, 2)],
        "many shorter": [frames.ipv4(k, 2) for k in range(200)],
        "longer": [frames.ipv4(1, 2) + bytes(24)],
        "not IPv4": [b"\x60" + usual[0][1:]] * 3,
        "as long together": [frames.ipv4(1, 2), frames.ipv4(1, 2) + bytes(40)],
    }
    path = tmp_path / "alike"
    for other, place in itertools.product(others, (70, 399)):
        made = usual[:place] + others[other] + usual[place:]
        content = frames.pcap(made)
        if blocks:
            content = frames.section() + frames.interface(101)
            content += b"".join(frames.enhanced(frame, k) for k, frame in enumerate(made))
        path.write_bytes(content)
        wanted, skipped = reference.packets_of(content)
        for threads, packets in itertools.product((2, 7), (150, 10**6)):
            capture = iter_capture(path, threads=threads, packets=packets)
            merged = map(np.concatenate, zip(*capture, strict=True))
            assert same(tuple(merged), tuple(wanted))
            assert capture.skipped == skipped
            assert other != "none" or capture._alike > 0
            assert same(tuple(read_capture(path, threads=threads)), tuple(wanted))


COMPRESSORS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_compressed_files_and_pipes(kind, tmp_path):
    if kind == "zst":
        compress = pytest.importorskip("zstandard").ZstdCompressor().compress
    else:
        compress = COMPRESSORS[kind]
    content = big_capture(500)
    wanted, _ = reference.packets_of(content)
    packed = compress(content[:70_000]) + compress(content[70_000:])  # two streams in one file
    path = tmp_path / "no_suffix"
    path.write_bytes(packed)
    assert same(tuple(read_capture(path)), tuple(wanted))
    assert same(tuple(read_capture(io.BytesIO(packed))), tuple(wanted))
    check_capture(path, wanted)
    with pytest.raises(FileFormatError, match=r"byte \d+: the compressed data ends early"):
        read_capture(io.BytesIO(packed[:7]))  # not even a header
    for cut in (len(packed) - 1, len(packed) - 20, len(compress(content[:70_000])) + 30):
        whole = iter_capture(io.BytesIO(packed[:cut]), packets=10)
        with pytest.warns(UserWarning, match=r"byte \d+: the file is cut off"):
            blocks = list(whole)
        found = np.concatenate([block.src for block in blocks])
        assert 0 < found.size <= wanted.src.size
        assert same(found, wanted.src[: found.size])
        assert whole.skipped["cut off"] == 1
    if kind != "zst":  # which has no checksum unless asked for
        damaged = bytearray(packed)
        damaged[len(packed) // 2] ^= 0xFF
        with pytest.raises(FileFormatError, match="the compressed data is damaged"):
            read_capture(io.BytesIO(bytes(damaged)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe(tmp_path):
    content = big_capture(500)
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def feed():
        with open(path, "wb") as stream:
            for start in range(0, len(content), 777):
                stream.write(content[start : start + 777])

    thread = threading.Thread(target=feed)
    thread.start()
    found = read_capture(path)
    thread.join()
    assert same(tuple(found), tuple(reference.packets_of(content)[0]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_slow_pipe_is_read_as_it_comes(tmp_path):
    """The first packets are given while the writer still has the pipe open."""
    path, given = tmp_path / "pipe", threading.Event()
    os.mkfifo(path)
    late = []

    def feed():
        with open(path, "wb", buffering=0) as stream:
            stream.write(EXAMPLE[: 24 + 4 * 36])
            late.append(not given.wait(120))
            stream.write(EXAMPLE[24 + 4 * 36 :])

    thread = threading.Thread(target=feed)
    thread.start()
    capture = iter_capture(path, packets=2)
    first = next(capture)
    given.set()
    rest = [block.src.size for block in capture]
    thread.join()
    assert late == [False]
    assert first.src.size == 2
    assert sum(rest) == 6


def test_standard_input(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(EXAMPLE))
    monkeypatch.setattr("sys.stdin", stdin)
    assert read_capture("-").src.size == 8


def test_bombs_are_refused():
    bomb = gzip.compress(EXAMPLE + bytes(1 << 20))
    with pytest.raises(FileFormatError, match="most_bytes"):
        read_capture(io.BytesIO(bomb), most_bytes=100_000)
    assert read_capture(io.BytesIO(bomb), most_bytes=1 << 21).src.size == 8


def test_a_record_larger_than_the_buffer(monkeypatch):
    from matchwood.applications.sensing.capture import sources

    monkeypatch.setattr(sources, "BUFFER", 64)
    content = frames.pcap([frames.ipv4(1, 2) + bytes(5000), frames.ipv4(3, 4)])
    assert read_capture(io.BytesIO(content)).src.tolist() == [1, 3]


def test_what_is_read_can_be_told_at_any_time():
    capture = iter_capture(io.BytesIO(EXAMPLE), packets=3)
    next(capture)
    assert capture.packets == 3
    capture.close()
    assert list(capture) == []


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("order", ["little", "big"])
def test_written_captures_read_back(blocks, order, tmp_path):
    rng = np.random.default_rng(5)
    n = 1000
    packets = Packets(
        rng.integers(0, 2**32, n, np.uint32), rng.integers(0, 2**32, n, np.uint32),
        rng.integers(0, 2**61, n), rng.integers(0, 2**32, n, np.uint32),
        rng.integers(0, 256, n).astype(np.uint8),
    )  # fmt: skip
    packets.length[:500] = rng.integers(0, 60, 500)
    for captured, suffix in ((20, ""), (40, ".gz"), (37, ".xz")):
        path = tmp_path / ("x.pcapng" if blocks else "x.pcap" + suffix)
        write_capture(path, packets, captured=captured, order=order)
        assert same(tuple(read_capture(path)), tuple(packets))
        check_capture(path, packets)
    write_capture(tmp_path / "us", packets, nanoseconds=False, threads=3)
    rounded = packets.time // 1000 * 1000
    assert same(read_capture(tmp_path / "us").time, rounded)


def test_the_example_is_written_byte_for_byte(tmp_path):
    packets = read_capture(io.BytesIO(EXAMPLE))
    write_capture(tmp_path / "example.pcap", packets)
    assert (tmp_path / "example.pcap").read_bytes() == EXAMPLE


REAL = {
    "suricata_defrag-af-confusion-spray-h8.pcap.gz": (1605656, 16384, 8192, 4096, 1, 4096),
    "ndpi_gnutella.pcap.gz": (640922, 3905, 3814, 131, 510, 638),
    "ndpi_srvloc.pcap.gz": (67213, 629, 629, 300, 10, 521),
    "zeek_dhcp_flood.pcap.gz": (165774, 500, 500, 500, 500, 500),
    "ndpi_ethereum.pcap.gz": (248135, 2000, 2000, 61, 64, 123),
    "markofu_gnutella.pcap.gz": (105546, 1343, 1343, 39, 82, 119),
    "ndpi_sites.pcapng.gz": (399796, 699, 658, 65, 65, 113),
    "markofu_evilprogram.pcap.gz": (134181, 659, 620, 54, 54, 105),
    "ndpi_whatsapp_login_call.pcap.gz": (213262, 1253, 1247, 42, 44, 83),
    "ndpi_dnscrypt-v1-and-resolver-pings.pcap.gz": (330594, 608, 608, 39, 39, 76),
    "ndpi_teams.pcap.gz": (704179, 1540, 1498, 34, 35, 67),
    "markofu_suspicious-time.pcap.gz": (305902, 745, 725, 19, 20, 45),
    "tcpreplay_test.pcap.gz": (71888, 179, 156, 11, 11, 14),  # six of them in MPLS
    "zeek_modbusBig.pcap.gz": (1188656, 13622, 13622, 3, 3, 6),
    "zeek_cwd-navigation.pcap.gz": (787593, 8317, 8317, 2, 2, 2),
    "ndpi_synscan.pcap.gz": (148872, 2011, 2011, 2, 2, 2),
}


@pytest.mark.parametrize("name", REAL)
def test_real_captures(name):
    """(bytes, frames, packets, sources, destinations, links), as counted by others."""
    path = DATA / "pcap" / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    capture = iter_capture(path, packets=100)
    blocks = list(capture)
    src, dst = (np.concatenate(field) for field in list(zip(*blocks, strict=True))[:2])
    links = np.unique(src.astype(np.uint64) << np.uint64(32) | dst)
    every = capture.packets + sum(capture.skipped.values())
    sizes = (np.unique(src).size, np.unique(dst).size, links.size)
    assert (capture.bytes, every, capture.packets, *sizes) == REAL[name]
    check_capture(path, read_capture(path), capture.skipped)


def test_real_packets_survive_writing(tmp_path):
    path = DATA / "pcap" / "ipv4_packets_merged.npz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    with np.load(path, allow_pickle=True) as found:
        packets = Packets(
            found["src"], found["dst"], (np.clip(found["ts"], 0, 2**32 - 1) * 1e9).astype(np.int64),
            found["length"].astype(np.uint32), found["proto"].astype(np.uint8),
        )  # fmt: skip
    write_capture(tmp_path / "all.pcap", packets)
    back = read_capture(tmp_path / "all.pcap", threads=3)
    assert same(tuple(back), tuple(packets))
    assert (np.unique(back.src).size, np.unique(back.dst).size) == (3136, 3412)


@pytest.mark.parametrize("field", range(5))
def test_the_check_sees_what_is_wrong(field, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(EXAMPLE)
    packets = read_capture(path)
    wrong = [part.copy() for part in packets]
    wrong[field][3] += 1
    with pytest.raises(CheckFailed, match=f"{Packets._fields[field]} of packet 3"):
        check_capture(path, Packets(*wrong))
    with pytest.raises(CheckFailed, match="8 elements"):
        check_capture(path, packets.part(0, 7))
    wrong[field] = packets[field].astype(np.float64)
    with pytest.raises(TypeError, match="must hold integers"):
        check_capture(path, Packets(*wrong))
    with pytest.raises(CheckFailed, match="skip"):
        check_capture(path, packets, {"IPv6": 1})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: read_capture(5), TypeError, "read_capture: path must be a path"),
        (lambda: read_capture(io.StringIO("x")), TypeError, "read_capture: path must be a path"),
        (lambda: iter_capture("x", packets=0), ValueError, "iter_capture: packets must be at"),
        (lambda: read_capture("x", compat=1), TypeError, "read_capture: compat must be True"),
        (lambda: read_capture("/nowhere/x"), FileNotFoundError, ""),
        (lambda: read_capture("a\0b"), ValueError, "read_capture: path must be the name of a file"),
        (lambda: write_capture(3, EIGHT), TypeError, "write_capture: path must be the name of a"),
        (lambda: check_capture(3, EIGHT), TypeError, "check_capture: path must be the name of a"),
        (lambda: check_capture("x", 3), TypeError, "check_capture: packets must be Packets"),
        (lambda: check_capture("x", EIGHT, "no"), TypeError, "check_capture: skipped must be"),
        (lambda: check_capture("x", EIGHT, compat=0), TypeError, "check_capture: compat must be"),
        (lambda: EIGHT.part(1, 2.5), TypeError, "Packets.part: stop must be an integer"),
        (lambda: Packets.empty(b"3"), TypeError, "Packets.empty: count must be an integer"),
        (lambda: write_capture("x", [1, 2]), TypeError, "write_capture: packets must be Packets"),
        (lambda: write_capture("x", Packets(*[np.zeros(3)] * 5)), TypeError, "write_capture: pack"),
        (
            lambda: write_capture("x", EIGHT._replace(protocol=np.zeros(3, np.uint8))),
            ValueError, "write_capture: packets.protocol must have the size",
        ),
        (
            lambda: write_capture("x", EIGHT, captured=3),
            ValueError, "write_capture: captured must be at least 20",
        ),
        (
            lambda: write_capture("x", EIGHT._replace(time=np.full(8, -1))),
            ValueError, "write_capture: packets.time must lie",
        ),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)

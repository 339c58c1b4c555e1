"""Damaged captures: an error with file and byte, or a counted skip; never a wrong number.

The plain parser of the definition is the judge: for any bytes whatever both give the same packets
and the same counts, or both refuse at the same packet.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import warnings

import numpy as np
import pytest

from adversarial.clock import attempts
from matchwood.applications.sensing.capture import reading, reference, sources
from matchwood.errors import FileFormatError
from matchwood.sensing import iter_capture, read_capture
from sensing import frames
from support import REST, same

EXAMPLE = frames.example()
MIXED = b"".join(
    [
        frames.section(">"),
        frames.interface(1, order=">", options=frames.option(9, b"\x09", ">")),
        frames.enhanced(frames.ethernet(EXAMPLE[0], 0x8100), 5, order=">"),
        frames.simple(frames.ethernet(EXAMPLE[1]), order=">"),
        frames.section("<"),
        frames.interface(101),
        frames.interface(113, options=frames.option(14, bytes(8)) + frames.option(0, b"")),
        frames.obsolete(EXAMPLE[2], 7),
        frames.enhanced(bytes(14) + b"\x08\0" + EXAMPLE[3], 8, which=1),
        frames.block(5, b"statistics"),
        frames.enhanced(EXAMPLE[4], 9),
    ]
)
CAPTURES = {
    "pcap": frames.pcap(EXAMPLE),
    "ethernet": frames.pcap([frames.ethernet(p, 0x8100) for p in EXAMPLE], link=1, order=">"),
    "pcapng": MIXED,
}
LINKS = {  # what stands before the packet on each link layer
    0: struct.pack("<I", 2), 1: frames.ETHER + b"\x08\0", 12: b"", 14: b"", 101: b"",
    108: struct.pack(">I", 2), 113: bytes(14) + b"\x08\0", 228: b"", 276: b"\x08\0" + bytes(18),
}  # fmt: skip
SMALL = {
    **{f"{order} {unit}": frames.pcap(EXAMPLE[:3], order=order, unit=unit)
       for order in "<>" for unit in (1000, 1)},
    **{f"link {link}": frames.pcap([head + p for p in EXAMPLE[:2]], link=link)
       for link, head in LINKS.items()},
    **{f"blocks {order}": frames.section(order) + frames.interface(order=order)
       + frames.enhanced(EXAMPLE[0], 1, order=order) + frames.simple(EXAMPLE[1], order=order)
       + frames.obsolete(EXAMPLE[2], 1, order=order) for order in "<>"},
}  # fmt: skip
"""A small capture of every kind: magics, link layers, blocks in both orders."""
COMPRESSORS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}

LONG = [frames.ipv4(k, k + 1) + bytes(300 + 7 * k % 90) for k in range(60)]
LONG_CAPTURES = [
    frames.pcap(LONG),
    frames.section() + frames.interface() + b"".join(frames.enhanced(p, 5) for p in LONG),
]
"""Long records, which are read ahead by several chains."""


def judged(content: bytes) -> tuple:
    """(packets before the damage, counts, whether there is damage) by the definition."""
    rows, skipped = [], dict.fromkeys(("IPv6", "ARP", "other", "short", "cut off"), 0)
    try:
        for frame in reference.frames(content):
            found = "cut off" if frame is None else reference.packet_of(*frame, False, 4)
            if isinstance(found, str):
                skipped[found] += 1
            else:
                rows.append(found)
    except FileFormatError:
        return rows, skipped, True
    return rows, skipped, False


def read(source, **options) -> tuple:
    """The same by the reader."""
    rows, capture = [], None
    try:
        capture = iter_capture(source, **options)
        for block in capture:
            rows += zip(*(field.tolist() for field in block), strict=True)
    except FileFormatError as error:
        if ", byte " not in str(error):
            raise
        return rows, None if capture is None else capture.skipped, True
    return rows, capture.skipped, False


def told_of(content: bytes) -> tuple[list, bool]:
    """Packets, and whether an error or a warning says that there are not all of them."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        rows, _, refused = read(io.BytesIO(content))
    return rows, refused or bool(seen)


def compare(content: bytes, path, threads: int) -> None:
    rows, skipped, damage = judged(content)
    path.write_bytes(content)
    for source in (path, io.BytesIO(content)):
        found, counted, refused = read(source, threads=threads, packets=3)
        assert refused == damage
        assert found == rows
        assert counted is None or counted == skipped
    if damage:
        with pytest.raises(FileFormatError):
            read_capture(path, threads=threads)
    else:
        assert read_capture(path, threads=threads).src.size == len(rows)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of a few records, so that several members have one; buffers that must grow."""
    monkeypatch.setattr(reading, "SMALL_PART", 64)
    monkeypatch.setattr(reading, "PART", 64)
    monkeypatch.setattr(sources, "BUFFER", 40)
    monkeypatch.setattr(sources, "AHEAD", 40)
    monkeypatch.setattr(sources, "AHEAD_OF_MEMBER", 40)
    monkeypatch.setattr(sources, "ROOM", 50)


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_truncation_at_every_byte(name, tmp_path):
    content = CAPTURES[name]
    for size in range(len(content) + 1):
        compare(content[:size], tmp_path / "x", 1 + size % 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_truncation_of_every_kind(name, tmp_path):
    content = SMALL[name]
    assert len(judged(content)[0]) in (2, 3)
    for size in range(len(content) + 1):
        compare(content[:size], tmp_path / "x", 1 + size % 2)


@pytest.mark.parametrize(
    "kind", ["gz", "zst", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("bz2", "xz"))]
)
def test_truncation_of_compressed_captures(kind):
    """What is cut off is told, behind the packets before it."""
    if kind == "zst":
        compress = pytest.importorskip("zstandard").ZstdCompressor().compress
    else:
        compress = COMPRESSORS[kind]
    rows, _, _ = judged(CAPTURES["pcap"])
    content = compress(CAPTURES["pcap"])
    for size in range(len(content)):
        found, told = told_of(content[:size])
        assert told
        assert found == rows[: len(found)]
    assert read(io.BytesIO(content))[0] == rows


LENGTHS = [0, 1, 3, 4, 8, 11, 12, 13, 16, 27, 28, 31, 32, 36, 2**16, 2**18, 2**18 + 1, 2**28,
           2**28 + 4, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("name", CAPTURES)
def test_every_word_replaced_by_wrong_lengths(name, rest):
    content = CAPTURES[name]
    for place in range(0, len(content) - 3, 4):
        for k, value in enumerate(LENGTHS[place // 4 % 3 :: 3]):
            order = "<>"[(k + place // 4 + rest) % 2]
            wrong = content[:place] + struct.pack(order + "I", value) + content[place + 4 :]
            rows, skipped, damage = judged(wrong)
            found, counted, refused = read(io.BytesIO(wrong), threads=1)
            assert (refused, found) == (damage, rows)
            assert counted is None or counted == skipped


@pytest.mark.slow
def test_random_damage(tmp_path):
    """Bytes changed, cut out, doubled; both parsers agree on what is left."""
    contents = list(CAPTURES.values())
    for k in attempts(0.7):
        rng = np.random.default_rng(k)
        wrong = bytearray(contents[k % len(contents)])
        for _ in range(int(rng.integers(1, 6))):
            place = int(rng.integers(len(wrong)))
            kind = rng.integers(4)
            if kind == 0:
                wrong[place] = int(rng.integers(256))
            elif kind == 1:
                del wrong[place : place + int(rng.integers(1, 9))]
            elif kind == 2:
                wrong[place:place] = wrong[place : place + int(rng.integers(1, 40))]
            else:
                wrong[place] ^= 1 << int(rng.integers(8))
        compare(bytes(wrong), tmp_path / "x", int(rng.integers(1, 4)))


@pytest.mark.slow
def test_random_damage_of_long_records(tmp_path, monkeypatch):
    for k in attempts(0.5):
        rng = np.random.default_rng(k)
        wrong = bytearray(LONG_CAPTURES[k % 2])
        for place in rng.integers(24, len(wrong), int(rng.integers(0, 3))):
            wrong[place] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.5:
            place = int(rng.integers(len(wrong)))
            del wrong[place : place + int(rng.integers(1, 400))]
        monkeypatch.setattr(reading, "PART", int(rng.choice([512, 2048, 8192, 1 << 16])))
        compare(bytes(wrong), tmp_path / "x", int(rng.integers(1, 4)))


@pytest.mark.slow
def test_random_bytes_behind_a_header(tmp_path):
    for k in attempts(0.5):
        rng = np.random.default_rng(k)
        head = CAPTURES["pcap"][:24] if k % 2 else frames.section() + frames.interface()
        small = rng.integers(0, 40, int(rng.integers(0, 300))).astype(np.uint8)
        small[rng.random(small.size) < 0.7] = 0
        compare(head + small.tobytes(), tmp_path / "x", 1 + k % 3)


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_damaged_compression(kind):
    """An error, or what the bytes before the damage say: these formats have checksums."""
    content = COMPRESSORS[kind](CAPTURES["pcap"])
    rows, _, _ = judged(CAPTURES["pcap"])
    for place in range(len(content)):
        for value in (0, 255):
            wrong = bytearray(content)
            wrong[place] = value
            found, told = told_of(bytes(wrong))
            assert told or found == rows


@pytest.mark.slow
def test_more_interfaces_than_a_section_may_have():
    content = frames.section() + frames.interface() * 2**16
    assert read_capture(io.BytesIO(content + frames.enhanced(EXAMPLE[0]))).src.size == 1
    with pytest.raises(FileFormatError, match="interfaces"):
        read_capture(io.BytesIO(content + frames.interface()))


def test_a_huge_length_allocates_nothing():
    """A block that says 256 MB in a file of a hundred bytes is cut off, no more."""
    content = frames.section() + struct.pack("<II", 5, 2**28) + bytes(40)
    found, skipped, refused = read(io.BytesIO(content))
    assert (found, refused) == ([], False)
    assert skipped["cut off"] == 1


def test_a_first_section_that_is_cut_off_ends_with_the_file():
    section = struct.pack("<IIIHHq", 0x0A0D0D0A, 100, 0x1A2B3C4D, 1, 0, -1)
    for size in (12, 24, 26, 50, 96):
        content = section.ljust(100, b"\0")[:size]
        with pytest.raises(FileFormatError, match=f"byte {size}: the section header is cut off"):
            read_capture(io.BytesIO(content))


def test_interrupted_reading_leaves_nothing_open(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(CAPTURES["pcap"])
    with iter_capture(path, packets=1) as capture:
        first = next(capture)
    assert first.src.size == 1
    assert same(first.src, read_capture(path).src[:1])


def test_an_interrupted_block_is_not_skipped_silently(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(CAPTURES["pcap"])
    capture = iter_capture(path, packets=1)
    next(capture)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(capture, "_scan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(capture)
    with pytest.raises(FileFormatError, match="reading was interrupted"):
        list(capture)

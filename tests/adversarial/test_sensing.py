"""`sense` against its definition: odd windows, gaps, overlapping ranges, pipes, tiny memory."""

from __future__ import annotations

import dataclasses
import gzip
import io
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from adversarial.clock import attempts
from matchwood.applications.sensing.anonymity.anonymizer import read_key
from matchwood.applications.sensing.stream import cpu as stream_cpu
from matchwood.applications.sensing.stream import running, sources
from matchwood.applications.sensing.stream.check import check_sensing
from matchwood.errors import CheckFailed
from matchwood.sensing import Anonymizer, Packets, sense, write_archive, write_capture
from sensing import frames

KEY = bytes(range(32))
RANGES = {  # the second is within the first, the third holds everything, one is empty
    "net": ["10.0.0.0/8"],
    "host": ["10.0.0.1", "10.0.0.2/31"],
    "low": ["0.0.0.0/1"],
    "none": [],
}


def same(found, right) -> None:
    """Everything that `sense` tells, but the seconds."""
    assert found.statistics == right.statistics
    assert found.windows == right.windows
    assert np.array_equal(found.windows.time, right.windows.time)
    assert found.matrix == right.matrix
    assert found.histograms == right.histograms
    assert found.blocks == right.blocks
    assert {**found.capture, "bytes": 0} == {**right.capture, "bytes": 0}
    assert right.capture["packets"] == right.statistics.valid_packets + right.capture["dropped"]
    found.matrix.check()


def random_packets(rng) -> Packets:
    n = int(rng.integers(0, 250))
    hosts = int(rng.choice([1, 3, 20, 1000]))
    addresses = rng.integers(0, 2**32, hosts, dtype=np.uint32)
    addresses[rng.random(hosts) < 0.5] = 0x0A000000 + rng.integers(0, 5)
    addresses[rng.random(hosts) < 0.1] = 2**32 - 1
    src, dst = addresses[rng.integers(0, hosts, (2, n))]
    steps = rng.integers(0, 50, n) * rng.choice([0, 1, 1000], n, p=[0.5, 0.45, 0.05])
    time = 1_700_000_000 * 10**9 + 1000 * np.cumsum(steps)
    late = rng.random(n) < 0.05
    time[late] -= 1000 * rng.integers(0, 10**5, int(late.sum()))
    return Packets(src, dst, time, np.full(n, 60, np.uint32), np.full(n, 17, np.uint8))


def random_options(rng) -> dict:
    return {
        "window": rng.choice([1, 2, 7, 100, 10**6]) if rng.random() < 0.6
        else str(rng.choice(["1us", "10 us", "1ms", "1h"])),
        "partial": str(rng.choice(["keep", "drop"])),
        "compat": bool(rng.random() < 0.3),
        "ranges": RANGES if rng.random() < 0.5 else None,
        "anonymize": [None, Anonymizer("permutation", KEY), Anonymizer("truncate", bits=4)][
            int(rng.integers(3))
        ],
    }  # fmt: skip


@pytest.fixture
def small_parts(monkeypatch):
    """Limits so low that a few packets go the ways of many."""
    monkeypatch.setattr(running, "SAMPLE", 4)
    monkeypatch.setattr(sources, "READ_AT_ONCE", 13)

    def vary(rng):
        monkeypatch.setattr(running, "CHUNK", int(rng.integers(1, 150)))
        monkeypatch.setattr(running, "RUNS_PART", int(rng.choice([10, 10**5, 10**7])))
        monkeypatch.setattr(stream_cpu, "FEWER", int(rng.integers(1, 4)))

    return vary


@pytest.mark.slow
def test_arrays_and_blocks(small_parts):
    for k in attempts(1):
        rng = np.random.default_rng(k)
        small_parts(rng)
        packets, options = random_packets(rng), random_options(rng)
        given = packets[: int(rng.choice([2, 3]))]
        if isinstance(options["window"], str):
            given = packets[:3]
        right = sense(given, engine="reference", **options)
        ways = {"threads": int(rng.integers(1, 4)), "memory": rng.choice([None, 10**6])}
        same(sense(given, batches=int(rng.integers(1, 4)), **ways, **options), right)
        size = int(rng.integers(1, 60))
        cuts = range(0, packets.src.size, size)
        blocks = (tuple(x[at : at + size] for x in given) for at in cuts)
        same(sense(blocks, **ways, **options), right)
        if not options["compat"]:
            asked = {name: options[name] for name in ("partial", "ranges", "anonymize")}
            check_sensing(given, right, options["window"], **asked)


@pytest.mark.slow
def test_files(small_parts, tmp_path):
    for k in attempts(1):
        rng = np.random.default_rng(k)
        small_parts(rng)
        options = random_options(rng)
        parts, files = [], []
        for number in range(int(rng.integers(1, 4))):
            parts.append(random_packets(rng))
            suffix = rng.choice([".pcap", ".pcapng", ".pcap.gz"])
            files.append(tmp_path / f"{number}{suffix}")
            write_capture(files[-1], parts[-1])
        ways = {"threads": int(rng.integers(1, 3)), "memory": rng.choice([None, 10**6])}
        right = sense(files, engine="reference", **options)
        same(sense(files, **ways, **options), right)
        one = sense(files[0], engine="reference", **options)
        same(sense(io.BytesIO(files[0].read_bytes()), **ways, **options), one)
        if not options["compat"]:
            whole = Packets(*(np.concatenate(field) for field in zip(*parts, strict=True)))
            asked = {name: options[name] for name in ("partial", "ranges", "anonymize")}
            check_sensing(whole, right, options["window"], **asked)


@pytest.mark.slow
def test_archives(small_parts, tmp_path):
    for k in attempts(0.5):
        rng = np.random.default_rng(k)
        small_parts(rng)
        options = {**random_options(rng), "window": 1000}
        given = random_packets(rng)
        seen = []
        sense(given[:3], window=50, on_window=lambda *pair, seen=seen: seen.append(pair))
        matrices, times = [m for m, _ in seen], [t for _, t in seen]
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        if not matrices:
            continue
        paths = write_archive(folder, matrices, each=2, times=times, compression=None)
        right = sense(folder, engine="reference", **options)
        same(sense(folder, memory=rng.choice([None, 10**6]), **options), right)
        same(sense(sorted(paths), **options), right)  # names say when files begin
        packed = tmp_path / "all.tar.gz"
        packed.write_bytes(gzip.compress(paths[0].read_bytes()))
        same(sense(packed, **options), sense(paths[0], engine="reference", **options))


EMPTY = {
    "no packets": frames.pcap([]),
    "no packets, blocks": frames.section() + frames.interface(),
    "all skipped": frames.pcap([frames.ethernet(b"", kind=0x86DD)] * 9, link=1),
    "all cut short": frames.pcap([p[:19] for p in frames.example()]),
    "one cut off": frames.pcap(frames.example()[:1])[:-1],
}


@pytest.mark.parametrize("name", EMPTY)
def test_captures_without_packets(name, tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(EMPTY[name])
    for window in (1, 131_072, "10s"):
        for partial in ("keep", "drop"):
            found = sense(path, window=window, partial=partial, ranges=RANGES, memory=10**6)
            same(found, sense(path, window=window, partial=partial, ranges=RANGES,
                              engine="reference"))  # fmt: skip
            assert (found.statistics.valid_packets, len(found.windows)) == (0, 0)
    assert sum(found.capture["skipped"].values()) == {"all skipped": 9, "all cut short": 8,
                                                      "one cut off": 1}.get(name, 0)  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_and_a_file_behind_it(tmp_path):
    content = frames.pcap(frames.example())
    pipe, file = tmp_path / "pipe", tmp_path / "x.pcap"
    os.mkfifo(pipe)
    file.write_bytes(content)
    thread = threading.Thread(target=lambda: pipe.write_bytes(content))
    thread.start()
    found = sense([pipe, file], window=3)
    thread.join()
    same(found, sense([file, file], window=3, engine="reference"))


def test_times_at_the_ends_of_what_fits():
    least, most = -(2**63), 2**63 - 1
    for moments in (
        [least, -1, 0, most], [0, most, least], [most, least, most], [least, least, most, most],
    ):  # fmt: skip
        time = np.array(moments, np.int64)
        src = np.arange(time.size, dtype=np.uint32)
        for window in ("1ns", "2 h", "100000 h"):
            found = sense((src, src, time), window=window)
            check_sensing((src, src, time), found, window)
            same(found, sense((src, src, time), window=window, engine="reference"))


@pytest.mark.parametrize("kind", [np.uint64, np.int32, np.uint8])
def test_times_of_other_kinds(kind):
    """A packet that is late must not become one of the far future."""
    time = np.array([100, 90, 105, 99, 130], kind)
    src = np.arange(5, dtype=np.uint32)
    found = sense((src, src, time), window="10ns")
    check_sensing((src, src, time), found, "10ns")
    assert found.windows.first.tolist() == [0, 4]
    if kind is np.uint64:
        with pytest.raises(ValueError, match="sense: time must lie within"):
            sense((src, src, time + np.uint64(2**63)), window="10ns")


def test_blocks_with_and_without_times():
    """Where some packets have no time, windows have none."""
    src = np.arange(10, dtype=np.uint32)
    mixed = [(src, src, np.arange(10)), (src, src), (src, src, np.arange(10))]
    for order in ((0, 1, 2), (1, 0, 2), (0, 2, 1)):
        blocks = [mixed[k] for k in order]
        found = sense(iter(blocks), window=4)
        same(found, sense(iter(blocks), window=4, engine="reference"))
        assert found.windows.time is None


def test_windows_larger_than_everything():
    """One window for all: no memory is taken for packets that do not come."""
    src = np.arange(10, dtype=np.uint32)
    for window in (11, 10**10, 2**62):
        right = sense((src, src), window=window, engine="reference")
        same(sense((src, src), window=window), right)
        same(sense(iter([(src[:3], src[:3]), (src[3:], src[3:])]), window=window), right)
    with pytest.raises(ValueError, match="sense: window must be at most"):
        sense((src, src), window=2**62 + 1)


WORDS = ["", "0", "1", "9" * 5000, "1.5", ".", "s", "ns", " min", "h", "-", "1e9", "MB", "GiB", "i",
         "\u0663", "\0", "10.0.0.0/8", "/33", "256.0.0.0", "::1", "nan", "K"]  # fmt: skip


@pytest.mark.slow
def test_any_text_is_taken_or_refused_by_name():
    """Windows, memory and ranges as text."""
    src = np.arange(10, dtype=np.uint32)
    time = np.arange(10)
    for k in attempts(0.5):
        rng = np.random.default_rng(k)
        text = "".join(rng.choice(WORDS, int(rng.integers(1, 4))))
        for options in ({"window": text}, {"memory": text}, {"ranges": [[text]]}):
            try:
                found = sense((src, src, time), **options)
            except ValueError as error:
                assert str(error).startswith("sense: "), (options, error)  # noqa: PT017
            else:
                assert found.statistics.valid_packets == 10


@pytest.mark.slow
def test_many_ranges_share_the_memory(monkeypatch):
    """A sum for each pair of ranges must not have the memory of all."""
    limits = []
    make = running.RunSums

    def made(merge, combine, memory, folder):
        limits.append(memory)
        return make(merge, combine, memory, folder)

    monkeypatch.setattr(running, "RunSums", made)
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 2**32, (2, 20_000), dtype=np.uint32)
    ranges = [[f"{16 * k}.0.0.0/4"] for k in range(8)]
    found = sense((src, dst), window=1000, ranges=ranges, memory=10**6)
    check_sensing((src, dst), found, 1000, ranges=ranges)
    pairs = limits[1 : 1 + 81]
    assert sum(pairs) <= 10**6 // running.RUNS_PART


def spoiled(found, **changes):
    return dataclasses.replace(found, **changes)


def test_the_check_sees_what_is_wrong():
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 9, (2, 100), dtype=np.uint32)
    packets = src, dst, np.arange(100) * 10
    options = {"ranges": [["0.0.0.0/30"]]}
    found = sense(packets, window=30, **options)
    other = sense(tuple(x[:99] for x in packets), window=30, **options)
    check_sensing(packets, found, 30, **options)
    blocks = {**found.blocks, ("1", "else"): found.blocks["else", "1"]}
    for changes in (
        {"statistics": other.statistics}, {"windows": other.windows}, {"matrix": other.matrix},
        {"histograms": other.histograms}, {"blocks": blocks}, {"blocks": None},
        {"capture": {**found.capture, "dropped": 1}}, {"capture": other.capture},
        {"windows": sense(packets[:2], window=30).windows},
    ):  # fmt: skip
        with pytest.raises(CheckFailed, match="sensing: "):
            check_sensing(packets, spoiled(found, **changes), 30, **options)
    for window, partial in ((29, "keep"), (30, "drop"), ("300ns", "drop")):
        with pytest.raises(CheckFailed, match="sensing: "):
            check_sensing(packets, found, window, partial=partial, **options)
    check_sensing(packets, sense(packets, window="300ns"), "300ns")
    hidden = sense(packets, window=30, anonymize="permutation", key=KEY)
    check_sensing(packets, hidden, 30, anonymize=Anonymizer("permutation", KEY))
    with pytest.raises(CheckFailed, match="sensing: matrix"):
        check_sensing(packets, hidden, 30, anonymize=Anonymizer("permutation", bytes(32)))
    with pytest.raises(TypeError, match="check_sensing: found must be a Sensing"):
        check_sensing(packets, found.statistics, 30)
    with pytest.raises(TypeError, match="check_sensing: packets must be arrays"):
        check_sensing(7, found, 30)


# Key files and shared anonymizers


def drawn_key_file(rng) -> tuple[bytes, bytes | None]:
    """(content of a file, the key in it or None where it holds none)."""
    key = rng.bytes(32)
    digits = "".join(rng.choice([c, c.upper()]) for c in key.hex()).encode()
    ending = [b"", b"\n", b"\r\n"][int(rng.integers(3))]
    kind = int(rng.integers(6))
    if kind == 0:
        return key, key
    if kind == 1:
        return digits + ending, key
    if kind == 2:  # blanks that a careless reader skips: fewer digits, the same length
        content = bytearray(digits)
        for at in rng.choice(64, 2 * int(rng.integers(1, 32)), replace=False):
            content[at] = int(rng.choice(list(b" \t\n\r\v\f")))
        return bytes(content) + ending, None
    if kind == 3:
        wrong = [b"0x", b"\xef\xbb\xbf", b"\0", b" ", b"\n", b"g", b"\xd9\xa3", b"_"]
        content = bytearray(digits + ending)
        at = int(rng.choice([0, 32, 64]))
        content[at:at] = wrong[int(rng.integers(len(wrong)))]
        good = bytes(content) in (digits + b"\n", digits + b"\r\n")
        return bytes(content), key if good else None
    if kind == 4:
        size = int(rng.choice([0, 1, 2, 16, 31, 33, 62, 63, 66, 67, 128, 10**6]))
        return (digits * (size // 64 + 1))[:size], None
    size = int(rng.choice([31, 33, 63, 64, 65, 66]))
    return b"\xff" + rng.bytes(size - 1), None


@pytest.mark.slow
def test_key_files_hold_one_key_or_are_refused(tmp_path):
    for k in attempts(0.5):
        rng = np.random.default_rng(k)
        content, key = drawn_key_file(rng)
        path = tmp_path / "key"
        path.write_bytes(content)
        path.chmod(0o600)
        if key is not None:
            assert read_key(path) == key, content
            continue
        with pytest.raises(ValueError, match=r"read_key: the key file .* must hold") as error:
            read_key(path)
        if len(content) > 8:
            assert content[:8].decode("latin-1") not in str(error.value), content


@pytest.mark.parametrize("method", ["cryptopan", "permutation", "truncate"])
def test_threads_share_an_anonymizer(method):
    """Ciphers of the package cryptography are not for two threads at once; an object of ours is."""
    pytest.importorskip("cryptography")
    shared = Anonymizer(method, *((None, 9) if method == "truncate" else (KEY,)))
    rng = np.random.default_rng(11)
    blocks = [rng.integers(0, 2**32, int(n), dtype=np.uint32) for n in rng.integers(1, 30_000, 12)]
    right = [shared(block) for block in blocks]
    with ThreadPoolExecutor(6) as pool:
        for _ in attempts(0.3):
            for found, wanted in zip(pool.map(shared, blocks), right, strict=True):
                assert np.array_equal(found, wanted)

"""sense: windows, sums in memory and on disk, sources of packets; the same whatever the way."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import tarfile
import tempfile
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from matchwood import anonymize, engines
from matchwood.applications.sensing.statistics import Statistics
from matchwood.applications.sensing.statistics import cpu as statistics_cpu
from matchwood.applications.sensing.stream import cpu as stream_cpu
from matchwood.applications.sensing.stream import running
from matchwood.applications.sensing.stream.sources import parse_window
from matchwood.arguments import byte_size
from matchwood.sensing import (
    AddressTable,
    archive_writer,
    read_archive,
    sense,
    traffic_histograms,
    traffic_matrix,
    traffic_statistics,
    write_archive,
)
from sensing import frames
from sensing.gpu_on_host import on_host
from sensing.traffic_cases import official, tiny, uniform, zipf

N, W = 200_003, 1 << 12
ENGINES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


@pytest.fixture(scope="module", params=[uniform, zipf, lambda n: uniform(n, 40)])
def traffic(request):
    src, dst = request.param(N)
    rows = [traffic_statistics((src[i : i + W], dst[i : i + W])) for i in range(0, N, W)]
    A = traffic_matrix(src, dst)
    return src, dst, rows, A, traffic_statistics(A), traffic_histograms(A)


def blocks(*arrays, size=7777):
    return (tuple(x[i : i + size] for x in arrays) for i in range(0, arrays[0].size, size))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_every_way_gives_the_same(traffic, engine, monkeypatch):
    src, dst, rows, A, statistics, histograms = traffic
    ways = [{}, {"batches": 5}, {"batches": 10, "memory": "2MB"}, {"memory": "1MB"}]
    if engine == "cpu":
        ways += [{"threads": threads} for threads in (1, 2, 3, 7)]
    else:
        ways += [{"devices": [0] * k, "batches": 3} for k in (1, 2, 3, 4)]
    for way in ways:
        for source in ((src, dst), blocks(src, dst)):
            found = sense(source, window=W, engine=engine, **way)
            assert list(found.windows) == rows, way
            assert found.statistics == statistics, way
            assert found.histograms == histograms, way
            assert found.matrix == A, way
            found.matrix.check()
    monkeypatch.setattr(running, "CHUNK", 3 * W)
    found = sense((src, dst), window=W, engine=engine)
    assert list(found.windows) == rows
    assert found.matrix == A


class Ahead(stream_cpu.Worker):
    """Works on a chunk while the next one is read, as a GPU does; and late."""

    ahead = True

    def __init__(self, threads):
        super().__init__(threads)
        self.pool = ThreadPoolExecutor(1)

    def begin(self, *job):
        def late():
            time.sleep(0.01)
            return self.windows(*job)

        return self.pool.submit(late).result

    def close(self):
        self.pool.shutdown()


class Late(Ahead):
    """The same with three chunks under way."""

    ahead = 3


class Several(Ahead):
    """Works on three chunks at a time, and only when it has them all, or no more can come."""

    ahead = 3

    def __init__(self, threads):
        super().__init__(threads)
        self.pool = ThreadPoolExecutor(self.ahead)
        self.barrier = threading.Barrier(self.ahead)

    def begin(self, *job):
        def together():
            with contextlib.suppress(threading.BrokenBarrierError):
                self.barrier.wait(1.0)
            return stream_cpu.Worker(1).windows(*job)

        return self.pool.submit(together).result


def test_several_devices_work_at_the_same_time(traffic, monkeypatch):
    """One thread served all devices: three chunks never were under way together."""
    src, dst, rows, *_ = traffic
    made = []
    monkeypatch.setattr(running, "CHUNK", W)
    monkeypatch.setattr(
        stream_cpu, "Worker", lambda threads: made.append(Several(threads)) or made[-1]
    )
    for source in (blocks(src[: 6 * W], dst[: 6 * W]), (src[: 6 * W], dst[: 6 * W])):
        found = sense(source, window=W)
        assert list(found.windows) == rows[:6]
        assert not made[-1].barrier.broken


def test_lanes_of_devices_work_at_the_same_time(monkeypatch):
    from matchwood.applications.sensing.stream.gpu import Worker

    with on_host():
        worker = Worker(None, (0, 0, 0))
        barrier = threading.Barrier(3)
        monkeypatch.setattr(worker, "_windows", lambda *job: (barrier.wait(10), job))
        begun = [worker.begin(k, k, k, False) for k in range(6)]
        assert [found()[1][0] for found in begun] == list(range(6))
        worker.close()


@pytest.mark.slow
@pytest.mark.parametrize("window", [W, "3ms", 7 * W])
def test_the_next_chunk_is_read_meanwhile(traffic, window, monkeypatch):
    src, dst, _, A, _, _ = traffic
    clock = np.arange(N) * 1000
    monkeypatch.setattr(running, "CHUNK", 3 * W)

    def run(source):
        told, seen = [], []
        found = sense(source, window=window, on_chunk=told.append,
                      on_window=lambda matrix, at: seen.append((matrix, at)))  # fmt: skip
        assert found.matrix == A
        assert list(told[-1]["windows"]) == list(found.windows)
        times = found.windows.time.tolist()
        return list(found.windows), found.windows.first.tolist(), times, seen

    right = run(blocks(src, dst, clock))
    for worker in (Ahead, Late):
        monkeypatch.setattr(stream_cpu, "Worker", worker)
        assert run(blocks(src, dst, clock)) == right
        assert run((src, dst, clock)) == right


def test_an_error_of_the_source_waits_for_what_was_begun(monkeypatch):
    src, dst = zipf(3 * W)
    monkeypatch.setattr(running, "CHUNK", W)
    monkeypatch.setattr(stream_cpu, "Worker", Ahead)

    def broken():
        yield src[: 2 * W], dst[: 2 * W]
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        sense(broken(), window=W)


@pytest.mark.gpu
def test_the_gpu_works_while_the_next_chunk_is_read(traffic, monkeypatch):
    src, dst, rows, A, _, _ = traffic
    monkeypatch.setattr(running, "CHUNK", 3 * W)
    for devices in (None, [0, 0]):
        found = sense(blocks(src, dst), window=W, engine="gpu", devices=devices)
        assert list(found.windows) == rows
        assert found.matrix == A


@pytest.mark.parametrize(
    ("name", "value"), [("AT_ONCE", 3 * W), ("AT_ONCE", 1), ("LARGEST", W - 1)]
)
def test_windows_a_few_at_a_time_or_alone(traffic, name, value, monkeypatch):
    src, dst, rows, A, _, _ = traffic
    monkeypatch.setattr(statistics_cpu if name == "AT_ONCE" else stream_cpu, name, value)
    for threads in (1, 2, 3):
        worker = stream_cpu.Worker(threads)
        cuts = np.append(np.arange(0, N, W), N)
        table, run, kept = worker.windows(src, dst, cuts, True)
        assert [Statistics(*row) for row in table.tolist()] == rows
        assert worker.matrix_of_run(run) == A
        for k, matrix in enumerate(kept):
            assert matrix == traffic_matrix(src[cuts[k] : cuts[k + 1]], dst[cuts[k] : cuts[k + 1]])
        alone = worker.windows(src[:W], dst[:W], np.array([0, W]), True)
        assert worker.matrix_of_run(alone[1]) == alone[2][0] == kept[0]


@pytest.mark.gpu
def test_packets_on_a_gpu(traffic):
    src, dst, rows, _, statistics, _ = traffic
    there = tuple(engines.moved(x, "gpu") for x in (src, dst))
    for source in (there, blocks(*there)):
        found = sense(source, window=W)
        assert list(found.windows) == rows
        assert found.statistics == statistics


def test_where_packets_live_decides():
    from matchwood.applications.sensing.stream.sources import Reading, Source

    for source in (tiny(), blocks(*tiny()), iter([]), "-"):
        assert Source(source, Reading(), None).engine == "cpu"


def test_a_window_that_is_not_complete(traffic):
    src, dst, rows, *_ = traffic
    kept = sense((src, dst), window=W)
    assert kept.windows[-1].valid_packets == N % W
    whole = N // W * W
    for options in ({"partial": "drop"}, {"compat": True}):
        for source in ((src, dst), blocks(src, dst)):
            found = sense(source, window=W, **options)
            assert list(found.windows) == rows[:-1]
            assert found.statistics == traffic_statistics((src[:whole], dst[:whole]))
            assert found.capture["dropped"] == N % W
    assert found.windows.first.tolist() == list(range(0, whole, W))
    assert len(sense((src[:10], dst[:10]), partial="drop").windows) == 0


def test_windows_as_matrices(traffic):
    src, dst, *_ = traffic
    seen = []
    told = []

    def take(matrix, time):
        assert time is None
        seen.append(matrix)

    sense((src, dst), window=W, batches=4, on_window=take, on_chunk=told.append)
    assert len(seen) == len(range(0, N, W))
    for k in (0, 3, len(seen) - 1):
        assert seen[k] == traffic_matrix(src[k * W : (k + 1) * W], dst[k * W : (k + 1) * W])
    assert [len(state["windows"]) for state in told] == sorted(len(s["windows"]) for s in told)
    assert told[-1]["packets"] == N


def test_compat_leaves_broadcasts_out():
    src, dst = (x.copy() for x in uniform(1000, 50))
    src[::7], dst[::11] = 2**32 - 1, 2**32 - 1
    kept = (src != 2**32 - 1) & (dst != 2**32 - 1)
    for source in ((src, dst), blocks(src, dst, size=64)):
        found = sense(source, window=1, compat=True)
        assert found.statistics == traffic_statistics((src[kept], dst[kept]))
        assert found.capture["dropped"] == 1000 - kept.sum()


@pytest.mark.parametrize("engine", ENGINES)
def test_windows_of_time(engine):
    src, dst = zipf(30_000)
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(0, 10**9, src.size)) + 1_700_000_000 * 10**9
    time[15_000:] += 5 * 10**9  # windows without packets
    late = time.copy()
    late[100:110] = time[0] - 5  # packets that came late stay in the window that is open
    for moments in (time, late):
        number = np.maximum.accumulate((moments - moments[0]) // 7_000_000)
        starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        ends = [*starts[1:], src.size]
        right = [
            traffic_statistics((src[a:b], dst[a:b])) for a, b in zip(starts, ends, strict=True)
        ]
        for source in ((src, dst, moments), blocks(src, dst, moments, size=501)):
            for window in ("7ms", "0.007 s"):
                found = sense(source, window=window, engine=engine)
                if found.windows.table.size == 0:
                    continue  # an iterator is read once
                assert list(found.windows) == right
                assert found.windows.time.tolist() == moments[starts].tolist()
    dropped = sense((src, dst, time), window="7ms", partial="drop", engine=engine)
    assert len(dropped.windows) == len(right) - 1


def test_a_window_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr(running, "CHUNK", 100)
    src, dst = zipf(5000)
    time = np.arange(5000)
    found = sense(blocks(src, dst, time, size=64), window="3us")
    assert list(found.windows) == [
        traffic_statistics((src[a:b], dst[a:b])) for a, b in ((0, 3000), (3000, 5000))
    ]
    assert sense(blocks(src, dst), window=3000).statistics == found.statistics


class Flip:
    """A bijection in the place of an anonymizer."""

    def apply(self, addresses):
        return addresses ^ np.uint32(0xA5A5A5A5)


@pytest.mark.parametrize("engine", ENGINES)
def test_anonymity_comes_after_ranges(engine):
    src, dst = official()
    plain = sense((src, dst), ranges=[["0.0.0.0", "0.0.0.2"]], engine=engine)
    hidden = sense((src, dst), ranges=[["0.0.0.0", "0.0.0.2"]], anonymize=Flip(), engine=engine)
    assert hidden.blocks == plain.blocks
    assert hidden.statistics == plain.statistics
    assert not np.isin(hidden.matrix.sources, plain.matrix.sources).any()


@pytest.mark.slow
def test_no_original_address_reaches_the_disk(monkeypatch):
    folders = []
    make = tempfile.mkdtemp

    def seen(*args, **options):
        folders.append(make(*args, **options))
        return folders[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", seen)
    src, dst = uniform(100_000)
    found = sense(blocks(src, dst), memory=10**6, window=1000, anonymize=Flip())
    assert os.stat(folders[0]).st_mode & 0o777 == 0o700
    needles = {int(x).to_bytes(4, "little") for x in src[:200]}
    for path in Path(folders[0]).iterdir():
        words = np.frombuffer(path.read_bytes(), np.uint32)
        assert not needles & {word.tobytes() for word in words}
    assert found.statistics == traffic_statistics((src, dst))


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """A folder for files on the way, where no other process puts its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_files_go_with_the_matrix(temporary):
    found = sense(blocks(*uniform(100_000)), memory=10**6, window=1000)
    memory = found.matrix.counts
    while isinstance(memory, (np.ndarray, memoryview)):
        memory = memory.obj if isinstance(memory, memoryview) else memory.base
    assert isinstance(memory, mmap.mmap)
    assert list(temporary.iterdir())
    del found
    assert not list(temporary.iterdir())


def test_ctrl_c_stops_and_leaves_no_files(temporary):
    src, dst = uniform(100_000)

    def endless():
        for k in range(10_000):
            if k == 5:
                threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
            yield src, dst

    with pytest.raises(KeyboardInterrupt):
        sense(endless(), memory=10**6, window=1000)
    assert not list(temporary.iterdir())


def test_a_capture_with_everything(data_folder):
    path = data_folder / "pcap" / "ndpi_gnutella.pcap.gz"
    found = sense(path, window=1000)
    assert found.statistics.valid_packets == 3814
    assert (found.statistics.unique_sources, found.statistics.unique_destinations) == (131, 510)
    assert found.statistics.unique_links == 638
    assert sum(found.capture["skipped"].values()) == 3905 - 3814
    twice = sense([path, str(path)], window=1000)
    assert twice.statistics.valid_packets == 2 * 3814
    assert twice.statistics.unique_links == 638
    assert twice.capture["bytes"] == 2 * found.capture["bytes"]
    assert found.windows.time is not None


def test_the_merged_packets(data_folder):
    with np.load(data_folder / "pcap" / "ipv4_packets_merged.npz") as merged:
        found = sense((merged["src"], merged["dst"]))
    s = found.statistics
    assert s.valid_packets == 363_928
    assert (s.unique_sources, s.unique_destinations, s.unique_links) == (3136, 3412, 6160)
    assert len(found.windows) == 3


def test_nothing_at_all():
    for source in (iter([]), uniform(0), blocks(*uniform(0))):
        found = sense(source)
        assert found.statistics == traffic_statistics(uniform(0))
        assert (len(found.windows), found.matrix.links) == (0, 0)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"window": 0}, ValueError, "window must be at least 1"),
        ({"window": 1.5}, TypeError, "window must be an integer"),
        ({"window": "ten"}, ValueError, "window must be a number of packets or a time"),
        ({"window": "0s"}, ValueError, "window must be a time of at least 1 ns"),
        ({"window": "1s"}, ValueError, "window is a time, and the packets have none"),
        ({"partial": "maybe"}, ValueError, "partial must be one of"),
        ({"compat": 1}, TypeError, "compat must be True or False"),
        ({"memory": "lots"}, ValueError, "memory must be bytes"),
        ({"memory": 5}, ValueError, "memory must be at least"),
        ({"batches": 0}, ValueError, "batches must be at least 1"),
        ({"devices": [0]}, ValueError, "devices are for the GPU engine"),
        ({"ranges": 3}, TypeError, "ranges must be"),
        ({"key": b"k" * 32}, ValueError, "key is for a method"),
        ({"engine": "tpu"}, ValueError, "engine must be"),
        ({"anonymize": "rot13"}, ValueError, "method must be one of"),
        ({"anonymize": "permutation", "key": b"short"}, ValueError, "key must have 32 bytes"),
        ({"anonymize": "truncate"}, ValueError, "the method 'truncate' needs bits="),
        ({"anonymize": "truncate", "bits": 33}, ValueError, "bits must be"),
        ({"anonymize": "permutation", "key": b"k" * 32, "bits": 8}, ValueError, "the method"),
        ({"bits": 8}, ValueError, "bits is for a method"),
    ],
)
def test_arguments_that_are_none(options, error, text):
    with pytest.raises(error, match="sense: " + text):
        sense(tiny(), **options)


@pytest.mark.parametrize("engine", ["reference", *ENGINES])
@pytest.mark.parametrize("options", [{"anonymize": "truncate", "bits": 16},
                                     {"anonymize": "permutation", "key": b"k" * 32}])  # fmt: skip
def test_methods_of_anonymity_by_name(options, engine):
    src, dst = uniform(500)
    found = sense((src, dst), engine=engine, threads=None if engine == "gpu" else 1, **options)
    method, rest = options["anonymize"], {k: options[k] for k in options if k != "anonymize"}
    assert found.matrix == traffic_matrix(
        *(anonymize(addresses, method, **rest) for addresses in (src, dst))
    )


def test_threads_are_those_of_the_anonymizer_too(monkeypatch):
    from matchwood.sensing import Anonymizer

    seen = []
    apply = Anonymizer.apply
    monkeypatch.setattr(
        Anonymizer, "apply", lambda self, x, **o: seen.append(o["threads"]) or apply(self, x, **o)
    )
    sense(uniform(100), anonymize="permutation", key=b"k" * 32, threads=3)
    assert set(seen) == {3}


@pytest.mark.gpu
def test_addresses_on_a_gpu_are_permuted_there(monkeypatch):
    """They were copied to the host and back."""
    from matchwood.applications.sensing.anonymity import gpu

    seen = []
    permuted = gpu.permuted
    monkeypatch.setattr(gpu, "permuted", lambda *a: seen.append(a[0].size) or permuted(*a))
    src, dst = uniform(1000)
    key = b"k" * 32
    there = [engines.moved(x, "gpu") for x in (src, dst)]
    found = sense(tuple(there), anonymize="permutation", key=key)
    assert seen == [1000, 1000]
    assert found.matrix == sense((src, dst), anonymize="permutation", key=key).matrix


@pytest.mark.parametrize("engine", ["reference", *ENGINES])
def test_traffic_of_ipv6(engine, tmp_path):
    """Numbers of a table stand for addresses of 128 bits; statistics do not depend on them."""
    pytest.importorskip("cryptography")
    rng = np.random.default_rng(5)
    known = rng.integers(0, 2**63, (40, 2)).astype(np.uint64)
    known[:, 0] >>= np.uint64(1)
    known[20:, 0] = known[:20, 0]  # the same networks
    src, dst = (rng.integers(0, 40, 1000) for _ in range(2))
    right = sense((src, dst), window=100)
    wide = known[src], known[dst]
    found = sense(wide, window=100, version=6, engine=engine)
    assert found.statistics == right.statistics
    assert list(found.windows) == list(right.windows)
    place = found.addresses.numbers(known)
    assert found.matrix == traffic_matrix(place[src], place[dst])
    key = bytes(range(32))
    hidden = sense(wide, window=100, version=6, engine=engine, anonymize="cryptopan", key=key)
    assert hidden.matrix == found.matrix
    assert np.array_equal(
        hidden.addresses.addresses(), anonymize(found.addresses.addresses(), "cryptopan", key)
    )
    short = sense(wide, version=6, engine=engine, anonymize="truncate", bits=64)
    assert short.statistics == sense((src % 20, dst % 20)).statistics
    path = tmp_path / "six.pcap"
    words = np.concatenate(wide, axis=1).astype(">u8")
    path.write_bytes(frames.pcap([b"`" + bytes(5) + b"\x11@" + row.tobytes() for row in words]))
    again = sense(path, window=100, version=6, engine=engine)
    assert again.matrix == found.matrix
    assert again.top_talkers(3) == found.top_talkers(3)
    for options in ({"ranges": [["10.0.0.0/8"]]}, {"compat": True}):
        with pytest.raises(ValueError, match="are of IPv4, got version 6"):
            sense(wide, version=6, **options)
    with pytest.raises(TypeError, match="addresses of IPv6 must be a uint64 array of two a row"):
        sense((src, dst), version=6)
    half = types.SimpleNamespace(apply=lambda addresses: addresses[::2])
    with pytest.raises(ValueError, match="anonymize: addresses must have the size of those it was"):
        sense(wide, version=6, anonymize=half)
    with pytest.raises(TypeError, match="AddressTable: change must be callable"):
        AddressTable(3)


def test_addresses_that_mix_to_one_number_are_told_apart(monkeypatch):
    from matchwood.applications.sensing import packets

    rows = np.array([[1, 2], [2, 1], [1, 2], [0, 3], [2, 1]], np.uint64)
    right = packets.AddressTable().numbers(rows)
    assert right.tolist() == [0, 1, 0, 2, 1]
    monkeypatch.setattr(packets, "MIX", np.array([1, 1], np.uint64))  # 1 ^ 2 == 2 ^ 1 == 0 ^ 3
    assert np.array_equal(packets.AddressTable().numbers(rows), right)


def test_names_of_maxima_and_of_top_talkers():
    found = sense(official())
    A, s = found.matrix, found.statistics
    src, dst, packets = A.tocoo()
    names = A.maxima()
    attained = {
        "max_link_packets": "links_at_max_packets",
        "max_source_packets": "sources_at_max_packets",
        "max_source_fan_out": "sources_at_max_fan_out",
        "max_destination_packets": "destinations_at_max_packets",
        "max_destination_fan_in": "destinations_at_max_fan_in",
    }
    assert {name: len(some) for name, some in names.items()} == {
        name: getattr(s, many) for name, many in attained.items()
    }
    for a, b in names["max_link_packets"]:
        assert packets[(src == a) & (dst == b)] == [s.max_link_packets]
    for a in names["max_source_packets"]:
        assert packets[src == a].sum() == s.max_source_packets
    for b in names["max_destination_fan_in"]:
        assert (dst == b).sum() == s.max_destination_fan_in
    assert found.maxima()["max_source_fan_out"] == ["0.0.0.0"]
    first, second = found.top_talkers(2)
    assert (first, second) == (("0.0.0.2", 7, 3), ("0.0.0.3", 7, 3))
    assert len(found.top_talkers(100)) == s.unique_sources
    empty = sense(uniform(0))
    assert empty.top_talkers(3) == []
    assert all(len(some) == 0 for some in empty.maxima().values())
    with pytest.raises(ValueError, match="top_talkers: k must be at least 0"):
        found.top_talkers(-1)


@pytest.mark.parametrize("engine", ["reference", *ENGINES])
def test_names_with_compat_are_those_of_the_hosts(engine, tmp_path):
    """Numbers that were read with their bytes reversed were shown as other addresses."""
    path = tmp_path / "x.pcap"
    path.write_bytes(frames.pcap(frames.example()))
    found = sense(path, compat=True, window=8, engine=engine)
    assert found.top_talkers(1) == [("10.0.0.1", 3, 2)]
    assert found.maxima()["max_link_packets"] == [("10.0.0.4", "10.0.0.3")]
    assert found.matrix.sources.tolist()[0] == 16777226
    with archive_writer(tmp_path / "a.tar", compression=None) as writer:
        sense(path, compat=True, window=8, on_window=writer.add)
    again = sense(tmp_path / "a.tar", compat=True, anonymize="truncate", bits=8, engine=engine)
    assert again.top_talkers(1) == [("10.0.0.0", 8, 1)]
    one = np.array([16777226], np.uint32)
    given = sense((one, one), compat=True, window=1, engine=engine)
    assert given.top_talkers(1) == [("1.0.0.10", 1, 1)]  # arrays are not turned


@pytest.mark.parametrize("engine", ["reference", *ENGINES])
def test_archives_keep_the_times_of_windows(engine, tmp_path):
    src, dst = uniform(400)
    times = 1_700_000_000_123_456_789 + 1001 * np.arange(400)
    seen = []
    with archive_writer(tmp_path / "a.tar", compression=None) as writer:
        right = sense((src, dst, times), window=100, on_window=writer.add)
    found = sense(tmp_path / "a.tar", engine=engine, on_window=lambda _, time: seen.append(time))
    assert found.windows.time.tolist() == right.windows.time.tolist() == seen
    with tarfile.open(tmp_path / "a.tar") as archive:  # a usual header: others read it too
        assert [round(member.mtime) for member in archive] == [1_700_000_000] * 4
        assert archive.getnames() == ["0.grb", "1.grb", "2.grb", "3.grb"]
    assert [matrix.time for matrix in read_archive(tmp_path / "a.tar")] == seen
    A = traffic_matrix(src, dst)
    old = (-5, -1_500_000_000, 0, 5, None)
    written = write_archive(tmp_path / "b.tar", [A] * 5, times=old, compression=None)
    assert [matrix.time for matrix in read_archive(written[0])] == list(old)
    seen.clear()  # one of a window without packets too
    none = traffic_matrix(src[:0], dst[:0])
    write_archive(tmp_path / "c.tar", [A, none, A], times=[1, 2, 3], compression=None)
    found = sense(tmp_path / "c.tar", engine=engine, on_window=lambda _, time: seen.append(time))
    assert found.windows.time.tolist() == seen == [1, 2, 3]
    # those of others may be more than 64 bits hold
    for second, nearest in ((b"9999999999", 2**63 - 1), (b"-999999999", -999_999_999 * 10**9)):
        write_archive(tmp_path / "d.tar", [A], times=[frames.SECOND * 10**9], compression=None)
        content = (tmp_path / "d.tar").read_bytes().replace(b"=%d" % frames.SECOND, b"=" + second)
        (tmp_path / "d.tar").write_bytes(content)
        found = sense(tmp_path / "d.tar", engine=engine)
        assert found.windows.time.tolist() == [nearest]


@pytest.mark.parametrize("engine", ENGINES)
def test_matrices_of_all_kinds(engine, tmp_path, monkeypatch):
    """Small ones are worked on many at once, in order with those of many packets and of none."""
    monkeypatch.setattr(running, "CHUNK", 1000)  # packets of which few windows become a group
    links = np.arange(50, dtype=np.uint32)
    heavy = traffic_matrix(np.repeat(links, 90), np.repeat(links % 7, 90))
    none = traffic_matrix(links[:0], links[:0])
    few = [traffic_matrix(*(x % 64 for x in uniform(300, 7 + k))) for k in range(9)]
    several = traffic_matrix(np.repeat(links, 3), np.repeat(links % 5, 3))
    given = [*few[:4], heavy, few[4], none, several, *few[5:], none, heavy, several]
    path = write_archive(tmp_path / "a.tar", given, compression=None)[0]
    seen = []
    found = sense(path, engine=engine, on_window=lambda matrix, time: seen.append(matrix))
    right = sense(path, engine="reference")
    assert found.windows == right.windows
    assert found.statistics == right.statistics
    assert found.matrix == right.matrix
    assert seen == given


def test_batches_of_captures_and_of_archives(tmp_path, monkeypatch):
    src, dst = uniform(5 * W)
    right = sense((src, dst), window=W)
    sizes = []
    whole = stream_cpu.Worker.windows
    monkeypatch.setattr(running, "CHUNK", 4 * W)
    monkeypatch.setattr(
        stream_cpu.Worker,
        "windows",
        lambda self, src, *rest: sizes.append(src.size) or whole(self, src, *rest),
    )
    found = sense(blocks(src, dst), window=W, batches=2)
    assert sizes == [2 * W, 2 * W, W]
    assert found.matrix == right.matrix
    with archive_writer(tmp_path / "a.tar") as writer:
        sense((src, dst), window=W, on_window=writer.add)
    again = sense(tmp_path / "a.tar")
    assert list(again.windows) == list(right.windows)
    assert again.windows.time is None
    with pytest.raises(ValueError, match="sense: batches are parts of packets, and the source has"):
        sense(tmp_path / "a.tar", batches=2)


@pytest.mark.parametrize("source", [3, None, 1.5])
def test_sources_that_are_none(source):
    with pytest.raises(TypeError, match="sense: source must be"):
        sense(source)


def test_blocks_that_are_none():
    with pytest.raises(TypeError, match="sense: source must give blocks"):
        sense(iter([3]))
    with pytest.raises(ValueError, match="sense: dst must have the size of src"):
        sense((np.zeros(3, np.uint32), np.zeros(2, np.uint32)))


def test_sizes_and_times_as_text():
    assert [byte_size("f", "memory", text) for text in ("512MB", "1 GiB", "2000000", "3mb")] == [
        512 * 10**6,
        1 << 30,
        2 * 10**6,
        3 * 10**6,
    ]
    assert parse_window("f", "1.5 us").length == 1500
    assert parse_window("f", "2min").length == 120 * 10**9

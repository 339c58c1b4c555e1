"""Ctrl-C while packets are read, counted, added up and summed: soon, and nothing is left behind."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from matchwood import generators
from matchwood.applications.sensing.stream import running
from matchwood.io import files
from matchwood.sensing import (
    Anonymizer,
    Packets,
    archive_writer,
    iter_capture,
    read_capture,
    sense,
    traffic_matrix,
    write_archive,
    write_capture,
)
from support import in_time

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "pthread_kill"), reason="no way to send Ctrl-C to a thread here"
)

LIMIT = 0.1  # seconds from the signal to the exception
N = 1 << 18


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Path:
    src, dst = generators.packets(N, rng=1)
    path = tmp_path_factory.mktemp("captures") / "x.pcap"
    write_capture(path, Packets(src, dst, np.arange(N), src * 0 + 60, np.zeros(N, np.uint8)))
    return path


class Endless:
    """A capture without an end, by a stream."""

    name = "endless"

    def __init__(self, content: bytes) -> None:
        self._first, self._records = content[:24], content[24:]

    def read(self, count: int) -> bytes:
        if self._first:
            found, self._first = self._first[:count], self._first[count:]
            return found
        return self._records


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch) -> None:
    """Files go where no other process puts its own, so that what is left behind is ours."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture(autouse=True, params=[True, False], ids=["", "calls go on"])
def system_calls_end(request) -> Iterator[None]:
    """Whether a signal ends system calls; where Polars is imported, it does not."""
    signal.siginterrupt(signal.SIGINT, request.param)
    yield
    signal.siginterrupt(signal.SIGINT, True)


@contextlib.contextmanager
def interrupted(begun: threading.Event, taken: list[float], delay: float):
    """Send Ctrl-C some time after `begun`; how long it takes from there goes to `taken`."""
    sent = []

    def send():
        begun.wait(30)
        time.sleep(delay)
        sent.append(time.perf_counter())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=send)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        try:
            yield
        finally:
            taken.append(time.perf_counter() - sent[0] if sent else float("inf"))
            thread.join()  # the signal comes here if the call was quicker than it
            time.sleep(0.001)


def left_behind() -> list[Path]:
    return list(Path(tempfile.gettempdir()).iterdir())


def soon(attempt, delay: float = 0.0) -> None:
    """Some try is in time, and none leaves files."""
    taken: list[float] = []

    def measure() -> float:
        begun = threading.Event()
        with interrupted(begun, taken, delay + 0.003 * (len(taken) % 6 + 1)):
            attempt(begun)
        assert not left_behind()
        return taken[-1]

    in_time(measure, LIMIT)


def always_soon(call) -> None:
    """The same at several moments of a call that takes long."""
    began = time.perf_counter()
    call()
    lasts = time.perf_counter() - began

    def attempt(begun):
        begun.set()
        while True:
            call()

    for part in (0.3, 0.7):
        soon(attempt, part * lasts)


def test_while_a_file_is_read(capture):
    read_capture(capture, threads=2)

    def attempt(begun):
        begun.set()
        while True:
            read_capture(capture, threads=2)

    soon(attempt)


def test_while_a_stream_is_read(capture):
    content = capture.read_bytes()

    def attempt(begun):
        for _ in iter_capture(Endless(content), packets=1 << 22, threads=2):
            begun.set()

    soon(attempt)


@pytest.mark.parametrize("memory", [None, 4 * 10**6])
def test_while_windows_are_counted_and_added_up(capture, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "CHUNK", 1 << 19)
    files = [capture] * 1000

    def attempt(begun):
        with archive_writer(f"{tmp_path}/out/", each=10**6, compression=None) as writer:
            sense(files, window=1 << 16, memory=memory, threads=2, on_window=writer.add,
                  on_chunk=lambda _: begun.set())  # fmt: skip

    soon(attempt)
    assert list((tmp_path / "out").iterdir()) == []  # the file under way is gone


@pytest.mark.slow
def test_while_sums_on_disk_are_put_together(monkeypatch):
    total_of, events = running.total_of, []

    def told(*arguments):
        events[-1].set()
        return total_of(*arguments)

    monkeypatch.setattr(running, "total_of", told)
    packets = [generators.packets(N, rng=k) for k in range(6)]

    def attempt(begun):
        events.append(begun)
        sense(iter(packets), memory=2 * 10**6, window=1 << 14, threads=2)

    soon(attempt)
    found = sense(iter(packets[:1]), memory=2 * 10**6, threads=2)  # threads work as before
    assert found.statistics.valid_packets == N


@pytest.fixture(scope="module")
def many() -> tuple[np.ndarray, np.ndarray]:
    """Packets whose links take seconds to sort or to compress in one call."""
    rng = np.random.default_rng(2)
    return tuple(rng.integers(0, 2**32, (2, 1 << 22), dtype=np.uint32))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_while_an_archive_is_written(many, threads, tmp_path):
    A = traffic_matrix(*many)
    always_soon(lambda: write_archive(tmp_path / "x.tar", [A], threads=threads))
    assert len([file for file in tmp_path.iterdir() if file.is_file()]) == 1  # nothing half made


def test_while_a_slow_disk_takes_an_archive(tmp_path, monkeypatch):
    A, begun, fsync = traffic_matrix(np.arange(9), np.arange(9)), threading.Event(), os.fsync

    def slow(number: int) -> None:
        begun.set()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)  # which hears no signal, as a disk
        fsync(number)

    monkeypatch.setattr(files.os, "fsync", slow)

    def attempt(started):
        begun.clear()
        threading.Thread(target=lambda: begun.wait(30) and started.set()).start()
        write_archive(tmp_path / "x.tar", [A])

    soon(attempt)
    assert not [file for file in tmp_path.iterdir() if file.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_while_addresses_are_hidden(many, threads):
    pytest.importorskip("cryptography")
    hides = Anonymizer("cryptopan", bytes(32))
    hides(many[0][:100_000], threads=threads)
    always_soon(lambda: hides(many[0], threads=threads))


@pytest.mark.slow
def test_while_one_large_window_is_sorted(many):
    sense((many[0][:1000], many[1][:1000]), window=1000, threads=1)
    always_soon(lambda: sense(many, window=1 << 22, threads=1))

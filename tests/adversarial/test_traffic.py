"""Random traffic in random ways: chunks, memory, threads, strides, sums; against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from adversarial.clock import attempts
from matchwood.primitives.sort import cpu_keys
from matchwood.sensing import (
    sense,
    sliding_statistics,
    sum_matrices,
    traffic_histograms,
    traffic_matrix,
    traffic_statistics,
)
from matchwood.sensing.sliding.check import check_sliding
from matchwood.sensing.statistics.check import check_histograms, check_statistics
from matchwood.sensing.stream import cpu as stream_cpu
from matchwood.sensing.stream import running, sums
from matchwood.sensing.traffic import cpu_runs, cpu_walk
from matchwood.sensing.traffic.check import check_traffic_matrix


def random_traffic(rng):
    """Few or many addresses, at the ends of the range or not, with heavy hitters or not."""
    n = int(rng.integers(0, 3000))
    width = int(rng.integers(0, 33))
    src, dst = rng.integers(0, 1 << width, (2, n)).astype(np.uint32)
    if rng.random() < 0.3:
        src = ~src
    if rng.random() < 0.3:
        dst = ~dst
    for array in (src, dst):
        if n and rng.random() < 0.4:
            array[rng.random(n) < 0.6] = array[0]
        if rng.random() < 0.2:
            array.sort()
    return src, dst


@pytest.fixture
def small_parts(monkeypatch):
    """Limits so low that small traffic goes the ways of large traffic."""
    monkeypatch.setattr(cpu_keys, "WHOLE", 64)
    monkeypatch.setattr(cpu_keys, "ALONE", 128)
    monkeypatch.setattr(cpu_walk, "WHOLE", 64)
    monkeypatch.setattr(cpu_runs, "SMALL", 32)
    monkeypatch.setattr(sums, "SAMPLE", 8)


def test_matrices_and_statistics(small_parts):
    rng = np.random.default_rng(16)
    for _ in attempts(1):
        src, dst = random_traffic(rng)
        threads = int(rng.integers(1, 6))
        A = traffic_matrix(src, dst, threads=threads)
        check_traffic_matrix(src, dst, A)
        found = traffic_statistics((src, dst), threads=threads, batches=int(rng.integers(1, 5)))
        check_statistics(A, found)
        assert traffic_statistics(A, threads=threads) == found
        check_histograms((src, dst), traffic_histograms(A, threads=threads))
        cuts = np.sort(rng.integers(0, src.size + 1, int(rng.integers(0, 9))))
        parts = np.split(np.stack([src, dst]), cuts, axis=1)
        some = (traffic_matrix(np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in parts)
        assert sum_matrices(some, threads=threads) == A


def test_streams(small_parts, monkeypatch):
    rng = np.random.default_rng(17)
    for _ in attempts(1):
        src, dst = random_traffic(rng)
        time = np.cumsum(rng.integers(0, 50, src.size)) + rng.integers(-20, 20, src.size)
        window = int(rng.integers(1, 400)) if rng.random() < 0.7 else f"{rng.integers(1, 5000)}ns"
        monkeypatch.setattr(running, "CHUNK", int(rng.integers(1, 2000)))
        monkeypatch.setattr(running, "RUNS_PART", int(rng.choice([10, 1000, 100_000])))
        monkeypatch.setattr(stream_cpu, "FEWER", int(rng.integers(1, 4)))
        options = {
            "window": window,
            "threads": int(rng.integers(1, 4)),
            "partial": str(rng.choice(["keep", "drop"])),
            "memory": rng.choice([None, 10**6]),
        }
        size = int(rng.integers(1, 700))
        blocks = [
            (src[k : k + size], dst[k : k + size], time[k : k + size])
            for k in range(0, src.size, size)
        ]
        whole = sense((src, dst, time), **options, batches=int(rng.integers(1, 4)))
        found = sense(iter(blocks), **options)
        assert found.windows == whole.windows
        assert found.matrix == whole.matrix
        kept = src.size - found.capture["dropped"]
        assert int(found.windows.valid_packets.sum()) == kept
        assert found.matrix == traffic_matrix(src[:kept], dst[:kept])
        check_statistics((src[:kept], dst[:kept]), found.statistics)
        check_histograms((src[:kept], dst[:kept]), found.histograms)
        ends = [*found.windows.first.tolist(), kept]
        for k, row in enumerate(found.windows):
            assert row == traffic_statistics(
                (src[ends[k] : ends[k + 1]], dst[ends[k] : ends[k + 1]]), engine="reference"
            )


def test_sliding_windows():
    rng = np.random.default_rng(18)
    for _ in attempts(0.7):
        src, dst = random_traffic(rng)
        window, stride = int(rng.integers(1, 300)), int(rng.integers(1, 20))
        found = sliding_statistics(src, dst, window, stride, threads=int(rng.integers(1, 5)))
        check_sliding(src, dst, found)

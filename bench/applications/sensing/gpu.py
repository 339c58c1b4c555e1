"""Traffic statistics on a GPU: verified against the CPU, then timed by events.

    python -m bench.applications.sensing.gpu                  # 2^27 and 2^30 packets
    python -m bench.applications.sensing.gpu --small          # 2^24 only

Packets that are on the device already; a matrix that is prepared; packets in pinned host memory of
four times the memory that the device may use, against the time that the copies alone take.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

ROUNDS = 5


def device_seconds(function: Any, rounds: int = ROUNDS) -> list[float]:
    """Seconds of calls that end when the device has finished."""
    import cupy

    function()
    times = []
    for _ in range(rounds):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        function()
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return times


def tell(name: str, times: list[float], packets: int, **more: Any) -> None:
    median = statistics.median(times)
    told = {
        "name": name,
        "median_ms": round(1e3 * median, 3),
        "best_ms": round(1e3 * min(times), 3),
        "packets_per_s": round(packets / median),
        **more,
    }
    print(json.dumps(told), flush=True)


def uniform(n: int, seed: int = 1) -> tuple[Any, Any]:
    """Packets of random addresses on the device."""
    import cupy

    rng = cupy.random.default_rng(seed)
    return tuple(rng.integers(0, 2**32, n, dtype=cupy.uint32) for _ in range(2))  # type: ignore[return-value]


def zipf(n: int, hosts: int = 1 << 20, seed: int = 2) -> tuple[Any, Any]:
    """Packets among hosts of which few have most."""
    import cupy

    rng = cupy.random.default_rng(seed)
    weights = cupy.cumsum(1 / cupy.arange(1, hosts + 1, dtype=cupy.float64) ** 1.3)
    names = rng.integers(0, 2**32, hosts, dtype=cupy.uint32)
    return tuple(names[cupy.searchsorted(weights, rng.random(n) * weights[-1])] for _ in range(2))  # type: ignore[return-value]


def resident(exponent: int, bar: float) -> None:
    """Packets that are on the device already, and a matrix that is prepared."""
    packets_to_statistics("uniform", uniform, exponent, bar)
    if exponent <= 28:
        packets_to_statistics("zipf", zipf, exponent, None)
    matrix_to_statistics(exponent)


def packets_to_statistics(kind: str, make: Any, exponent: int, bar: float | None) -> None:
    import cupy

    from matchwood.sensing import traffic_statistics

    n = 1 << exponent
    src, dst = make(n)
    times = device_seconds(lambda: traffic_statistics((src, dst)))
    tell(f"2^{exponent} {kind} packets to nine quantities", times, n, bar_ms=bar)
    keys = src.astype(cupy.uint64) << cupy.uint64(32) | dst
    spare = cupy.empty_like(keys)

    def sort() -> None:
        cupy.copyto(spare, keys)
        spare.sort()

    tell(f"2^{exponent} {kind} keys copied and sorted by CuPy", device_seconds(sort, 3), n)


def matrix_to_statistics(exponent: int) -> None:
    import cupy

    from matchwood.sensing import traffic_matrix, traffic_statistics

    n = 1 << exponent
    packets = uniform(n)
    matrix = traffic_matrix(*packets)
    assert traffic_statistics(matrix) == traffic_statistics(packets)
    times = device_seconds(lambda: traffic_statistics(matrix))
    tell(f"prepared matrix of 2^{exponent} packets to nine quantities", times, n, bar_ms=30.0)
    cupy.get_default_memory_pool().free_all_blocks()


def from_host(exponent: int, batches: int, kind: str = "uniform", devices: Any = None) -> None:
    """Packets in pinned memory of four times what the device may use."""
    import cupy
    import cupyx

    from matchwood.sensing import traffic_statistics

    n = 1 << exponent
    pool = cupy.get_default_memory_pool()
    host = []
    for array in {"uniform": uniform, "zipf": zipf}[kind](n):
        pinned = cupyx.empty_pinned(n, array.dtype)
        array.get(out=pinned)
        host.append(pinned)
    del array
    right = traffic_statistics(tuple(cupy.asarray(x) for x in host))
    pool.free_all_blocks()
    limit = 8 * n // 4
    pool.set_limit(size=limit)
    try:
        given = {"engine": "gpu", "batches": batches, "devices": devices}
        assert traffic_statistics(tuple(host), **given) == right
        times = device_seconds(lambda: traffic_statistics(tuple(host), **given), 5)
    finally:
        pool.set_limit(size=0)
        pool.free_all_blocks()
    once, all_bytes = copy_seconds(8 * n), copy_seconds(16 * n)
    median = statistics.median(times)
    more = {"ratio_to_one_copy": round(median / once, 3)}
    if kind == "uniform":  # of other packets less is copied
        more["all_copies_in_ms"] = round(1e3 * all_bytes, 1)
        more["ratio_to_all_copies"] = round(median / all_bytes, 3)
    tell(f"2^{exponent} {kind} packets from pinned memory, {limit >> 20} MiB of device memory",
         times, n, batches=batches, devices=devices, links=right.unique_links,
         copy_in_once_ms=round(1e3 * once, 1), **more)  # fmt: skip


def copy_seconds(nbytes: int) -> float:
    """Seconds to copy so many bytes from pinned memory to the device."""
    import cupy
    import cupyx

    size = min(nbytes, 1 << 30)
    host, there = cupyx.empty_pinned(size, "u1"), cupy.empty(size, "u1")
    best = min(device_seconds(lambda: there.set(host), 5))
    return best * nbytes / size


def sliding(exponent: int = 24, window: int = 1 << 17) -> None:
    """All nine quantities after every packet."""
    from matchwood.applications.sensing.sliding.check import check_sliding
    from matchwood.sensing import sliding_statistics

    n = 1 << exponent
    for kind, make in (("uniform", uniform), ("zipf", zipf)):
        few = make(1 << 16)
        check_sliding(*few, sliding_statistics(*few, 3000))
        packets = make(n)
        times = device_seconds(lambda packets=packets: sliding_statistics(*packets, window))
        tell(f"window of {window} sliding over 2^{exponent} {kind} packets", times, n)


def agree(exponent: int = 20) -> None:
    """Every way on the device gives the CPU's integers."""
    from matchwood.sensing import sense, traffic_statistics

    for kind, make in (("uniform", uniform), ("zipf", zipf)):
        there = make(1 << exponent)
        here = tuple(x.get() for x in there)
        right = traffic_statistics(here)
        assert traffic_statistics(there) == right
        for batches in (1, 5, 10):
            for devices in (None, [0, 0], [0, 0, 0]):
                found = traffic_statistics(here, engine="gpu", batches=batches, devices=devices)
                assert found == right, (kind, batches, devices, found, right)
        ours, theirs = sense(here), sense(there)
        assert ours.windows == theirs.windows
        assert ours.statistics == theirs.statistics == right
        assert ours.histograms == theirs.histograms
        print(json.dumps({"agrees": kind}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--host", action="store_true", help="packets in host memory only")
    options = parser.parse_args()
    if options.host:
        for exponent, batches, kind in (
            (30, 48, "uniform"), (30, 40, "uniform"), (30, 48, "zipf"), (28, 48, "uniform"),
        ):  # fmt: skip
            try:
                from_host(exponent, batches, kind)
            except MemoryError as error:
                print(json.dumps({"exponent": exponent, "batches": batches, "error": str(error)}))
        return
    agree()
    sliding()
    if options.small:
        resident(24, 28.0)
        from_host(26, 48)
        return
    resident(27, 28.0)
    from_host(30, 48)
    resident(30, 300.0)


if __name__ == "__main__":
    main()

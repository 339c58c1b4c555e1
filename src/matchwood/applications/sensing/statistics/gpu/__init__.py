"""The nine quantities on the GPU.  Steps and kernels: traffic/gpu.py and traffic/gpu.cu.

Packets are sorted as links, destinations of links once more.  Maxima are found by every block of a
grid, and the few blocks' numbers by the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics.gpu.batches import (
    batched_statistics as batched_statistics,
)
from matchwood.applications.sensing.statistics.result import (
    NAMES,
    PLACE,
    Histograms,
    Statistics,
    from_extremes,
    histograms_of,
)
from matchwood.applications.sensing.traffic import gpu as links
from matchwood.applications.sensing.traffic.result import Run
from matchwood.engines import gpu


def packet_statistics(src: Any, dst: Any, *, threads: int | None = None) -> Statistics:
    n = src.size
    if n == 0:
        return Statistics()
    with gpu.guard("traffic_statistics", 24 * n):
        return of_sorted_packets(links.sorted_packets(src, dst))


def _destination_side(destinations: Any, counts: Any, most: int) -> tuple[int, Any, Any]:
    """(number of destinations, most packets, most links); the largest link has `most` packets.

    `destinations` are overwritten where every link has one packet.
    """
    if most == 1:
        links.sort(destinations)
        starts, _ = links.heads(destinations)
        fan_in = links.largest(links.largest_gap(starts, destinations.size))
        return int(starts.size), fan_in, fan_in
    sums = links.destination_sums(destinations, counts)
    packets, fan_in = (links.largest_value(part) for part in (sums.packets, sums.fan_in))
    return int(sums.fan_in.size), links.largest(packets), links.largest(fan_in)


def of_sorted_packets(keys: Any) -> Statistics:
    """Statistics of sorted keys; drops its reference to them."""
    n = int(keys.size)
    found = links.links_of_sorted(keys)
    del keys
    size, sources = int(found.starts.size), int(found.source_starts.size)
    link, source, fan_out = map(links.largest, links.source_parts(found, n))
    counts = links.gaps(found.starts, n, np.uint32 if link.value < links.FITS else np.int64)
    destinations = found.destinations
    del found
    number, packets, fan_in = _destination_side(destinations, counts, link.value)
    return from_extremes(n, size, sources, number, (link, source, fan_out, packets, fan_in))


def matrix_statistics(matrix: Any, *, threads: int | None = None) -> Statistics:
    """Statistics of a matrix; the sums of its sources and destinations are kept with it."""
    if matrix.links == 0:
        return Statistics()
    rows = matrix.source_sums()
    sums = matrix.destination_sums()
    parts = [
        links.largest_value(matrix.counts),
        links.largest_value(rows),
        links.largest_gap(matrix.indptr[:-1].view(np.uint64), matrix.links),
        links.largest_value(sums.packets),
        links.largest_value(sums.fan_in),
    ]
    sources, destinations = int(rows.size), int(sums.fan_in.size)
    extremes = map(links.largest, parts)
    return from_extremes(matrix.packets, matrix.links, sources, destinations, extremes)


def counted(values: Any) -> tuple[Any, Any]:
    """The different values and how often each occurs, on the CPU."""
    if values.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ordered = values.astype(np.uint64)
    ordered.sort()
    starts, different = links.heads(ordered)
    counts = links.gaps(starts, values.size)
    return different.get().astype(np.int64), counts.get()


def matrix_histograms(matrix: Any, *, threads: int | None = None) -> Histograms:
    sums = matrix.destination_sums()
    made = {
        "source_packets": counted(matrix.source_sums()),
        "source_fan_out": counted(engines.cupy().diff(matrix.indptr)),
        "link_packets": counted(matrix.counts),
        "destination_fan_in": counted(sums.fan_in),
        "destination_packets": counted(sums.packets),
    }
    return histograms_of(made)


def window_statistics(src: Any, dst: Any, cuts: Any) -> tuple[Any, Any]:
    """(a row of Statistics for each window of packets, on the CPU; the run of all packets).

    Links get numbers in their order, so that a window and a link fit into one key; a window and
    an address do so anyway.  Then all windows are sorted at once.
    """
    cupy = engines.cupy()
    n, windows = src.size, cuts.size - 1
    with gpu.guard("sense", 64 * n):
        keys = gpu.empty(n, np.uint64, "sense")
        k = links.kernels(n)
        k.pack_packets(min(n, links.STRIDED), (n, src, dst, keys))
        order = cupy.argsort(keys)
        keys = keys[order]
        starts, different = links.heads(keys)
        run = Run(different, links.gaps(starts, n))
        number = cupy.zeros(n, np.uint64)
        number[starts[1:].astype(np.int64)] = 1
        number = cupy.cumsum(number, dtype=np.uint64)
        window = cupy.searchsorted(cupy.asarray(cuts[1:]), order, side="right")
        pairs = (window.astype(np.uint64) << np.uint64(32)) | number
        del keys, order, number, window
        pairs.sort()
        return _window_table(cupy, pairs, different, windows), run


def _window_table(cupy: Any, pairs: Any, different: Any, windows: int) -> Any:
    """`pairs` are (window, number of a link) of packets in order."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    starts, found = links.heads(pairs)
    counts = links.gaps(starts, pairs.size)
    window = found & ~low
    keys = different[(found & low).astype(np.int64)]
    table = np.zeros((windows, len(NAMES)), np.int64)

    def fill(name: str, attained: str, place: Any, values: Any) -> Any:
        which = (place >> half).astype(np.uint32)
        most, many = cupy.zeros(windows, np.uint64), cupy.zeros(windows, np.uint64)
        k = links.kernels(values.size)
        k.most_of_windows(values.size, (values.size, which, values, most, many))
        k.count_of_windows(values.size, (values.size, which, values, most, many))
        table[:, PLACE[name]] = most.get()
        table[:, PLACE[attained]] = many.get()
        ends = cupy.searchsorted(which, cupy.arange(windows + 1, dtype=np.uint32))
        return np.diff(ends.get())

    table[:, PLACE["unique_links"]] = fill(
        "max_link_packets", "links_at_max_packets", window, counts
    )
    for side, addresses in (("source", keys >> half), ("destination", keys & low)):
        places = window | addresses
        amounts = counts
        if side == "destination":
            order = cupy.argsort(places)
            places, amounts = places[order], counts[order]
        begins, entities = links.heads(places)
        fan = links.gaps(begins, places.size)
        packets = links.run_sums(begins, places.size, amounts)
        way = "fan_out" if side == "source" else "fan_in"
        table[:, PLACE[f"unique_{side}s"]] = fill(
            f"max_{side}_packets", f"{side}s_at_max_packets", entities, packets
        )
        fill(f"max_{side}_{way}", f"{side}s_at_max_{way}", entities, fan)
    return table

"""The nine quantities from the definition, in plain Python; slow on purpose."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from matchwood.applications.sensing.statistics.result import (
    QUANTITIES,
    Histograms,
    Statistics,
    from_extremes,
    histograms_of,
)


def per_entity(links: dict[tuple[int, int], int]) -> dict[str, dict[Any, int]]:
    """The five quantities that every link, source or destination has."""
    source_packets: Counter[int] = Counter()
    fan_out: Counter[int] = Counter()
    destination_packets: Counter[int] = Counter()
    fan_in: Counter[int] = Counter()
    for (i, j), packets in links.items():
        source_packets[i] += packets
        fan_out[i] += 1
        destination_packets[j] += packets
        fan_in[j] += 1
    return {
        "source_packets": source_packets,
        "source_fan_out": fan_out,
        "link_packets": links,
        "destination_fan_in": fan_in,
        "destination_packets": destination_packets,
    }


def of_links(links: dict[tuple[int, int], int]) -> Statistics:
    if not links:
        return Statistics()
    parts = per_entity(links)

    def most(name: str) -> tuple[int, int]:
        values = list(parts[name].values())
        return max(values), values.count(max(values))

    sources, destinations = len(parts["source_packets"]), len(parts["destination_packets"])
    return from_extremes(
        sum(links.values()), len(links), sources, destinations, map(most, QUANTITIES)
    )


def packet_statistics(src: Any, dst: Any, *, threads: int | None = None) -> Statistics:
    return of_links(Counter(zip(src.tolist(), dst.tolist(), strict=True)))


def batched_statistics(
    src: Any, dst: Any, batches: int, devices: Any, *, threads: int | None = None
) -> Statistics:
    return packet_statistics(src, dst)


def links_of(matrix: Any) -> dict[tuple[int, int], int]:
    found = {}
    starts = matrix.indptr.tolist()
    destinations, counts = matrix.destinations.tolist(), matrix.counts.tolist()
    for row, i in enumerate(matrix.sources.tolist()):
        for k in range(starts[row], starts[row + 1]):
            found[i, destinations[k]] = counts[k]
    return found


def matrix_statistics(matrix: Any, *, threads: int | None = None) -> Statistics:
    return of_links(links_of(matrix))


def matrix_histograms(matrix: Any, *, threads: int | None = None) -> Histograms:
    return histograms_of_links(links_of(matrix))


def histograms_of_links(links: dict[tuple[int, int], int]) -> Histograms:
    made = {}
    for name, values in per_entity(links).items():
        found = Counter(values.values())
        order = sorted(found)
        counts = [found[value] for value in order]
        made[name] = (np.array(order, np.int64), np.array(counts, np.int64))
    return histograms_of(made)

"""The nine quantities from the definition, in plain Python; slow on purpose."""

from __future__ import annotations

from collections import Counter
from typing import Any

from matchwood.applications.sensing.statistics.result import Statistics


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

    link, source, fan_out = most("link_packets"), most("source_packets"), most("source_fan_out")
    destination, fan_in = most("destination_packets"), most("destination_fan_in")
    return Statistics(
        valid_packets=sum(links.values()),
        unique_links=len(links),
        max_link_packets=link[0],
        unique_sources=len(parts["source_packets"]),
        max_source_packets=source[0],
        max_source_fan_out=fan_out[0],
        unique_destinations=len(parts["destination_packets"]),
        max_destination_packets=destination[0],
        max_destination_fan_in=fan_in[0],
        links_at_max_packets=link[1],
        sources_at_max_packets=source[1],
        sources_at_max_fan_out=fan_out[1],
        destinations_at_max_packets=destination[1],
        destinations_at_max_fan_in=fan_in[1],
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


def matrix_histograms(matrix: Any, *, threads: int | None = None) -> dict[str, Any]:
    """Of each of the five quantities: values, and how many have each."""
    import numpy as np

    made = {}
    for name, values in per_entity(links_of(matrix)).items():
        found = Counter(values.values())
        order = sorted(found)
        counts = [found[value] for value in order]
        made[name] = (np.array(order, np.int64), np.array(counts, np.int64))
    return made

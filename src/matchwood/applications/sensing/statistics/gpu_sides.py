"""What is found of sources and of destinations, from links on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

from matchwood.applications.sensing.traffic import gpu as links


class SourceSide(NamedTuple):
    """Numbers of links and sources, and the largest of three quantities."""

    links: int
    sources: int
    link: links.Most  # packets of a link
    source: links.Most  # packets of a source
    fan_out: links.Most


def source_parts(found: links.Links, packets: int) -> list[Any]:
    """What blocks find of the three maxima; nothing is waited for."""
    return [
        links.largest_gap(found.starts, packets),
        links.largest_gap(found.source_starts, packets),
        links.largest_gap(found.source_links, int(found.starts.size)),
    ]


def source_side(found: links.Links, packets: int) -> SourceSide:
    """From beginnings of links and sources among sorted packets."""
    size, parts = int(found.starts.size), source_parts(found, packets)
    return SourceSide(size, int(found.source_starts.size), *(links.largest(part) for part in parts))


def destination_side(destinations: Any, counts: Any, most: int) -> tuple[int, Any, Any]:
    """(how many destinations, most packets, most links); `most` packets have the largest link.

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

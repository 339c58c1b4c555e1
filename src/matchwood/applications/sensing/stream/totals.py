"""From sums of runs to the matrix, its statistics and histograms; in parts where it is large.

Parts of a matrix have different sources, so numbers of sources add up and maxima are compared.
What goes to a destination comes from many parts: fan-in and packets of destinations are runs of
their own, (destination, fan-in) and (destination, packets), and are added up as links are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics import Histogram, Histograms, Statistics
from matchwood.applications.sensing.statistics.histograms import NAMES as HISTOGRAMS
from matchwood.applications.sensing.stream.sums import Folder, RunSums, append
from matchwood.applications.sensing.traffic import TrafficMatrix, trusted

SOURCE_BITS = 32  # of a key, below the source


class Total(NamedTuple):
    """The matrix, with what is to be said of it."""

    matrix: TrafficMatrix
    statistics: Statistics
    histograms: Histograms


class _Tally:
    """A histogram that grows."""

    def __init__(self) -> None:
        self.values = np.empty(0, np.int64)
        self.counts = np.empty(0, np.int64)

    def add(self, parts: tuple[Any, Any]) -> None:
        values, counts = (np.asarray(engines.moved(part, "cpu")) for part in parts)
        merged = np.union1d(self.values, values)
        sums = np.zeros(merged.size, np.int64)
        sums[np.searchsorted(merged, self.values)] = self.counts
        sums[np.searchsorted(merged, values)] += counts
        self.values, self.counts = merged, sums

    def histogram(self) -> Histogram:
        return Histogram(self.values, self.counts)


def total_of(
    sums: RunSums, new_sums: Callable[[], RunSums], folder: Callable[[], Folder], tools: Any
) -> Total:
    """The sum of all runs; `tools` are the engine's functions (stream/cpu.py)."""
    if not sums.on_disk:
        matrix = trusted(*tools.rows_of_run(sums.take()))
        histograms = tools.histograms(matrix)
        return Total(matrix, statistics_of(histograms), histograms)
    writer = _Writer(folder())
    tallies = {name: _Tally() for name in HISTOGRAMS}
    fan_in, packets = new_sums(), new_sums()
    for run in sums.parts(SOURCE_BITS):
        rows = tools.rows_of_run(run)
        for name, parts in tools.source_tallies(rows).items():
            tallies[name].add(parts)
        found = tools.destination_sums(rows.destinations, rows.counts)
        keys = found.destinations.astype(np.uint64)
        fan_in.add(type(run)(keys, found.fan_in))
        packets.add(type(run)(keys, found.packets))
        writer.write(rows)
    for name, side in (("destination_fan_in", fan_in), ("destination_packets", packets)):
        for run in side.parts(0):
            tallies[name].add(tools.counted(run.counts))
    histograms = Histograms(**{name: tally.histogram() for name, tally in tallies.items()})
    return Total(writer.matrix(), statistics_of(histograms), histograms)


def statistics_of(histograms: Histograms) -> Statistics:
    """The nine quantities are sums and ends of the histograms."""
    link = histograms.link_packets

    def end(histogram: Histogram) -> tuple[int, int]:
        if histogram.values.size == 0:
            return 0, 0
        return int(histogram.values[-1]), int(histogram.counts[-1])

    packets, source = end(link), end(histograms.source_packets)
    fan_out, fan_in = end(histograms.source_fan_out), end(histograms.destination_fan_in)
    destination = end(histograms.destination_packets)
    return Statistics(
        valid_packets=link.weight,
        unique_links=link.total,
        max_link_packets=packets[0],
        unique_sources=histograms.source_packets.total,
        max_source_packets=source[0],
        max_source_fan_out=fan_out[0],
        unique_destinations=histograms.destination_packets.total,
        max_destination_packets=destination[0],
        max_destination_fan_in=fan_in[0],
        links_at_max_packets=packets[1],
        sources_at_max_packets=source[1],
        sources_at_max_fan_out=fan_out[1],
        destinations_at_max_packets=destination[1],
        destinations_at_max_fan_in=fan_in[1],
    )


class _Writer:
    """A matrix that is written part by part, and then mapped into memory."""

    NAMES = ("sources", "indptr", "destinations", "counts")
    KINDS = (np.uint32, np.int64, np.uint32, np.int64)

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._paths = [folder.file(name) for name in self.NAMES]
        self._links = 0
        np.zeros(1, np.int64).tofile(self._paths[1])

    def write(self, rows: Any) -> None:
        later = rows._replace(indptr=rows.indptr[1:] + self._links)
        for path, array in zip(self._paths, later, strict=True):
            append(path, array)
        self._links += rows.counts.size

    def matrix(self) -> TrafficMatrix:
        sources, indptr, destinations, counts = self._mapped()
        # the files go with the matrix
        return trusted(sources, indptr, destinations, counts, owner=self._folder)

    def _mapped(self) -> Iterator[Any]:
        for path, kind in zip(self._paths, self.KINDS, strict=True):
            size = path.stat().st_size
            yield np.memmap(path, kind, "r") if size else np.empty(0, kind)


def blocks_of(
    names: tuple[str, ...], sums: dict[int, RunSums], make: Callable[[RunSums], Total]
) -> dict[tuple[str, str], Statistics]:
    """Statistics of the traffic from each range to each range."""
    return {
        (names[pair // len(names)], names[pair % len(names)]): (
            make(sums[pair]).statistics if pair in sums else Statistics()
        )
        for pair in range(len(names) ** 2)
    }

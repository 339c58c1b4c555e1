"""What `sense` asks of the CPU: windows, runs, and what is counted of rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from matchwood.sensing.statistics import Histogram, Histograms
from matchwood.sensing.statistics.cpu import (
    counted,
    matrix_histograms,
    matrix_statistics,
    sort_windows,
    source_tallies,
    window_statistics,
)
from matchwood.sensing.statistics.quantities import PLACE
from matchwood.sensing.traffic import TrafficMatrix, trusted
from matchwood.sensing.traffic.cpu import Run, destination_sums, merge, rows_of_run, sum_runs
from matchwood.sensing.traffic.cpu_runs import run_of_sorted, source_sums, sum_of_many, window_runs
from matchwood.sensing.traffic.cpu_walk import Room, pack, sorted_packets
from matchwood.teams import crew

FEWER = 2  # where windows have this many times fewer links than packets, links are sorted


class Worker:
    """Works on chunks of packets one after the other, in memory that it uses again."""

    def __init__(self, threads: int | None) -> None:
        self.threads = threads
        self._room = Room()

    def windows(self, src: Any, dst: Any, cuts: Any, keep: bool) -> tuple[Any, Any, list[Any]]:
        """(a row of Statistics for each window, the run of all, matrices of windows if kept)."""
        team = crew(self.threads, work=16 * src.size)
        keys = self._room("keys", src.size, np.uint64)
        pack(team, src, dst, keys)
        sort_windows(team, keys, cuts)
        table = window_statistics(team, keys, cuts, self._room)
        links = table[:, PLACE["unique_links"]]
        kept: list[Any] = []
        few = int(links.sum()) * FEWER <= src.size
        if keep or few:
            runs, places = window_runs(team, keys, cuts, links)
            for a, b in itertools.pairwise(places.tolist() if keep else []):
                kept.append(self.matrix_of_run(Run(runs.keys[a:b], runs.counts[a:b])))
            if few:
                return table, sum_of_many(team, runs, places), kept
        if cuts.size > 2:  # one window is in order already
            keys = sorted_packets(team, src, dst, self._room)
        return table, run_of_sorted(team, keys), kept

    def run_of_packets(self, src: Any, dst: Any) -> Any:
        team = crew(self.threads, work=8 * src.size)
        return run_of_sorted(team, sorted_packets(team, src, dst, self._room))

    def run_of_links(self, keys: Any, counts: Any) -> Any:
        """The run of links that are not in order, and of which some may be equal."""
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
        sums = np.add.reduceat(counts[order], starts) if starts.size else counts[:0]
        return Run(keys[starts], sums)

    def merge(self, a: Any, b: Any) -> Any:
        return merge(a, b, threads=self.threads)

    def combine(self, runs: Any) -> Any:
        return sum_runs(runs, threads=self.threads)

    def rows_of_run(self, run: Any) -> Any:
        return rows_of_run(run, threads=self.threads)

    def destination_sums(self, destinations: Any, counts: Any) -> Any:
        return destination_sums(destinations, counts, threads=self.threads)

    def histograms(self, matrix: TrafficMatrix) -> Histograms:
        made = matrix_histograms(matrix, threads=self.threads)
        return Histograms(**{name: Histogram(*parts) for name, parts in made.items()})

    def source_tallies(self, rows: Any) -> dict[str, Any]:
        packets = source_sums(rows.indptr, rows.counts, threads=self.threads)
        return source_tallies(rows.indptr, rows.counts, packets, self.threads)

    def counted(self, values: Any) -> Any:
        return counted(values, self.threads)

    def statistics(self, matrix: TrafficMatrix) -> Any:
        return matrix_statistics(matrix, threads=self.threads)

    def run_of_matrix(self, matrix: TrafficMatrix) -> Any:
        return Run(matrix.keys(threads=self.threads), matrix.counts)

    def matrix_of_run(self, run: Any) -> TrafficMatrix:
        return trusted(*self.rows_of_run(run))

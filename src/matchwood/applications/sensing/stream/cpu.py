"""The CPU's part of `sense`: windows to statistics and runs, and sums of runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.applications.sensing.statistics import Histograms
from matchwood.applications.sensing.statistics import cpu as windowed
from matchwood.applications.sensing.statistics.result import as_row
from matchwood.applications.sensing.traffic import cpu as links
from matchwood.applications.sensing.traffic.result import Run, TrafficMatrix, trusted
from matchwood.engines.cpu import crew

LARGEST = (1 << 32) - 1  # packets of a window whose links are numbered with 32 bits
# Where windows have this many times fewer links than packets, links are sorted: `sense` takes 12 to
# 20 % less time then (4 million Zipf packets)
FEWER = 2


class Worker:
    """Works on chunks of packets in order, reusing its memory."""

    ahead = 0  # chunks that are worked on while the next one is read

    def __init__(self, threads: int | None) -> None:
        self.threads = threads
        self._room = links.Room()

    def begin(
        self, src: Any, dst: Any, cuts: Any, keep: bool
    ) -> Callable[[], tuple[Any, Any, list[Any]]]:
        """Begin `windows`; the function returned waits for its result."""
        found = self.windows(src, dst, cuts, keep)
        return lambda: found

    def begin_statistics(self, matrix: TrafficMatrix) -> Callable[[], Any]:
        """Begin `statistics`; the function returned waits for its result."""
        found = self.statistics(matrix)
        return lambda: found

    def close(self) -> None:
        """Wait for the work begun; none follows."""

    def windows(self, src: Any, dst: Any, cuts: Any, keep: bool) -> tuple[Any, Any, list[Any]]:
        """(a row of Statistics for each window, the run of all, matrices of windows if kept)."""
        if int(np.diff(cuts).max(initial=0)) > LARGEST:
            return self._large_windows(src, dst, cuts, keep)
        team = crew(self.threads, work=16 * src.size)
        table, found = windowed.windows_of(team, src, dst, cuts, self._room)
        runs = (windowed.run_of_window(team, found, k) for k in range(cuts.size - 1))
        if cuts.size == 2:
            run = next(runs)
            return table, run, [self.matrix_of_run(run)] if keep else []
        kept = [self.matrix_of_run(run) for run in runs] if keep else []
        if int(found.links.sum()) * FEWER <= src.size:
            return table, windowed.sum_of_windows(team, found), kept
        return (
            table,
            links.run_of_sorted(team, links.sorted_packets(team, src, dst, self._room)),
            kept,
        )

    def _large_windows(
        self, src: Any, dst: Any, cuts: Any, keep: bool
    ) -> tuple[Any, Any, list[Any]]:
        """As `windows`, one window at a time."""
        bounds = itertools.pairwise(cuts.tolist())
        runs = [self.run_of_packets(src[a:b], dst[a:b]) for a, b in bounds]
        matrices = [self.matrix_of_run(run) for run in runs]
        table = np.array([as_row(self.statistics(matrix)) for matrix in matrices], np.int64)
        return table, self.combine(runs), matrices if keep else []

    def run_of_packets(self, src: Any, dst: Any) -> Any:
        team = crew(self.threads, work=8 * src.size)
        return links.run_of_sorted(team, links.sorted_packets(team, src, dst, self._room))

    def run_of_links(self, keys: Any, counts: Any) -> Any:
        return links.run_of_links(keys, counts, threads=self.threads)

    def merge(self, a: Any, b: Any) -> Any:
        return links.merge(a, b, threads=self.threads)

    def combine(self, runs: Any) -> Any:
        return links.sum_runs(runs, threads=self.threads)

    def rows_of_run(self, run: Any) -> Any:
        return links.rows_of_run(run, threads=self.threads)

    def destination_sums(self, destinations: Any, counts: Any) -> Any:
        return links.destination_sums(destinations, counts, threads=self.threads)

    def histograms(self, matrix: TrafficMatrix) -> Histograms:
        return windowed.matrix_histograms(matrix, threads=self.threads)

    def source_tallies(self, rows: Any) -> dict[str, Any]:
        packets = links.source_sums(rows.indptr, rows.counts, threads=self.threads)
        return windowed.source_tallies(rows.indptr, rows.counts, packets, self.threads)

    def counted(self, values: Any) -> Any:
        return windowed.counted(values, self.threads)

    def statistics(self, matrix: TrafficMatrix) -> Any:
        return windowed.matrix_statistics(matrix, threads=self.threads)

    def run_of_matrix(self, matrix: TrafficMatrix) -> Any:
        return Run(matrix.keys(threads=self.threads), matrix.counts)

    def matrix_of_run(self, run: Any) -> TrafficMatrix:
        return trusted(*self.rows_of_run(run))

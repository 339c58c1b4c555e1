"""Traffic matrices from the definition, in plain Python and NumPy; slow on purpose."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from matchwood.applications.sensing.traffic.result import DestinationSums, MatrixRows, Run


def run_of_packets(src: Any, dst: Any, *, threads: int | None = None) -> Run:
    found = Counter(zip(src.tolist(), dst.tolist(), strict=True))
    return run_of_links(found)


def run_of_links(links: dict[tuple[int, int], int]) -> Run:
    """The run of {(source, destination): packets}."""
    return _run({(i << 32) | j: packets for (i, j), packets in links.items()})


def _run(found: dict[int, int]) -> Run:
    keys = sorted(found)
    return Run(np.array(keys, np.uint64), np.array([found[key] for key in keys], np.int64))


def sum_runs(runs: Iterable[Run], *, threads: int | None = None) -> Run:
    total: Counter[int] = Counter()
    for keys, counts in runs:
        total.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
    return _run(total)


def rows_of_run(run: Run, *, threads: int | None = None) -> MatrixRows:
    rows: dict[int, list[int]] = {}
    for key in run.keys.tolist():
        rows.setdefault(key >> 32, []).append(key & 0xFFFFFFFF)
    lengths = [len(row) for row in rows.values()]
    return MatrixRows(
        np.array(list(rows), np.uint32),
        np.array([0, *np.cumsum(lengths)], np.int64),
        np.array([j for row in rows.values() for j in row], np.uint32),
        run.counts,
    )


def rows_of_packets(src: Any, dst: Any, *, threads: int | None = None) -> MatrixRows:
    return rows_of_run(run_of_packets(src, dst))


def keys_of_rows(rows: Any, *, threads: int | None = None) -> Any:
    sources = np.repeat(rows.sources, np.diff(rows.indptr)).astype(np.uint64)
    return (sources << np.uint64(32)) | rows.destinations


def destination_sums(
    destinations: Any, counts: Any, *, threads: int | None = None
) -> DestinationSums:
    fan_in: Counter[int] = Counter()
    packets: Counter[int] = Counter()
    for j, count in zip(destinations.tolist(), counts.tolist(), strict=True):
        fan_in[j] += 1
        packets[j] += count
    order = sorted(fan_in)
    return DestinationSums(
        np.array(order, np.uint32),
        np.array([fan_in[j] for j in order], np.int64),
        np.array([packets[j] for j in order], np.int64),
    )


def source_sums(indptr: Any, counts: Any, *, threads: int | None = None) -> Any:
    ends = indptr.tolist()
    rows = [sum(counts[a:b].tolist()) for a, b in itertools.pairwise(ends)]
    return np.array(rows, np.int64)

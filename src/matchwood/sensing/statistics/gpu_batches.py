"""Statistics of more packets than fit into a device, on one device or several.

Three rounds of parts; in each, a part is copied in while the one before is worked on and the one
before that is copied out:

1. parts of the packets: sorted as links, back to the host;
2. ranges of sources, of all parts: links and sources are counted; the destinations of links go
   back sorted, with the packets of links that have several;
3. ranges of destinations, of all ranges of sources: destinations are counted.

Ranges are cut at sources and destinations, and all is integers, so the answer does not depend on
the numbers of batches and devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu
from matchwood.sensing.statistics.gpu_flow import Lane, Piece, shared_out
from matchwood.sensing.statistics.gpu_sides import source_parts
from matchwood.sensing.statistics.quantities import EXTREMES, NAMES, PLACE, Statistics, combined
from matchwood.sensing.traffic import gpu as links

FEWER = 2  # a part is sent back as links with counts where it has this many times fewer links
SAMPLES = 1 << 12  # keys of a run that are looked at to cut ranges
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


class HostRun(NamedTuple):
    """Sorted keys in pinned memory; how often each counts, or None for once."""

    keys: Any
    counts: Any


def batched_statistics(
    src: Any, dst: Any, batches: int, devices: Any, *, threads: int | None = None
) -> Statistics:
    """See matchwood.sensing.statistics.traffic_statistics."""
    if src.size == 0:
        return Statistics()
    cupy = engines.cupy()
    shared = devices or (int(cupy.cuda.runtime.getDevice()),)
    parts = batches * len(shared)
    with gpu.guard("traffic_statistics"):
        lanes = [Lane(device) for device in shared]
        runs = _sorted_parts(src, dst, parts, lanes)
        table, sides = _source_ranges(runs, parts, lanes)
        del runs
        return combined(np.concatenate([table, _destination_ranges(sides, parts, lanes)]))


def _sorted_parts(src: Any, dst: Any, parts: int, lanes: list[Lane]) -> list[HostRun]:
    """Round 1: sorted packets of each part."""
    if engines.location(src) == "gpu":
        engines.cupy().cuda.get_current_stream().synchronize()  # the packets may be on their way
    bounds = [src.size * k // parts for k in range(parts + 1)]
    runs: list[Any] = [None] * parts

    def pieces(k: int) -> list[list[Piece]]:
        return [[Piece(array, bounds[k], bounds[k + 1])] for array in (src, dst)]

    fewer: list[bool] = []  # parts are alike: the first one looked at decides for all

    def work(k: int, arrays: list[Any], out: Callable[[Any], Any]) -> None:
        if arrays[0].size == 0:
            runs[k] = HostRun(np.empty(0, np.uint64), None)
            return
        keys = links.sorted_packets(*arrays)
        if not fewer:
            fewer.append(links.head_places(keys, 0)[1] * FEWER <= keys.size)
        if not fewer[0]:
            runs[k] = HostRun(out(keys), None)
        else:
            run = links.run_of_sorted(keys)
            runs[k] = HostRun(out(run.keys), out(run.counts))

    shared_out(lanes, range(parts), pieces, work)
    return runs


def cut(arrays: Sequence[Any], parts: int, boundary: int) -> list[list[int]]:
    """Where ranges of keys begin in each sorted array: ranges of about equal sizes.

    Keys that differ only in their lowest `boundary` bits are in one range.
    """
    some = [array[:: max(1, array.size // SAMPLES)] for array in arrays]
    weights = [np.full(s.size, a.size / max(1, s.size)) for s, a in zip(some, arrays, strict=True)]
    sample, weight = np.concatenate(some), np.concatenate(weights)
    order = np.argsort(sample, kind="stable")
    sample, so_far = sample[order], np.cumsum(weight[order])
    marks = []
    for part in range(1, parts):
        if sample.size:
            at = int(np.searchsorted(so_far, so_far[-1] * part / parts))
            mark = sample[min(at, sample.size - 1)]
            marks.append(mark >> mark.dtype.type(boundary) << mark.dtype.type(boundary))
    return [[0, *(int(np.searchsorted(a, m)) for m in marks), int(a.size)] for a in arrays]


class Side(NamedTuple):
    """What a range of sources tells destinations: in order, in pinned memory."""

    destinations: Any  # of links
    extras: Any  # destination above (packets - 1), of links with several packets


def _source_ranges(runs: list[HostRun], parts: int, lanes: list[Lane]) -> tuple[Any, list[Side]]:
    """Round 2: a row of Statistics for each range of sources, and what goes to destinations."""
    places = cut([run.keys for run in runs], parts, 32)
    table = np.zeros((parts, len(NAMES)), np.int64)
    sides: list[Any] = [Side(np.empty(0, np.uint32), np.empty(0, np.uint64))] * parts
    counted = any(run.counts is not None for run in runs)
    ones = np.ones(max((r.keys.size for r in runs if r.counts is None), default=0), np.int64)

    def pieces(k: int) -> list[list[Piece]]:
        def of(name: str) -> list[Piece]:
            made = []
            for run, at in zip(runs, places, strict=True):
                array = getattr(run, name)
                made.append(
                    Piece(ones[: run.keys.size] if array is None else array, *at[k : k + 2])
                )
            return made

        return [of("keys"), of("counts")] if counted else [of("keys")]

    later: list[tuple[int, list[Any], tuple[int, int, int]]] = []  # maxima, read at the end

    def work(k: int, arrays: list[Any], out: Callable[[Any], Any]) -> None:
        if arrays[0].size == 0:
            return
        if counted:
            destinations, counts, found = _counted_range(arrays)
            packets = int(counts.sum())
        else:
            keys = arrays[0]
            links.sort(keys)
            packets = int(keys.size)
            heads = links.links_of_sorted(keys)
            found = (source_parts(heads, packets), int(heads.source_starts.size))
            destinations, counts = heads.destinations, None
            if destinations.size < packets:
                counts = links.gaps(heads.starts, packets)
        later.append((k, found[0], (packets, int(destinations.size), found[1])))
        extras = np.empty(0, np.uint64)
        if counts is not None:
            several = counts > 1
            made = destinations[several].astype(np.uint64) << HALF
            made |= (counts[several] - 1).astype(np.uint64)
            links.sort(made)
            extras = out(made) if made.size else extras
        links.sort(destinations)
        sides[k] = Side(out(destinations), extras)

    shared_out(lanes, range(parts), pieces, work)
    for k, found, numbers in later:
        _fill(table[k], numbers, [links.largest(part) for part in found])
    most = int(table[:, PLACE["max_link_packets"]].max())
    if most > links.FITS:
        raise ValueError(
            f"traffic_statistics: a link must have at most {links.FITS} packets in batches, "
            f"got {most}"
        )
    return table, sides


def _fill(row: Any, numbers: tuple[int, int, int], most: list[links.Most]) -> None:
    for name, number in zip(("valid_packets", "unique_links", "unique_sources"), numbers,
                            strict=True):  # fmt: skip
        row[PLACE[name]] = number
    for (name, attained), one in zip(EXTREMES[:3], most, strict=True):
        row[PLACE[name]], row[PLACE[attained]] = one.value, one.many


def _counted_range(arrays: list[Any]) -> tuple[Any, Any, tuple[list[Any], int]]:
    """(destinations, counts, (maxima, sources)) where links come with counts."""
    rows = links.rows_of_run(links.run_of_links(*arrays))
    sums = links.source_sums(rows.indptr, rows.counts)
    parts = [
        links.largest_value(rows.counts),
        links.largest_value(sums),
        links.largest_gap(rows.indptr[:-1].view(np.uint64), rows.counts.size),
    ]
    return rows.destinations, rows.counts, (parts, int(sums.size))


def _destination_ranges(sides: list[Side], parts: int, lanes: list[Lane]) -> Any:
    """Round 3: a row of Statistics for each range of destinations."""
    places = cut([side.destinations for side in sides], parts, 0)
    firsts = [_first(sides, places, k) for k in range(parts)]
    more = [[0, *(_place(side.extras, mark) for mark in firsts[1:]), side.extras.size]
            for side in sides]  # fmt: skip
    table = np.zeros((parts, len(NAMES)), np.int64)
    later: list[tuple[int, int, list[Any]]] = []  # maxima, read at the end

    def pieces(k: int) -> list[list[Piece]]:
        return [
            [Piece(s.destinations, *at[k : k + 2]) for s, at in zip(sides, places, strict=True)],
            [Piece(s.extras, *at[k : k + 2]) for s, at in zip(sides, more, strict=True)],
        ]

    def work(k: int, arrays: list[Any], out: Callable[[Any], Any]) -> None:
        destinations, extras = arrays
        if destinations.size == 0:
            return
        links.sort(destinations)
        starts, different = links.heads(destinations)
        fan_in = links.gaps(starts, destinations.size)
        packets = fan_in
        if extras.size:
            packets = fan_in.copy()
            n = extras.size
            links.kernels(n).add_extras(
                min(n, links.STRIDED),
                (n, (extras >> HALF).astype(np.uint32), (extras & LOW).view(np.int64) + 1,
                 different.size, different, packets.view(np.uint64)),
            )  # fmt: skip
        found = [links.largest_value(part) for part in (packets, fan_in)]
        later.append((k, int(fan_in.size), found))

    shared_out(lanes, range(parts), pieces, work)
    for k, number, found in later:
        row = table[k]
        row[PLACE["unique_destinations"]] = number
        for (name, attained), part in zip(EXTREMES[3:], found, strict=True):
            most = links.largest(part)
            row[PLACE[name]], row[PLACE[attained]] = most.value, most.many
    return table


def _first(sides: list[Side], places: list[list[int]], k: int) -> Any:
    """The smallest destination from range k on; None where there is none."""
    here = [
        side.destinations[at[k]]
        for side, at in zip(sides, places, strict=True)
        if at[k] < side.destinations.size
    ]
    return np.uint64(min(here)) if here else None


def _place(extras: Any, mark: Any) -> int:
    return int(extras.size if mark is None else np.searchsorted(extras, mark << HALF))

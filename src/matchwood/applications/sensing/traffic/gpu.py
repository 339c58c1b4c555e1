"""Traffic matrices on the GPU.  Kernels: gpu.cu; the idea: cpu.py.

CuPy sorts: 64-bit links, then the 32-bit destinations of links.  Where many links have several
packets, destinations are sorted with their packets below them in 64 bits instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.traffic.result import DestinationSums, MatrixRows, Run
from matchwood.engines import gpu
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "pack_packets",
        "count_heads<K>",
        "count_links",
        "tell_host",
        "write_heads<K,P,V>",
        "write_links<P>",
        "largest_gap<P>",
        "largest_value<C>",
        "write_gaps<P,C>",
        "write_sources<P>",
        "write_keys",
        "add_extras<C>",
        "pack_counts<C>",
        "sums_of_runs<P>",
        "most_of_windows = largest_of_windows<false>",
        "count_of_windows = largest_of_windows<true>",
    ),
    types={
        "P": (np.uint32, np.uint64),  # a place among packets
        "V": (np.uint32, np.uint64),
        "C": (np.uint32, np.int64),
    },
)

TILE = SOURCE.constant("TILE")
STRIDED = 1 << 19  # threads of a pass that strides: more than a device runs at once
REPEATED_PART = 16  # links are sorted with packets where more than 1 / 16 of them have several
FITS = 1 << 32  # packets of a link that fit below a destination


class Links(NamedTuple):
    """Beginnings of links and sources among sorted packets."""

    starts: Any  # of links
    destinations: Any  # of links, uint32
    source_starts: Any
    source_links: Any  # the first link of each source


def kernels(places: int, counts: Any = np.int64, keys: Any = np.uint64, values: Any = None) -> Any:
    """Kernels whose place type holds `places`: uint32, or uint64 where there are more."""
    kind = np.uint32 if places < FITS else np.uint64
    return SOURCE.kernels(K=np.dtype(keys), P=np.dtype(kind), V=np.dtype(values or keys),
                          C=np.dtype(counts))  # fmt: skip


def kernels_for(starts: Any, counts: Any = np.int64) -> Any:
    """Kernels for places of the type of `starts`."""
    return SOURCE.kernels(K=np.dtype(np.uint64), P=starts.dtype, V=np.dtype(np.uint64),
                          C=np.dtype(counts))  # fmt: skip


def place_type(places: int) -> Any:
    return np.dtype(np.uint32 if places < FITS else np.uint64)


def sort(array: Any) -> None:
    """Sort in place.  If memory runs out, free the pool's unused blocks and try again."""
    try:
        array.sort()
    except MemoryError:
        engines.cupy().get_default_memory_pool().free_all_blocks()
        array.sort()


def sorted_packets(src: Any, dst: Any) -> Any:
    """The keys of all packets, sorted."""
    keys = packed(src, dst)
    sort(keys)
    return keys


def packed(src: Any, dst: Any) -> Any:
    """The keys of all packets: source above destination."""
    keys = gpu.empty(src.size, np.uint64, "traffic_matrix")
    kernels(src.size).pack_packets(min(src.size, STRIDED), (src.size, src, dst, keys))
    return keys


def head_places(keys: Any, shift: int) -> tuple[Any, int]:
    """Where each tile writes the runs that begin in it, and how many runs there are."""
    tiles = -(-keys.size // TILE)
    counts = gpu.empty(tiles, np.int32, "traffic_matrix")
    places = gpu.empty(tiles + 1, np.int64, "traffic_matrix")
    kernels(keys.size, keys=keys.dtype).count_heads(tiles * 32, (keys.size, keys, shift, counts))
    scan.scan_into(counts, places)
    return places, last_words(places, places)[0]


def last_words(first: Any, second: Any) -> tuple[int, int]:
    """The last words of two arrays of int64.  Waits for the current stream."""
    import cupyx

    cupy = engines.cupy()
    host = cupyx.empty_pinned(2, np.int64)
    memory = cupy.cuda.UnownedMemory(
        host.ctypes.data, host.nbytes, host, int(cupy.cuda.runtime.getDevice())
    )
    mapped = cupy.ndarray(2, np.int64, cupy.cuda.MemoryPointer(memory, 0))
    kernels(1).tell_host(32, (first[-1:], second[-1:], mapped), block=32)
    cupy.cuda.get_current_stream().synchronize()
    return int(host[0]), int(host[1])


def heads(keys: Any, shift: int = 0, kind: Any = None) -> tuple[Any, Any]:
    """Where runs of keys that are equal above `shift` begin, and those keys >> shift."""
    kind = keys.dtype if kind is None else np.dtype(kind)
    if keys.size == 0:
        return gpu.empty(0, np.uint32, "heads"), gpu.empty(0, kind, "heads")
    places, runs = head_places(keys, shift)
    starts = gpu.empty(runs, place_type(keys.size), "traffic_matrix")
    values = gpu.empty(runs, kind, "traffic_matrix")
    k = kernels(keys.size, keys=keys.dtype, values=kind)
    k.write_heads(-(-keys.size // TILE) * 32, (keys.size, keys, shift, places, starts, values))
    return starts, values


def links_of_sorted(keys: Any) -> Links:
    n = keys.size
    tiles, kind = -(-n // TILE), place_type(n)
    counts = [gpu.empty(tiles, np.int32, "traffic_matrix") for _ in range(2)]
    places = [gpu.empty(tiles + 1, np.int64, "traffic_matrix") for _ in range(2)]
    kernels(n).count_links(tiles * 32, (n, keys, *counts))
    for each, place in zip(counts, places, strict=True):
        scan.scan_into(each, place)
    links, sources = last_words(*places)
    found = Links(
        gpu.empty(links, kind, "traffic_matrix"),
        gpu.empty(links, np.uint32, "traffic_matrix"),
        gpu.empty(sources, kind, "traffic_matrix"),
        gpu.empty(sources, kind, "traffic_matrix"),
    )
    kernels(n).write_links(-(-n // TILE) * 32, (n, keys, *places, *found))
    return found


def gaps(starts: Any, end: int, kind: Any = np.int64) -> Any:
    """Lengths of the runs that begin at `starts`; the last ends at `end`."""
    lengths = gpu.empty(starts.size, kind, "traffic_matrix")
    k = kernels_for(starts, kind)
    k.write_gaps(min(starts.size, STRIDED), (starts.size, starts, end, lengths))
    return lengths


def run_sums(starts: Any, end: int, values: Any) -> Any:
    """Sums of int64 values over runs, by differences of running sums: long runs cost no more."""
    cupy = engines.cupy()
    sums = cupy.cumsum(values, dtype=np.int64)
    out = gpu.empty(starts.size, np.int64, "traffic_matrix")
    k = kernels_for(starts)
    k.sums_of_runs(min(starts.size, STRIDED), (starts.size, starts, end, sums, out))
    return out


def rows_of_packets(src: Any, dst: Any, *, threads: int | None = None) -> MatrixRows:
    n = src.size
    if n == 0:
        return _no_rows()
    with gpu.guard("traffic_matrix", 28 * n):
        keys = sorted_packets(src, dst)
        found = links_of_sorted(keys)
        return _rows(keys, found, gaps(found.starts, n))


def _no_rows() -> MatrixRows:
    cupy, kinds = engines.cupy(), (np.uint32, np.int64, np.uint32, np.int64)
    return MatrixRows(*(cupy.zeros(int(k == 1), kind) for k, kind in enumerate(kinds)))


def _rows(keys: Any, found: Links, counts: Any) -> MatrixRows:
    """The arrays of a matrix; `keys` are those of packets or of links."""
    size = found.source_starts.size
    sources = gpu.empty(size, np.uint32, "traffic_matrix")
    k = kernels_for(found.source_starts)
    k.write_sources(min(size, STRIDED), (size, keys, found.source_starts, sources))
    indptr = gpu.empty(size + 1, np.int64, "traffic_matrix")
    indptr[:size] = found.source_links
    indptr[size:] = found.starts.size
    return MatrixRows(sources, indptr, found.destinations, counts)


def run_of_sorted(keys: Any, kind: Any = np.int64) -> Run:
    starts, values = heads(keys)
    return Run(values, gaps(starts, keys.size, kind))


def run_of_packets(src: Any, dst: Any, *, threads: int | None = None) -> Run:
    with gpu.guard("traffic_matrix", 24 * src.size):
        return run_of_sorted(sorted_packets(src, dst))


def rows_of_run(run: Run, *, threads: int | None = None) -> MatrixRows:
    if run.keys.size == 0:
        return _no_rows()
    return _rows(run.keys, links_of_sorted(run.keys), run.counts)


def sum_runs(runs: Iterable[Run], *, threads: int | None = None) -> Run:
    """All runs at once: sorted together, packets of equal links added up."""
    cupy = engines.cupy()
    given = [run for run in runs if run.keys.size]
    if not given:
        return Run(cupy.empty(0, np.uint64), cupy.empty(0, np.int64))
    if len(given) == 1:
        return given[0]
    with gpu.guard("sum_matrices", 48 * sum(run.keys.size for run in given)):
        keys = cupy.concatenate([run.keys for run in given])
        counts = cupy.concatenate([run.counts for run in given])
        return run_of_links(keys, counts)


def run_of_links(keys: Any, counts: Any) -> Run:
    """The run of links that are not in order, and of which some may be equal."""
    cupy = engines.cupy()
    order = cupy.argsort(keys)
    keys, counts = keys[order], counts[order]
    starts, values = heads(keys)
    return Run(values, run_sums(starts, keys.size, counts))


def merge(a: Run, b: Run, *, threads: int | None = None) -> Run:
    return sum_runs([a, b])


def keys_of_rows(rows: Any, *, threads: int | None = None) -> Any:
    links = rows.destinations.size
    keys = gpu.empty(links, np.uint64, "traffic_matrix")
    if links:
        kernels(links).write_keys(
            min(links, STRIDED),
            (links, rows.sources.size, rows.sources, rows.indptr, rows.destinations, keys),
        )
    return keys


def destination_sums(
    destinations: Any, counts: Any, *, threads: int | None = None
) -> DestinationSums:
    """Links and packets to each destination, from the links of a matrix."""
    cupy = engines.cupy()
    links = destinations.size
    if links == 0:
        return DestinationSums(*(cupy.empty(0, kind) for kind in (np.uint32, np.int64, np.int64)))
    with gpu.guard("traffic_statistics", 24 * links):
        most = int(counts.max())
        several = 0 if most == 1 else int(cupy.count_nonzero(counts > 1))
        if several * REPEATED_PART > links and most < FITS:
            return _sorted_with_counts(destinations, counts)
        values = destinations.copy()
        sort(values)
        starts, different = heads(values)
        del values
        fan_in = gaps(starts, links)
        packets = fan_in.copy() if several else fan_in
        if several:
            k = kernels(links, counts=counts.dtype)
            k.add_extras(
                min(links, STRIDED),
                (links, destinations, counts, different.size, different, packets.view(np.uint64)),
            )
        return DestinationSums(different, fan_in, packets)


def _sorted_with_counts(destinations: Any, counts: Any) -> DestinationSums:
    links = destinations.size
    keys = gpu.empty(links, np.uint64, "traffic_statistics")
    k = kernels(links, counts=counts.dtype)
    k.pack_counts(min(links, STRIDED), (links, destinations, counts, keys))
    sort(keys)
    starts, different = heads(keys, 32, np.uint32)
    keys &= np.uint64(0xFFFFFFFF)
    packets = run_sums(starts, links, keys.view(np.int64))
    return DestinationSums(different, gaps(starts, links), packets)


def source_sums(indptr: Any, counts: Any, *, threads: int | None = None) -> Any:
    """Packets of each source."""
    starts = indptr[:-1].astype(np.uint64)
    if starts.size == 0:
        return engines.cupy().empty(0, np.int64)
    return run_sums(starts, counts.size, counts)


class Most(NamedTuple):
    """The largest of many numbers, and how often it occurs."""

    value: int
    many: int


def largest(blocks: Any) -> Most:
    """The maximum over the results of all blocks of a grid, on the device."""
    return largest_here(blocks.get())


def largest_here(blocks: Any) -> Most:
    """As `largest`, of results that were copied to the host."""
    found = blocks.reshape(-1, 2)
    most = found[:, 0].max(initial=0)
    return Most(int(most), int(found[found[:, 0] == most, 1].sum()))


def largest_gap(starts: Any, end: int) -> Any:
    """The longest run in each block's part; see `largest`."""
    threads = min(starts.size, STRIDED)
    out = engines.cupy().zeros(2 * -(-threads // 256), np.uint64)
    k = kernels_for(starts)
    k.largest_gap(threads, (starts.size, starts, end, out), block=256)
    return out


def largest_value(numbers: Any) -> Any:
    threads = min(numbers.size, STRIDED)
    out = engines.cupy().zeros(2 * -(-threads // 256), np.uint64)
    kernels(numbers.size, counts=numbers.dtype).largest_value(
        threads, (numbers.size, numbers, out), block=256
    )
    return out


def source_parts(found: Links, packets: int) -> list[Any]:
    """Each block's part of the three maxima; does not wait for the device."""
    return [
        largest_gap(found.starts, packets),
        largest_gap(found.source_starts, packets),
        largest_gap(found.source_links, int(found.starts.size)),
    ]

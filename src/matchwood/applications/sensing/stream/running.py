"""The loop of `sense`: packets are read, anonymized, cut into windows, counted and added up.

Sums of runs are a binary tree in memory: runs of the same level are merged as soon as there are
two, so a link is moved once for each level.  When the runs in memory are larger than allowed, they
become one run on disk.  At the end the keys are cut into ranges so small that a range of all runs
fits into memory, and the ranges are added up one after the other, in order.

So a large matrix is made in parts.  They have different sources: numbers of sources add up and
maxima are compared.  A destination occurs in many parts: fan-in and packets of destinations are
separate runs, (destination, fan-in) and (destination, packets), added up as links are.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.anonymity import Anonymizer
from matchwood.applications.sensing.packets import Ranges
from matchwood.applications.sensing.statistics.result import (
    HISTOGRAMS,
    NAMES,
    QUANTITIES,
    Histogram,
    Histograms,
    Statistics,
    Windows,
    as_row,
    from_extremes,
    histograms_of,
)
from matchwood.applications.sensing.stream.result import Sensing
from matchwood.applications.sensing.stream.sources import (
    CHUNK,
    Block,
    Buffer,
    PacketWindows,
    Source,
    TimeWindows,
    anonymized,
)
from matchwood.applications.sensing.traffic import result as traffic
from matchwood.applications.sensing.traffic.result import Run, TrafficMatrix, require_sum, trusted
from matchwood.primitives.sort import radix_sort
from matchwood.stopwatch import Stopwatch

CHUNK_BYTES = 64  # memory per packet of a chunk: itself, two keys, destination, run
CHUNK_PART = 4  # a quarter of the memory allowed is for a chunk ...
RUNS_PART = 10  # ... and a tenth for runs, which are copied when they are merged
LEFT_OUT = np.uint32(0xFFFFFFFF)  # the address 255.255.255.255, which compat drops
MOST_PACKETS = 4  # of a link on average, where a matrix becomes packets again
PHASES = ("read", "anonymize", "windows", "sums", "total")  # of Sensing.seconds

LINK_BYTES = 16  # a key and a count
WRITTEN = 1 << 22  # elements written or read at once; Ctrl-C takes effect in between
SAMPLE = 1 << 12  # keys; one in SAMPLE of a run on disk is kept in memory, to cut ranges
SOURCE_BITS = 32  # bits of a key below the source


class Options(NamedTuple):
    """The arguments of `sense`, checked."""

    window: PacketWindows | TimeWindows
    anonymizer: Any  # None, or an object with apply(addresses)
    ranges: Ranges | None
    keep_partial: bool
    compat: bool
    memory: int | None  # bytes
    batches: int
    engine: str
    threads: int | None
    devices: tuple[int, ...] | None


class Listeners(NamedTuple):
    """The caller's callbacks."""

    on_window: Callable[[TrafficMatrix, int | None], object] | None = None  # matrix, its time
    on_chunk: Callable[[dict[str, Any]], object] | None = None  # what was read, windows so far


class Runner:
    """One call of `sense`."""

    def __init__(self, source: Source, options: Options, listeners: Listeners) -> None:
        self.source, self.options, self.listeners = source, options, listeners
        self.worker = engines.load("matchwood.applications.sensing.stream", options.engine).Worker(
            options.threads, *((options.devices,) if options.engine == "gpu" else ())
        )
        self.watch = Stopwatch()
        self.watch.seconds = dict.fromkeys(PHASES, 0.0)
        self.dropped = 0
        self._folder: Folder | None = None
        self._tables: list[Any] = []
        self._firsts: list[int] = []
        self._times: list[int] = []  # of the first packets of windows
        self._timeless = False  # some packets have no time
        self._seen = 0  # packets read, where windows are counted in packets
        self._packets = 0
        self._under_way: deque[Callable[[], None]] = deque()  # what finishes windows, in order
        self._sums = self.new_sums()
        self._pairs: dict[int, RunSums] = {}

    def new_sums(self, sharing: int = 1) -> RunSums:
        """An empty sum; `sharing` sums share the memory for runs."""
        memory = self.options.memory
        limit = None if memory is None else max(1, memory // RUNS_PART // sharing)
        return RunSums(self.worker.merge, self.worker.combine, limit, self.folder)

    def folder(self) -> Folder:
        if self._folder is None:
            self._folder = Folder()
        return self._folder

    def run(self) -> Sensing:
        try:
            if self.source.has_matrices:
                self._add_matrices()
            else:
                self._add_packets()
            return self._finished()
        except BaseException:
            if self._folder is not None:
                self._folder.remove()
            raise
        finally:
            self.worker.close()
            self._sums, self._pairs, self._folder = self.new_sums(), {}, None  # no more files here

    # Packets

    def _chunk(self) -> int:
        """The number of packets in a chunk: of whole windows where those are counted in packets."""
        size = CHUNK
        if self.options.memory is not None:
            size = min(size, max(1, self.options.memory // CHUNK_PART // CHUNK_BYTES))
        if not self.source.whole:
            size = max(1, -(-size // self.options.batches))
        window = self.options.window
        if isinstance(window, PacketWindows):
            size = max(1, size // window.size) * window.size
        return size

    def _add_packets(self) -> None:
        for chunk, pairs, last in self._chunks():
            self.watch.go_on()
            cuts, complete = self.options.window.cuts(chunk.src.size, chunk.time, last)
            if last and not complete and not self.options.keep_partial:
                self.dropped += int(cuts[-1] - cuts[-2])
                cuts = cuts[:-1]
            used = int(cuts[-1])
            if used:
                self._add_windows(Block(*(x if x is None else x[:used] for x in chunk)), cuts)
                if pairs is not None:
                    self._add_pairs(chunk.src[:used], chunk.dst[:used], pairs[:used])
            self.watch.lap("windows")
            self._tell()
        self._finish_all()

    def _add_windows(self, chunk: Block, cuts: Any) -> None:
        """Begin with the windows of a chunk; a GPU works on them while the next chunk is read."""
        self._finish_windows(max(self.worker.ahead - 1, 0))
        keep = self.listeners.on_window
        found = self.worker.begin(chunk.src, chunk.dst, cuts, keep is not None)
        firsts = (cuts[:-1] + self._packets).tolist()
        self._packets += int(cuts[-1])
        times = [] if chunk.time is None else np.asarray(chunk.time)[cuts[:-1]].tolist()

        def finish() -> None:
            table, run, matrices = found()
            self._tables.append(table)
            self._firsts.extend(firsts)
            self._times.extend(times)
            if keep is not None:
                number = len(self._firsts) - len(matrices)
                for k, matrix in enumerate(matrices):
                    keep(matrix, self._time_of(number + k))
            self._add_run(run)

        self._under_way.append(finish)
        self._finish_windows(self.worker.ahead)

    def _finish_windows(self, but: int = 0) -> None:
        """Wait for windows that were begun, but for the last few, and add their results."""
        while len(self._under_way) > but:
            self._under_way.popleft()()

    def _finish_all(self) -> None:
        while self._under_way:
            self.watch.go_on()
            self._finish_windows(len(self._under_way) - 1)
            self.watch.lap("windows")
            self._tell()

    def _time_of(self, window: int) -> int | None:
        return self._times[window] if self._times and not self._timeless else None

    def _add_run(self, run: Any) -> None:
        self.watch.lap("windows")
        self._sums.add(run)
        self.watch.lap("sums")

    def _add_pairs(self, src: Any, dst: Any, pairs: Any) -> None:
        """Packets by pairs of ranges, each added to its own sum."""
        for pair, here in self._by_pair(pairs):
            self._add_pair(pair, self.worker.run_of_packets(src[here], dst[here]))

    def _by_pair(self, pairs: Any) -> Iterator[tuple[int, Any]]:
        """(pair, positions of its packets) for all pairs that occur."""
        narrow = pairs.dtype == np.uint16
        ordered, order = radix_sort(
            pairs.astype(np.uint32 if narrow else np.uint64), threads=self.options.threads
        )
        heads = engines.xp(pairs).flatnonzero(ordered[1:] != ordered[:-1]) + 1
        cuts = [0, *heads.tolist(), int(pairs.size)]
        for start, end in itertools.pairwise(cuts):
            if start < end:
                yield int(ordered[start]), order[start:end]

    def _add_pair(self, pair: int, run: Any) -> None:
        if pair not in self._pairs:
            assert self.options.ranges is not None
            self._pairs[pair] = self.new_sums(sharing=len(self.options.ranges.names) ** 2)
        self._pairs[pair].add(run)

    def _blocks(self) -> Iterator[tuple[Block, Any]]:
        """Blocks as they are counted, and the pair of ranges of each packet (or None)."""
        given = self.source.blocks()
        while True:
            self.watch.go_on()
            block = next(given, None)
            self.watch.lap("read")
            if block is None:
                return
            if self.options.window.by_time and block.time is None:
                raise ValueError("sense: window is a time, and the packets have none")
            home = engines.home(self.options.engine)
            src, dst = (engines.moved(x, home) for x in block[:2])
            pairs = self._classified(block)
            if self.options.anonymizer is not None:
                src, dst = (engines.moved(self._anonymized(x), home) for x in (src, dst))
            block = Block(src, dst, block.time)
            self.watch.lap("anonymize")
            if self.options.compat:
                block, pairs = self._without_broadcast(block, pairs)
            yield self._without_time(block), pairs

    def _without_time(self, block: Block) -> Block:
        """Windows counted in packets need only the times of their first packets."""
        window = self.options.window
        self._timeless = self._timeless or (block.time is None and block.src.size > 0)
        if block.time is None or not isinstance(window, PacketWindows):
            return block
        self._times += block.time[-self._seen % window.size :: window.size].tolist()
        self._seen += block.src.size
        return block._replace(time=None)

    def _original(self, addresses: Any, place: str = "cpu") -> Any:
        """Addresses in usual byte order; compat reads those of files reversed."""
        addresses = engines.moved(addresses, place)
        if not (self.options.compat and self.source.files):
            return addresses
        turned = addresses.view(np.uint8).reshape(-1, 4)[:, ::-1]
        return engines.xp(addresses).ascontiguousarray(turned).view(np.uint32).reshape(-1)

    def _anonymized(self, addresses: Any) -> Any:
        """Ours works where the addresses are; an object of the user gets them on the CPU."""
        method, threads = self.options.anonymizer, self.options.threads
        place = engines.location(addresses) if isinstance(method, Anonymizer) else "cpu"
        changed = anonymized("sense", method, self._original(addresses, place), threads)
        return self._original(changed, place)  # turned back

    def _classified(self, block: Block) -> Any:
        ranges = self.options.ranges
        if ranges is None:
            return None
        src, dst = (ranges.classify(self._original(x)) for x in block[:2])
        src *= len(ranges.names)
        src += dst
        if len(ranges.names) ** 2 <= 1 << 16:
            src = src.astype(np.uint16)
        return engines.moved(src, engines.home(self.options.engine))

    def _without_broadcast(self, block: Block, pairs: Any) -> tuple[Block, Any]:
        kept = (block.src != LEFT_OUT) & (block.dst != LEFT_OUT)
        if bool(kept.all()):
            return block, pairs
        self.dropped += int(kept.size - kept.sum())
        where = engines.moved(kept, "cpu")
        moment = None if block.time is None else block.time[where]
        some = Block(block.src[kept], block.dst[kept], moment)
        return some, None if pairs is None else pairs[kept]

    def _chunks(self) -> Iterator[tuple[Block, Any, bool]]:
        """(packets, pairs, is the last): whole windows and what is left, until the last."""
        if self.source.whole:
            yield from self._slices()
            return
        room = Buffer(self._chunk(), self.options.threads, self.worker.ahead)
        for block, pairs in self._blocks():
            at = 0
            while at < block.src.size:
                at = room.fill(block, pairs, at)
                if room.is_full:
                    yield (*room.filled(), False)
                    room.keep_from(self._used(room))
        yield (*room.filled(), True)

    def _used(self, room: Buffer) -> int:
        """The number of packets counted: all before the window that is still open."""
        counted, room.counted = self._packets - room.counted, self._packets
        return counted

    def _slices(self) -> Iterator[tuple[Block, Any, bool]]:
        """Chunks as slices of arrays that are given whole: nothing is copied."""
        for block, pairs in self._blocks():
            n = block.src.size
            size = self._chunk()
            if self.options.batches > 1:
                size = max(1, -(-n // self.options.batches))
                window = self.options.window
                if isinstance(window, PacketWindows):
                    size = -(-size // window.size) * window.size
            start, before, end = 0, 0, 0
            while end < n:
                end = min(end + size, n)
                part = Block(*(x if x is None else x[start:end] for x in block))
                yield part, None if pairs is None else pairs[start:end], end == n
                start, before = start + self._packets - before, self._packets

    # Matrices of an archive

    def _add_matrices(self) -> None:
        """Small matrices become packets again, many windows at once; a large one is alone."""
        size = self._chunk()
        group, packets = list[tuple[TrafficMatrix, int | None]](), 0
        for matrix, time in self._matrices():
            self.watch.go_on()
            require_sum("sense", "source", self._packets + packets + matrix.packets)
            small = 0 < matrix.packets <= min(size, MOST_PACKETS * matrix.links)
            if group and (not small or packets + matrix.packets > size):
                self._add_group(group)
                group, packets = [], 0
            if small:
                group.append((matrix, time))
                packets += matrix.packets
            else:
                self._finish_windows(max(self.worker.ahead - 1, 0))
                self._add_matrix(matrix, time)
                self._finish_windows(self.worker.ahead)
            self.watch.lap("windows")
            self._tell()
        if group:
            self._add_group(group)
        self._finish_all()

    def _add_group(self, group: list[tuple[TrafficMatrix, int | None]]) -> None:
        """Begin with the windows of these matrices."""
        self._finish_windows(max(self.worker.ahead - 1, 0))
        pairs = (_packets_of(matrix) for matrix, _ in group)
        src, dst = map(np.concatenate, zip(*pairs, strict=True))
        cuts = np.cumsum([0, *(matrix.packets for matrix, _ in group)])
        found = self.worker.begin(src, dst, cuts, False)
        firsts = (cuts[:-1] + self._packets).tolist()
        self._packets += src.size
        self._timeless |= any(time is None for _, time in group)
        self._times += [time for _, time in group if time is not None]

        def finish() -> None:
            table, run, _ = found()
            self._tables.append(table)
            self._firsts.extend(firsts)
            for matrix, time in group if self.listeners.on_window else ():
                self.listeners.on_window(matrix, time)  # type: ignore[misc]
            self._add_run(run)

        self._under_way.append(finish)
        self._finish_windows(self.worker.ahead)

    def _add_matrix(self, matrix: TrafficMatrix, time: int | None) -> None:
        """Begin with the statistics of a matrix, which is a window that began at this time."""
        found = self.worker.begin_statistics(matrix)
        first = self._packets
        self._timeless = self._timeless or time is None
        self._times += [] if time is None else [time]
        self._packets += matrix.packets

        def finish() -> None:
            self._tables.append(np.array([as_row(found())], np.int64))
            self._firsts.append(first)
            if self.listeners.on_window is not None:
                self.listeners.on_window(matrix, time)
            self._add_run(self.worker.run_of_matrix(matrix))

        self._under_way.append(finish)

    def _matrices(self) -> Iterator[tuple[TrafficMatrix, int | None]]:
        given = self.source.matrices()
        while True:
            self.watch.go_on()
            matrix = next(given, None)
            self.watch.lap("read")
            if matrix is None:
                return
            yield self._changed(matrix), matrix.time

    def _changed(self, matrix: TrafficMatrix) -> TrafficMatrix:
        """The matrix anonymized and, with compat, without 255.255.255.255; counts its ranges."""
        options = self.options
        if options.ranges is None and options.anonymizer is None and not options.compat:
            return matrix
        src, dst, counts = matrix.tocoo()
        if options.ranges is not None:
            ours, theirs = (options.ranges.classify(self._original(x)) for x in (src, dst))
            pairs = ours * len(options.ranges.names) + theirs
        if options.anonymizer is not None:
            src, dst = (self._anonymized(x) for x in (src, dst))
        keys = (src.astype(np.uint64) << np.uint64(32)) | dst
        if options.compat:
            kept = (src != LEFT_OUT) & (dst != LEFT_OUT)
            self.dropped += int(counts[~kept].sum())
            keys, counts = keys[kept], counts[kept]
        if options.ranges is not None:
            for pair, here in self._by_pair(pairs[kept] if options.compat else pairs):
                self._add_pair(pair, self.worker.run_of_links(keys[here], counts[here]))
        return self.worker.matrix_of_run(self.worker.run_of_links(keys, counts))

    # The end

    def _tell(self) -> None:
        if self.listeners.on_chunk is not None:
            self.listeners.on_chunk({**self._capture(), "windows": self._windows()})

    def _windows(self) -> Windows:
        table = np.concatenate([np.empty((0, len(NAMES)), np.int64), *self._tables])
        known = len(table) and self._times and not self._timeless
        times = np.array(self._times[: len(table)], np.int64) if known else None
        return Windows(table, np.array(self._firsts, np.int64), times)

    def _capture(self) -> dict[str, Any]:
        found = self.source.read()
        packets = found["packets"] or self._packets + self.dropped  # files of packets count them
        return {**found, "packets": packets, "dropped": self.dropped}

    def _finished(self) -> Sensing:
        self.watch.go_on()
        made = total_of(self._sums, self.new_sums, self.folder, self.worker)
        blocks: dict[tuple[str, str], Statistics] | None = None
        if self.options.ranges is not None:  # from each range to each range
            names = self.options.ranges.names
            blocks = {
                (a, b): self._statistics_of_pair(i * len(names) + j)
                for i, a in enumerate(names)
                for j, b in enumerate(names)
            }
        self.watch.lap("total")
        return Sensing(
            made.statistics, self._windows(), made.matrix, made.histograms, blocks,
            self._capture(), self.watch.seconds,
        )  # fmt: skip

    def _statistics_of_pair(self, number: int) -> Statistics:
        if number not in self._pairs:
            return Statistics()
        return total_of(self._pairs[number], self.new_sums, self.folder, self.worker).statistics


# Sums of runs


class Stored(NamedTuple):
    """A run on disk."""

    keys: Path
    counts: Path
    size: int
    sample: Any  # every SAMPLE-th key


class Folder:
    """A private temporary folder, removed with the last object that uses it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="matchwood-"))  # mode 0700
        self._files = 0
        self.remove = weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)

    def file(self, kind: str) -> Path:
        self._files += 1
        return self.path / f"{self._files}.{kind}"


class RunSums:
    """Adds up runs of (keys, counts).

    Parameters
    ----------
    merge, combine : functions
        The sum of two runs, and of several.
    memory : int or None
        Bytes of runs that are kept in memory; None keeps all.
    folder : function
        Gives the folder for runs on disk when it is first needed.
    """

    def __init__(
        self,
        merge: Callable[..., Any],
        combine: Callable[..., Any],
        memory: int | None,
        folder: Callable[[], Folder],
    ) -> None:
        self._merge, self._combine = merge, combine
        self._memory = memory
        self._folder = folder
        self._levels: list[Any] = []
        self._stored: list[Stored] = []

    @property
    def on_disk(self) -> bool:
        return bool(self._stored)

    def add(self, run: Any) -> None:
        traffic.add_run(self._levels, run, self._merge)
        held = sum(LINK_BYTES * run.keys.size for run in self._levels if run is not None)
        if self._memory is not None and held > self._memory:
            self._store(self.take())

    def take(self) -> Any:
        """The sum of the runs in memory, which are dropped."""
        runs, self._levels = [run for run in self._levels if run is not None], []
        return self._combine(runs)

    def _store(self, run: Any) -> None:
        folder = self._folder()
        paths = folder.file("keys"), folder.file("counts")
        for path, array in zip(paths, run, strict=True):
            _append(path, array)
        self._stored.append(Stored(*paths, run.keys.size, run.keys[::SAMPLE].copy()))

    def parts(self, boundary: int) -> Iterator[Any]:
        """The sum as runs, each with larger keys than the one before.

        Keys that differ only in their lowest `boundary` bits are in one run.
        """
        if not self._stored:
            yield self.take()
            return
        if any(run is not None for run in self._levels):
            self._store(self.take())
        marks = self._marks(boundary)
        places = [_cuts(stored, marks) for stored in self._stored]
        for k in range(len(marks) + 1):
            pieces = [
                _read(stored, cut[k], cut[k + 1])
                for stored, cut in zip(self._stored, places, strict=True)
                if cut[k] < cut[k + 1]
            ]
            yield self._combine(pieces)
        for stored in self._stored:
            stored.keys.unlink()
            stored.counts.unlink()
        self._stored = []

    def _marks(self, boundary: int) -> list[Any]:
        """The first key of each range but the first."""
        sample = np.sort(np.concatenate([stored.sample for stored in self._stored]))
        total = LINK_BYTES * sum(stored.size for stored in self._stored)
        parts = 1 + 2 * total // max(1, self._memory or total)
        at = [sample[sample.size * part // parts] for part in range(1, parts)]
        shift = np.uint64(boundary)
        return sorted({(mark >> shift) << shift for mark in at})


def _packets_of(matrix: TrafficMatrix) -> tuple[Any, Any]:
    """Sources and destinations, each link as often as it has packets."""
    src, dst = np.repeat(matrix.sources, np.diff(matrix.indptr)), matrix.destinations
    if matrix.packets > matrix.links:
        src, dst = (np.repeat(part, matrix.counts) for part in (src, dst))
    return src, dst


def _append(path: Path, array: Any) -> None:
    """Append an array to a file, in pieces of `WRITTEN`."""
    with path.open("ab") as file:
        for start in range(0, array.size, WRITTEN):
            np.ascontiguousarray(array[start : start + WRITTEN]).tofile(file)


def _cuts(stored: Stored, marks: list[Any]) -> list[int]:
    keys = np.memmap(stored.keys, np.uint64, "r")
    return [0, *(int(np.searchsorted(keys, mark)) for mark in marks), stored.size]


def _read(stored: Stored, start: int, end: int) -> Any:
    made = Run(np.empty(end - start, np.uint64), np.empty(end - start, np.int64))
    for array, path in zip(made, (stored.keys, stored.counts), strict=True):
        for at in range(0, array.size, WRITTEN):
            part = array[at : at + WRITTEN]
            part[:] = np.fromfile(path, array.dtype, part.size, offset=8 * (start + at))
    return made


# From sums to the matrix, its statistics and histograms


class Total(NamedTuple):
    """The matrix, its statistics and histograms."""

    matrix: TrafficMatrix
    statistics: Statistics
    histograms: Histograms


def _counted_together(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """The sum of two histograms, each (values, counts)."""
    merged = np.union1d(a[0], b[0])
    sums = np.zeros(merged.size, np.int64)
    for values, counts in (a, b):
        sums[np.searchsorted(merged, values)] += counts
    return merged, sums


def total_of(
    sums: RunSums, new_sums: Callable[[], RunSums], folder: Callable[[], Folder], tools: Any
) -> Total:
    """The sum of all runs; `tools` are the engine's functions (stream/cpu.py)."""
    if not sums.on_disk:
        matrix = trusted(*tools.rows_of_run(sums.take()))
        histograms = tools.histograms(matrix)
        return Total(matrix, statistics_of(histograms), histograms)
    writer = _Writer(folder())
    none = np.empty(0, np.int64)
    made = dict.fromkeys(HISTOGRAMS, (none, none))  # values and counts
    fan_in, packets = new_sums(), new_sums()
    for run in sums.parts(SOURCE_BITS):
        rows = tools.rows_of_run(run)
        for name, parts in tools.source_tallies(rows).items():
            made[name] = _counted_together(made[name], parts)
        found = tools.destination_sums(rows.destinations, rows.counts)
        keys = found.destinations.astype(np.uint64)
        fan_in.add(type(run)(keys, found.fan_in))
        packets.add(type(run)(keys, found.packets))
        writer.write(rows)
    for name, side in (("destination_fan_in", fan_in), ("destination_packets", packets)):
        for run in side.parts(0):
            made[name] = _counted_together(made[name], tools.counted(run.counts))
    histograms = histograms_of(made)
    return Total(writer.matrix(), statistics_of(histograms), histograms)


def statistics_of(histograms: Histograms) -> Statistics:
    """The nine quantities, from sums and largest values of the histograms."""

    def end(histogram: Histogram) -> tuple[int, int]:
        if histogram.values.size == 0:
            return 0, 0
        return int(histogram.values[-1]), int(histogram.counts[-1])

    link = histograms.link_packets
    return from_extremes(
        link.weight, link.total, histograms.source_packets.total,
        histograms.destination_packets.total,
        (end(getattr(histograms, name)) for name in QUANTITIES),
    )  # fmt: skip


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
            _append(path, array)
        self._links += rows.counts.size

    def matrix(self) -> TrafficMatrix:
        arrays = (
            np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)
            for path, kind in zip(self._paths, self.KINDS, strict=True)
        )
        return trusted(*arrays, owner=self._folder)  # the files go with the matrix

"""The loop of `sense`: packets come in, are anonymized, cut into windows, counted and added up."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics import Ranges, Statistics, Windows
from matchwood.applications.sensing.statistics.quantities import NAMES, as_row
from matchwood.applications.sensing.stream.chunks import CHUNK, Buffer
from matchwood.applications.sensing.stream.result import Sensing
from matchwood.applications.sensing.stream.sources import Block, Source, anonymized
from matchwood.applications.sensing.stream.sums import Folder, RunSums
from matchwood.applications.sensing.stream.totals import blocks_of, total_of
from matchwood.applications.sensing.stream.windows import PacketWindows, TimeWindows
from matchwood.applications.sensing.traffic import TrafficMatrix, require_sum
from matchwood.primitives.sort import radix_sort

CHUNK_BYTES = 64  # that a packet of a chunk takes: itself, two keys, destination, run
CHUNK_PART = 4  # of the memory that is allowed a quarter is for a chunk ...
RUNS_PART = 10  # ... a tenth for runs, which are copied when they are merged
LEFT_OUT = np.uint32(0xFFFFFFFF)  # the address 255.255.255.255, which compat drops
CLOCK = time.perf_counter


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
    """Who wants to know what happens while it happens."""

    on_window: Callable[[TrafficMatrix, int | None], object] | None = None  # matrix, its time
    on_chunk: Callable[[dict[str, Any]], object] | None = None  # what was read, windows so far


class Runner:
    """One call of `sense`."""

    def __init__(self, source: Source, options: Options, listeners: Listeners) -> None:
        self.source, self.options, self.listeners = source, options, listeners
        self.worker = engines.load("matchwood.applications.sensing.stream", options.engine).Worker(
            options.threads, *((options.devices,) if options.engine == "gpu" else ())
        )
        self.seconds = dict.fromkeys(("read", "anonymize", "windows", "sums", "total"), 0.0)
        self.dropped = 0
        self._folder: Folder | None = None
        self._tables: list[Any] = []
        self._firsts: list[int] = []
        self._times: list[int] = []  # of the first packets of windows
        self._timeless = False  # some packets have no time
        self._seen = 0  # packets that came, where windows are of so many packets
        self._packets = 0
        self._under_way: Callable[[], None] | None = None  # windows that are worked on meanwhile
        self._sums = self.new_sums()
        self._pairs: dict[int, RunSums] = {}

    def new_sums(self, sharing: int = 1) -> RunSums:
        """Room for sums; `sharing` is how many of them share the memory for runs."""
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
        """Packets of a chunk: whole windows where they are of so many packets."""
        size = CHUNK
        if self.options.memory is not None:
            size = min(size, max(1, self.options.memory // CHUNK_PART // CHUNK_BYTES))
        window = self.options.window
        if isinstance(window, PacketWindows):
            size = max(1, size // window.size) * window.size
        return size

    def _add_packets(self) -> None:
        for chunk, pairs, last in self._chunks():
            since = CLOCK()
            cuts, complete = self.options.window.cuts(chunk.src.size, chunk.time, last)
            if last and not complete and not self.options.keep_partial:
                self.dropped += int(cuts[-1] - cuts[-2])
                cuts = cuts[:-1]
            used = int(cuts[-1])
            if used:
                self._add_windows(Block(*(x if x is None else x[:used] for x in chunk)), cuts)
                if pairs is not None:
                    self._add_pairs(chunk.src[:used], chunk.dst[:used], pairs[:used])
            self.seconds["windows"] += CLOCK() - since
            self._tell()
        if self._under_way is not None:
            since = CLOCK()
            self._finish_windows()
            self.seconds["windows"] += CLOCK() - since
            self._tell()

    def _add_windows(self, chunk: Block, cuts: Any) -> None:
        """Begin with the windows of a chunk; a GPU works on them while the next chunk is read."""
        self._finish_windows()
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
            self._add_run(self._sums, run)

        self._under_way = finish
        if not self.worker.ahead:
            self._finish_windows()

    def _finish_windows(self) -> None:
        """Wait for the windows that were begun, and take what was found."""
        finish, self._under_way = self._under_way, None
        if finish is not None:
            finish()

    def _time_of(self, window: int) -> int | None:
        return self._times[window] if self._times and not self._timeless else None

    def _add_run(self, sums: RunSums, run: Any) -> None:
        since = CLOCK()
        sums.add(run)
        self.seconds["sums"] += CLOCK() - since

    def _add_pairs(self, src: Any, dst: Any, pairs: Any) -> None:
        """Packets by pairs of ranges, each added to its own sum."""
        for pair, here in self._by_pair(pairs):
            self._add_pair(pair, self.worker.run_of_packets(src[here], dst[here]))

    def _by_pair(self, pairs: Any) -> Iterator[tuple[int, Any]]:
        """(pair, where it is) for all pairs that there are."""
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
            since = CLOCK()
            block = next(given, None)
            read = CLOCK()
            self.seconds["read"] += read - since
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
            self.seconds["anonymize"] += CLOCK() - read
            if self.options.compat:
                block, pairs = self._without_broadcast(block, pairs)
            yield self._without_time(block), pairs

    def _without_time(self, block: Block) -> Block:
        """Of windows of so many packets only the times of first packets are needed."""
        window = self.options.window
        self._timeless = self._timeless or (block.time is None and block.src.size > 0)
        if block.time is None or not isinstance(window, PacketWindows):
            return block
        self._times += block.time[-self._seen % window.size :: window.size].tolist()
        self._seen += block.src.size
        return block._replace(time=None)

    def _original(self, addresses: Any) -> Any:
        """Addresses as they are written; compat reads those of files the other way round."""
        addresses = engines.moved(addresses, "cpu")
        return addresses.byteswap() if self.options.compat and self.source.files else addresses

    def _anonymized(self, addresses: Any) -> Any:
        changed = anonymized("sense", self.options.anonymizer, self._original(addresses))
        return self._original(changed)  # turned back

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
        """Packets of the chunk that were counted: all before the window that is still open."""
        counted, room.counted = self._packets - room.counted, self._packets
        return counted

    def _slices(self) -> Iterator[tuple[Block, Any, bool]]:
        """Arrays that are all here need no copy: they are cut where chunks end."""
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
        for matrix in self._matrices():
            since = CLOCK()
            require_sum("sense", "source", self._packets + matrix.packets)
            if self.listeners.on_window is not None:
                self.listeners.on_window(matrix, None)
            found = self.worker.statistics(matrix)
            self._tables.append(np.array([as_row(found)], np.int64))
            self._firsts.append(self._packets)
            self._packets += matrix.packets
            self._add_run(self._sums, self.worker.run_of_matrix(matrix))
            self.seconds["windows"] += CLOCK() - since
            self._tell()

    def _matrices(self) -> Iterator[TrafficMatrix]:
        given = self.source.matrices()
        while True:
            since = CLOCK()
            matrix = next(given, None)
            self.seconds["read"] += CLOCK() - since
            if matrix is None:
                return
            yield self._changed(matrix)

    def _changed(self, matrix: TrafficMatrix) -> TrafficMatrix:
        """Anonymized, with what is counted by ranges; compat leaves an address out."""
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
        since = CLOCK()
        made = total_of(self._sums, self.new_sums, self.folder, self.worker)
        blocks: dict[tuple[str, str], Statistics] | None = None
        if self.options.ranges is not None:
            blocks = blocks_of(
                self.options.ranges.names,
                self._pairs,
                lambda sums: total_of(sums, self.new_sums, self.folder, self.worker),
            )
        self.seconds["total"] = CLOCK() - since
        self.seconds["windows"] -= self.seconds["sums"]
        return Sensing(
            made.statistics, self._windows(), made.matrix, made.histograms, blocks,
            self._capture(), self.seconds,
        )  # fmt: skip

"""CUDA's devices: the steps of __init__.py as launches and copies.  Kernels: gpu.cu."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.components.connected.devices import (
    CALLER,
    SENT_NEIGHBOURS,
    Problem,
)
from matchwood.components.connected.devices.cpu import gather_two, no_vertex
from matchwood.engines import gpu
from matchwood.engines.cpu import crew
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices.pinned import mapped, rings_of
from matchwood.engines.devices.plan import cut_rows
from matchwood.engines.devices.sending import Lane, Sender
from matchwood.engines.devices.stats import Stats
from matchwood.engines.devices.workers import DeviceWorkers

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "begin_forest<I>",
        "join_two<I>",
        "read_two<I,P>",
        "list_rest<I>",
        "join_rows<I,P>",
        "join_forest<I>",
        "flatten_forest<I>",
        "mark_roots<I>",
        "write_labels<I>",
    ),
    types={"P": (np.int32, np.int64)},
)
SAMPLES = 1024  # vertices whose component is read
ROW_THREADS = 1 << 20  # threads of join_rows at most; a warp takes 32 rows after the other


class Workers(DeviceWorkers):
    """The partitions of a call, one worker each."""

    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        self._problem, view = problem, problem.view
        super().__init__(
            functools.partial(Worker, problem), machine, stats, CALLER,
            (view.indptr, view.indices), problem.keep, "pinned pattern",
        )  # fmt: skip

    def exchange(self) -> None:
        """Every device joins the forests of the others, which it receives as they are."""
        for worker in self.workers:
            worker.flatten()
        if self._transport is None:
            return
        self._round.words_exchanged = self._problem.view.n * (len(self.workers) - 1)
        for sender, source in enumerate(self.workers):
            arrays = [source.parent if one is source else one.numbers for one in self.workers]
            self._transport.share(sender, arrays)
            for worker in self.workers:
                if worker is not source:
                    worker.join_forest()
        for worker in self.workers:
            worker.flatten()

    def result(self) -> Any:
        """The number of components, and the labels on the host."""
        return self.workers[0].label()


class Worker:
    """One partition: a forest of all vertices, in which its own rows are joined."""

    def __init__(self, problem: Problem, p: int, ledger: Any, lane: Lane, pinned: Any) -> None:
        plan, view, kind = problem.plan, problem.view, problem.kind
        self._problem, self.ledger, self.lane = problem, ledger, lane
        self._part, self._buffer, self._batches = (
            plan.partitions[p],
            plan.buffer[p],
            plan.batches[p],
        )
        self._kernels = SOURCE.kernels(I=kind, P=view.indptr.dtype)
        take = ledger.take
        self.parent, self.numbers = take(view.n, kind), take(view.n, kind)
        self._labels = take(view.n, kind)
        self._rest = take(self._part.vertices, kind)
        self._more = take(self._part.vertices, np.uint8)
        self._count = take(1, np.uint64)
        self._reads = False  # whether the device reads rows from the memory of the host
        entries = max(SENT_NEIGHBOURS, self._buffer.entries)
        buffers = [
            SimpleNamespace(
                ids=take(self._buffer.rows, kind),
                places=take(2 * self._buffer.rows + 1, view.indptr.dtype),
                columns=take(entries, kind),
                free=None,
            )
            for _ in range(plan.buffers[p])
        ]
        self.sender = Sender(lane, pinned, rings_of(problem.keep), problem.threads, buffers)
        self._kernels.begin_forest(view.n, (view.n, self.parent))
        lane.copies.wait_event(lane.event(lane.kernels))

    def join_first(self) -> None:
        """Send and join the first two neighbours of each row."""
        view = self._problem.view
        pinned = self.sender.pinned.holds(view.indptr) and self.sender.pinned.holds(view.indices)
        if pinned and view.indices.dtype == self._problem.kind:
            self._read_first()
        else:
            self._gather_first()

    def _read_first(self) -> None:
        """Let the device read them, row by row: three times as fast as 16 threads gather them."""
        part, view = self._part, self._problem.view
        with self.lane.here(), self.lane.phase("transfer"):
            self._count.data.memset_async(0, self._count.nbytes)
            places, columns = mapped(view.indptr), mapped(view.indices)
            self._kernels.read_two(
                part.vertices,
                (part.lo, part.hi, places, columns, self._more, self.parent, self._count),
            )
        self._reads = True

    def first_joined(self) -> None:
        """Take what `join_first` has counted; all partitions have been set to join by now."""
        if self._reads:
            with self.lane.here():
                self.lane.wait()
                sent = int(self._count.get(stream=self.lane.kernels)[0])
            self.sender.round.entries += sent
            self.sender.round.bytes_up += sent * self._problem.kind.itemsize

    def _gather_first(self) -> None:
        """Let the threads of the host gather them."""
        part, kind = self._part, self._problem.kind
        step = max(1, self._buffer.entries // SENT_NEIGHBOURS)
        sent: list[int] = []
        with self.lane.here():
            for lo in range(part.lo, part.hi, step):
                rows = min(step, part.hi - lo)
                buffer = self.sender.next_buffer()
                there = buffer.columns[: SENT_NEIGHBOURS * rows]
                with self.lane.phase("transfer", self.lane.copies):
                    self.sender.produce((there, functools.partial(self._write_two, lo, sent)))
                with self.sender.reading(buffer), self.lane.phase("pointing"):
                    more = self._more[lo - part.lo : lo - part.lo + rows]
                    self._kernels.join_two(
                        rows, (rows, lo, no_vertex(kind), there, more, self.parent)
                    )

        self.sender.round.entries += sum(sent)

    def _write_two(self, lo: int, sent: list[int], staged: Any, begin: int) -> None:
        """Write two neighbours of the rows from `lo` on, at word `begin`; `sent`: their number."""
        first, team = lo + begin // SENT_NEIGHBOURS, crew(self._problem.threads, work=staged.size)
        sent.append(gather_two(self._problem.view, first, staged, team))

    def join_all(self) -> None:
        """Send and join all rows."""
        view = self._problem.view
        with self.lane.here():
            for batch in self._batches:
                rows, entries = batch.hi - batch.lo, batch.last - batch.first
                buffer = self.sender.next_buffer()
                places = buffer.places[: rows + 1]
                with self.lane.phase("transfer", self.lane.copies):
                    self.sender.send(
                        (places, view.indptr[batch.lo : batch.hi + 1]),
                        (buffer.columns[:entries], view.indices[batch.first : batch.last]),
                    )
                self.sender.round.entries += entries
                self._join_rows(buffer, rows, None, batch.lo, batch.first, batch.last)

    def _join_rows(
        self, buffer: Any, rows: int, ids: Any, base: int, first: int, last: int
    ) -> None:
        begins, ends = buffer.places[:rows], buffer.places[1 : rows + 1]
        with self.sender.reading(buffer), self.lane.phase("pointing"):
            self._kernels.join_rows(
                min(rows, ROW_THREADS),
                (rows, ids, base, begins, ends, first, last, buffer.columns, self.parent),
            )

    def expect_answer(self) -> None:
        """Make room for the labels on the host, while rows are being sent."""
        self.sender.expect(self._labels)

    def largest(self) -> int:
        """The root that most vertices of a sample have; a wrong guess costs traffic only."""
        n = self._problem.view.n
        with self.lane.here():
            sample = engines.cupy().asarray(np.linspace(0, n - 1, min(n, SAMPLES), dtype=np.int64))
            self.lane.wait()
            roots = self.parent[sample].get(stream=self.lane.kernels)
        found, counts = np.unique(roots, return_counts=True)
        return int(found[counts.argmax()])

    def join_rest(self, largest: int) -> None:
        """Send and join the rows outside the largest component that have more than two entries."""
        view, part = self._problem.view, self._part
        with self.lane.here():
            self._count.data.memset_async(0, self._count.nbytes)
            self._kernels.list_rest(
                part.vertices,
                (part.lo, part.hi, largest, self._more, self.parent, self._rest, self._count),
            )
            self.lane.wait()
            size = int(self._count.get(stream=self.lane.kernels)[0])
            rest = np.sort(self._rest[:size].get(stream=self.lane.kernels))
            self.sender.round.rows += size
            self.sender.round.bytes_down += rest.nbytes
            if size == 0:
                return
            begin, offsets = cpu_copies.find_rows(view.indptr, rest, self._problem.threads)
            for row, stop, first, last in cut_rows(offsets, self._buffer):
                self._join_group(
                    rest[row:stop], begin[row:stop], offsets[row : stop + 1], first, last
                )

    def _join_group(self, ids: Any, begin: Any, offsets: Any, first: int, last: int) -> None:
        view, rows, entries = self._problem.view, ids.size, last - first
        buffer = self.sender.next_buffer()
        with self.lane.phase("transfer", self.lane.copies):
            self.sender.send((buffer.ids[:rows], ids), (buffer.places[: rows + 1], offsets))
            self.sender.gather(begin, offsets, first, (buffer.columns[:entries], view.indices))
        self.sender.round.entries += entries
        self._join_rows(buffer, rows, buffer.ids, 0, first, last)

    def join_forest(self) -> None:
        """Join the forest of another device, which lies in `numbers`."""
        n = self._problem.view.n
        with self.lane.here():
            self._kernels.join_forest(n, (n, self.numbers, self.parent))

    def flatten(self) -> None:
        """Hook every vertex directly under its root."""
        n = self._problem.view.n
        with self.lane.here():
            self._kernels.flatten_forest(n, (n, self.parent))

    def label(self) -> tuple[int, Any]:
        """Number the components by their smallest vertices."""
        n, k = self._problem.view.n, self._kernels
        with self.lane.here():
            k.mark_roots(n, (n, self.parent, self.numbers))
            engines.cupy().cumsum(self.numbers, out=self.numbers)
            k.write_labels(n, (n, self.parent, self.numbers, self._labels))
            labels = self.sender.receive(self._labels)
            count = int(self.numbers[-1:].get(stream=self.lane.kernels)[0])
        return count, labels

"""The steps of a round on CUDA devices, as launches and copies.  Kernels: gpu.cu."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices.pinned import rings_of
from matchwood.engines.devices.plan import cut_rows
from matchwood.engines.devices.sending import Lane, Sender
from matchwood.engines.devices.stats import Stats
from matchwood.engines.devices.workers import DeviceWorkers
from matchwood.factors.rounds.devices import CALLER, Charge, Problem

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "list_rooms<P>",
        "pack_rows<I,P,W>",
        "propose_next<I,P,W>",
        "count_proposals<I>",
        "confirm_all<I,W>",
        "settle_rows<I,W>",
    ),
    types={"P": (np.int32, np.int64)},
)
PROPOSED, WANTED, CONFIRMED, CHANGED, CONTROL_WORDS = SOURCE.constants(
    "PROPOSED", "WANTED", "CONFIRMED", "CHANGED", "CONTROL_WORDS"
)
LARGEST_N = 32  # proposals that a warp holds in its lanes
PACK_THREADS = 1 << 20  # threads of pack_rows at most; a warp takes one row after the other


class Workers(DeviceWorkers):
    """The partitions of a call, one worker each."""

    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        if problem.rule.n > LARGEST_N:
            raise ValueError(
                f"{CALLER}: n must be at most {LARGEST_N} on Devices, got {problem.rule.n}"
            )
        self._problem, view = problem, problem.view
        super().__init__(
            functools.partial(Worker, problem), machine, stats, CALLER,
            (view.indptr, view.indices, view.data), problem.keep, "pinned weights",
        )  # fmt: skip

    def end_round(self) -> None:
        self._round.pointed = sum(int(worker.words[CHANGED]) for worker in self.workers)
        super().end_round()

    def proposed(self) -> int:
        return sum(worker.proposed() for worker in self.workers)

    def confirmed(self) -> int:
        """Proposals of this round that were answered; every worker knows them all."""
        return int(self.workers[0].words[CONFIRMED])

    def exchange(self) -> None:
        """Copy the proposals of every device to the others."""
        if self._transport is None:
            return
        n = self._problem.rule.n
        sent = []
        for sender, source in enumerate(self.workers):
            own = slice(source.part.lo * n, source.part.hi * n)
            self._transport.share(sender, [worker.proposals[own] for worker in self.workers])
            sent.append(n * source.part.vertices)
        self._round.words_exchanged = max(sum(sent) - own for own in sent)

    def result(self) -> tuple[Any, Any]:
        """The neighbours of all vertices and the weights of their edges, on the host."""
        tables = [worker.table() for worker in self.workers]
        neighbours = np.concatenate([table[0] for table in tables])
        weights = np.concatenate([table[1] for table in tables])
        self._round.bytes_down += neighbours.nbytes + weights.nbytes
        return neighbours, weights


class Worker:
    """One partition: its arrays on the device and the steps on them."""

    def __init__(self, problem: Problem, p: int, ledger: Any, lane: Lane, pinned: Any) -> None:
        layout, view, kind, n = problem.layout, problem.view, problem.kind, problem.rule.n
        self._problem, self.ledger, self.lane = problem, ledger, lane
        self.part, self._buffer = layout.partitions[p], layout.buffer[p]
        self._batches = layout.batches[p]
        weight, place = view.data.dtype, view.indptr.dtype
        self._kernels = SOURCE.kernels(I=kind, P=place, W=weight)
        take, vertices = ledger.take, self.part.vertices
        self._taken, self.proposals = take(view.n, np.uint8), take(view.n * n, kind)
        self._proposed_weights = take(vertices * n, weight)
        self._chosen, self._chosen_weights = take(vertices * n, kind), take(vertices * n, weight)
        self._start, self._size = take(vertices + 1, place), take(vertices, np.uint8)
        self._columns, self._weights = take(layout.listed[p], kind), take(layout.listed[p], weight)
        self._wanted, self._control = take(vertices, kind), take(CONTROL_WORDS, np.uint64)
        self.words = np.zeros(CONTROL_WORDS, np.uint64)
        buffers = [
            SimpleNamespace(
                ids=take(self._buffer.rows, kind),
                places=take(2 * self._buffer.rows + 1, place),
                columns=take(self._buffer.entries, kind),
                weights=take(self._buffer.entries, weight),
                free=None,
            )
            for _ in range(layout.buffers[p])
        ]
        self.sender = Sender(lane, pinned, rings_of(problem.keep), problem.threads, buffers)
        self._begin()

    def _begin(self) -> None:
        for array, byte in (
            (self._taken, 0), (self.proposals, 0xFF), (self._size, 0), (self._start, 0),
        ):  # fmt: skip
            array.data.memset_async(byte, array.nbytes)
        self.lane.copies.wait_event(self.lane.event(self.lane.kernels))
        offsets = self._problem.view.indptr[self.part.lo : self.part.hi + 1]
        for first in range(0, self.part.vertices, max(1, self._buffer.rows)):
            rows = min(self._buffer.rows, self.part.vertices - first)
            buffer = self.sender.next_buffer()
            there = buffer.places[: rows + 1]
            self.sender.send((there, offsets[first : first + rows + 1]))
            with self.sender.reading(buffer):
                rooms = self._start[1 + first : 1 + first + rows]
                length = self._problem.layout.length
                self._kernels.list_rooms(rows, (rows, there, length, rooms))
        if self.part.vertices:
            engines.cupy().cumsum(self._start, out=self._start)

    def _pack(self, buffer: Any, rows: int, ids: Any, base: int, first: int, last: int,
              charge: Charge) -> None:  # fmt: skip
        rule = self._problem.rule
        begins, ends = buffer.places[:rows], buffer.places[1 : rows + 1]
        with self.sender.reading(buffer), self.lane.phase("pointing"):
            self._kernels.pack_rows(
                min(32 * rows, PACK_THREADS),
                (
                    rows, ids, base, begins, ends, first, last, buffer.columns, buffer.weights,
                    rule.n, self.part.lo, *charge, self._taken, self._chosen, self._start,
                    self._size, self._columns, self._weights, self.proposals,
                    self._proposed_weights, rule.seed, rule.by_hash,
                ),
            )  # fmt: skip

    def stream_all(self, charge: Charge) -> None:
        """All rows travel; lists and proposals are made anew."""
        view, n = self._problem.view, self._problem.rule.n
        with self.lane.here():
            own = self.proposals[self.part.lo * n : self.part.hi * n]
            own.data.memset_async(0xFF, own.nbytes)
            self._size.data.memset_async(0, self._size.nbytes)
            self._control.data.memset_async(0, self._control.nbytes)
            self._control[CHANGED] = self.part.vertices
            for batch in self._batches:
                entries, rows = batch.last - batch.first, batch.hi - batch.lo
                buffer = self.sender.next_buffer()
                with self.lane.phase("transfer", self.lane.copies):
                    some = slice(batch.first, batch.last)
                    self.sender.send(
                        (buffer.places[: rows + 1], view.indptr[batch.lo : batch.hi + 1]),
                        (buffer.columns[:entries], view.indices[some]),
                        (buffer.weights[:entries], view.data[some]),
                    )
                self.sender.round.entries += entries
                self._pack(buffer, rows, None, batch.lo, batch.first, batch.last, charge)

    def propose(self, charge: Charge) -> None:
        part = self.part
        with self.lane.here(), self.lane.phase("pointing"):
            self._control.data.memset_async(0, self._control.nbytes)
            self._kernels.propose_next(
                part.vertices,
                (
                    self._problem.rule.n, part.lo, part.hi, *charge, self._taken, self._chosen,
                    self._start, self._size, self._columns, self._weights, self.proposals,
                    self._proposed_weights, self._wanted, self._control,
                ),
            )  # fmt: skip

    def _read_control(self) -> None:
        self.lane.wait()
        self.words = self._control.get(stream=self.lane.kernels)

    def fetch(self, charge: Charge) -> None:
        """Send again the rows of vertices whose list does not hold enough."""
        view = self._problem.view
        with self.lane.here():
            self._read_control()
            count = int(self.words[WANTED])
            if count == 0:
                return
            wanted = np.sort(self._wanted[:count].get(stream=self.lane.kernels))
            self.sender.round.rows += count
            self.sender.round.bytes_down += wanted.nbytes
            self._control[CHANGED] = int(self.words[CHANGED]) + count
            begin, offsets = cpu_copies.find_rows(view.indptr, wanted, self._problem.threads)
            for row, stop, first, last in cut_rows(offsets, self._buffer):
                places = offsets[row : stop + 1]
                self._fetch_group(wanted[row:stop], begin[row:stop], places, first, last, charge)

    def _fetch_group(
        self, ids: Any, begin: Any, places: Any, first: int, last: int, charge: Charge
    ) -> None:
        view, rows, entries = self._problem.view, ids.size, last - first
        buffer = self.sender.next_buffer()
        with self.lane.phase("transfer", self.lane.copies):
            self.sender.send((buffer.ids[:rows], ids), (buffer.places[: rows + 1], places))
            self.sender.gather(
                begin, places, first,
                (buffer.columns[:entries], view.indices), (buffer.weights[:entries], view.data),
            )  # fmt: skip
        self.sender.round.entries += entries
        self._pack(buffer, rows, buffer.ids, 0, first, last, charge)

    def proposed(self) -> int:
        n = self._problem.rule.n
        with self.lane.here():
            own = self.proposals[self.part.lo * n : self.part.hi * n]
            self._kernels.count_proposals(own.size, (own.size, own, self._control))
            self._read_control()
        return int(self.words[PROPOSED])

    def confirm(self) -> None:
        """Edges that both ends propose are in the factor."""
        vertices, n, part = self._problem.view.n, self._problem.rule.n, self.part
        with self.lane.here(), self.lane.phase("matching"):
            self._kernels.confirm_all(
                vertices,
                (
                    vertices, n, part.lo, part.hi, self.proposals, self._proposed_weights,
                    self._taken, self._chosen, self._chosen_weights, self._control,
                ),
            )  # fmt: skip
            self._read_control()

    def table(self) -> tuple[Any, Any]:
        rule, part = self._problem.rule, self.part
        with self.lane.here():
            arrays = (self._taken, self._chosen, self._chosen_weights, rule.seed, rule.by_hash)
            self._kernels.settle_rows(part.vertices, (rule.n, part.lo, part.hi, *arrays))
            self.lane.wait()
            shape = (part.vertices, rule.n)
            stream = self.lane.kernels
            chosen = self._chosen.get(stream=stream).reshape(shape)
            return chosen, self._chosen_weights.get(stream=stream).reshape(shape)

"""CUDA's devices: the steps of rounds.py for all partitions, and what they tell each other.

A partition: gpu_worker.py.  Kernels: gpu.cu.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from matchwood.engines.devices.stats import Stats
from matchwood.engines.devices.workers import DeviceWorkers, as_pairs, words_received
from matchwood.matching.dominant.devices.gpu_worker import (
    ALL_POINTED,
    MATCHED,
    POINTED,
    QUEUED,
    WANTED,
    Worker,
)
from matchwood.matching.dominant.devices.rounds import Problem, staged_pairs


class Workers(DeviceWorkers):
    """The partitions of a call, one worker each."""

    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        self._problem, devices, view = problem, machine.devices, problem.view
        self._finished = self._ran_on = False
        self.alone = devices.size == 1 and not devices.stats and devices.transport != "nccl"
        self._one_device = len(set(devices.devices)) == 1
        super().__init__(
            functools.partial(Worker, problem), machine, stats, "weighted_matching",
            () if problem.stays else (view.indptr, view.indices, view.data), problem.keep,
            "pinned weights",
        )  # fmt: skip
        if problem.stays:
            stats.pinned = "none"

    def end_round(self) -> None:
        if not self._ran_on:
            self._round.pointed += sum(int(worker.words[POINTED]) for worker in self.workers)
        super().end_round()

    def matched(self) -> int:
        """Edges matched in this round; every worker knows them all."""
        return int(self.workers[0].words[MATCHED])

    def any_queued(self) -> bool:
        return any(worker.words[QUEUED] for worker in self.workers)

    def run_on(self) -> int:
        """Rounds of the only partition until a row is needed; how many matched a vertex."""
        worker = self.workers[0]
        self._ran_on = True
        rounds = worker.run_on()
        self._round.pointed += int(worker.words[ALL_POINTED])
        self._finished = not worker.words[POINTED] and not worker.words[WANTED]
        worker.goes_on = not self._finished
        return rounds

    def finished(self) -> bool:
        """`run_on` came to the end."""
        return self._finished

    def exchange(self, whole: bool) -> None:
        """Every device learns the changed pointers of the others."""
        if self._transport is None or (len(self.workers) == 1 and not whole):
            return
        vertices = [part.vertices for part in self._problem.plan.partitions]
        changed = vertices if whole else [int(one.words[POINTED]) for one in self.workers]
        with self._exchanging():
            if whole:
                self._share_words(range(len(self.workers)))
            else:
                self._share_changed(changed, vertices)
        self._round.words_exchanged += max(words_received(changed, vertices))

    def share_all(self) -> None:
        """Every device gets the words of all vertices of the others, changed or not."""
        if self._transport is None:
            return
        vertices = [part.vertices for part in self._problem.plan.partitions]
        with self._exchanging():
            self._share_words(range(len(self.workers)))
        self._round.words_exchanged += max(words_received(vertices, vertices))

    @contextlib.contextmanager
    def _exchanging(self) -> Iterator[None]:
        """What is queued within, on any device, counts as the exchange."""
        with contextlib.ExitStack() as stack:
            for worker in self.workers:
                stack.enter_context(worker.lane.phase("exchange"))
            yield

    def _share_words(self, senders: Any) -> None:
        for sender in senders:
            part = self._problem.plan.partitions[sender]
            slices = [worker.state[part.lo : part.hi] for worker in self.workers]
            self._transport.share(sender, slices)

    def _share_changed(self, changed: list[int], vertices: list[int]) -> None:
        """Pairs of all partitions in one table, where there is room; else in pieces."""
        room, total = staged_pairs(self._problem.view.n), sum(changed)
        fits = total <= room
        for worker in self.workers:
            worker.staged_pairs = total if fits else None
            worker.table = worker.staged
        if fits and self._one_device:
            return self._share_table(changed)
        at = 0
        for sender, count in enumerate(changed):
            if not fits and not as_pairs(count, vertices[sender]):
                self._share_words([sender])
                continue
            for begin in range(0, count, room):
                size = min(room, count - begin)
                self._share_pairs(sender, begin, size, at if fits else 0)
                at += size
        return None

    def _share_table(self, changed: list[int]) -> None:
        """On one device all write into the table of the first partition, and all read that."""
        table, at, written = self.workers[0].staged, 0, {}
        for worker, count in zip(self.workers, changed, strict=True):
            worker.table = table
            if count:
                worker.write_pairs(0, count, table[2 * at : 2 * (at + count)])
                written[worker] = worker.lane.event(worker.lane.kernels)
            at += count
        for worker in self.workers:
            for other, event in written.items():
                if other is not worker:
                    worker.lane.kernels.wait_event(event)
            worker.read_pairs(at, table)

    def _share_pairs(self, sender: int, begin: int, size: int, at: int) -> None:
        tables = [worker.staged[2 * at : 2 * (at + size)] for worker in self.workers]
        self.workers[sender].write_pairs(begin, size, tables[sender])
        self._transport.share(sender, tables)
        for worker, table in zip(self.workers, tables, strict=True):
            if worker is not self.workers[sender]:
                worker.read_pairs(size, table)

    def result(self) -> tuple[Any, float]:
        """The mates of all vertices, on the host, and the weight of the matching."""
        for worker in self.workers:
            worker.add_weights()
        mates = self.workers[0].mates()
        return mates, sum(worker.weight() for worker in self.workers) / 2

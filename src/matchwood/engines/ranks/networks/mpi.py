"""MPI by mpi4py.  Read protocol.py and polled.py first.

Data are sent by the width of their type, and reductions are done here, in the order of the ranks:
so all types work, and a sum of floats is the same with every library.  Libraries may count in 32
bits (Open MPI 4 does): an operation on more than `part` elements in all is done by single messages
of at most `part` elements each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks import checks
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.networks import staging
from matchwood.engines.ranks.networks.polled import (
    NOTICE_BYTES,
    SLEEP_SECONDS,
    Control,
    Path,
    Polled,
)
from matchwood.engines.ranks.networks.shared import among_neighbours
from matchwood.engines.ranks.networks.staging import described, header
from matchwood.engines.ranks.protocol import Communicator, Session, Traffic

PART = 1 << 30  # elements of one message
GATHERED_BYTES = 1 << 14  # of all ranks: up to this, all gather and each rank reduces all

_types: dict[int, Any] = {}  # of MPI, by their bytes
_abandoned: list[Any] = []
"""Arrays, requests and communicators of operations that never end: MPI may still write to them."""


class MpiControl(Control):
    """Notices by `comm`, which nobody else uses.

    A receive for any sender is always open.  Sends are not waited for: a notice is short enough
    that the library takes it at once.
    """

    def __init__(self, MPI: Any, comm: Any) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size())
        self._mpi = MPI
        self._comm = comm
        self._owned: list[Any] = []
        self._buffer = bytearray(NOTICE_BYTES)
        self._status = MPI.Status()
        self._sent: list[tuple[Any, bytes]] = []
        self._receive = self._listen()

    def own(self, comm: Any) -> None:
        self._owned.append(comm)

    def _listen(self) -> Any:
        MPI = self._mpi
        return self._comm.Irecv([self._buffer, MPI.BYTE], source=MPI.ANY_SOURCE)

    def look(self) -> None:
        while self._receive.Test(self._status):
            text = bytes(self._buffer[: self._status.Get_count(self._mpi.BYTE)])
            self._receive = self._listen()
            self.hear(text)

    def send(self, rank: int, notice: bytes) -> None:
        self._sent = [(request, text) for request, text in self._sent if not request.Test()]
        request = self._comm.Isend([notice, self._mpi.BYTE], dest=rank)
        self._sent.append((request, notice))

    def _stop_listening(self) -> None:
        if not self._receive.Test():
            self._receive.Cancel()
            self._receive.Wait()

    def finish(self) -> None:
        self._mpi.Request.Waitall([request for request, _ in self._sent])
        self._stop_listening()
        for comm in [*self._owned, self._comm]:
            comm.Free()

    def abandon(self, held: Any) -> None:
        self._stop_listening()
        _abandoned.append((held, self._sent, self._owned, self._comm))


class Mpi(Polled):
    """A rank that is a process of MPI.

    `comm` is the communicator of mpi4py for the data; nobody else uses it.  `part` is the largest
    number of elements of a message, smaller in tests.
    """

    kind = "mpi"

    def __init__(
        self,
        comm: Any,
        members: Sequence[int],
        threads: int,
        control: MpiControl,
        path: Path = (),
        session: Session | None = None,
        traffic: Traffic | None = None,
        part: int = PART,
    ) -> None:
        from mpi4py import MPI

        session = Session() if session is None else session
        super().__init__(comm.Get_rank(), members, threads, control, path, session, traffic)
        self.part = part
        self.cuda_aware = staging.cuda_aware(MPI)
        self._mpi = MPI
        self._comm = comm
        self._ear = control
        control.own(comm)

    # Starting and waiting

    def _finish(self, post: Callable[[], Any], *arrays: Any) -> None:
        """Start an operation and wait for it.  The arrays outlive it, even where it never ends."""
        self._held = arrays
        request = post()
        self.wait_until(request.Test)
        self._held = None

    def _finish_all(self, requests: list[Any], *arrays: Any) -> None:
        self._held = (requests, arrays)
        test = self._mpi.Request.Testall
        self.wait_until(lambda: test(requests))
        self._held = None

    def _type(self, itemsize: int) -> Any:
        MPI = self._mpi
        known = {1: MPI.BYTE, 2: MPI.INT16_T, 4: MPI.INT32_T, 8: MPI.INT64_T}
        if itemsize in known:
            return known[itemsize]
        if itemsize not in _types:
            _types[itemsize] = MPI.BYTE.Create_contiguous(itemsize).Commit()
        return _types[itemsize]

    # What protocol.py asks for

    def raw_barrier(self) -> None:
        self._finish(self._comm.Ibarrier)

    def raw_lengths(self, length: int) -> Counts:
        own, found = np.array([length], np.int64), np.empty(self.size, np.int64)
        self._finish(lambda: self._comm.Iallgather(own, found), own, found)
        return found

    def _swapped(self, pairs: Counts) -> Counts:
        found = np.empty_like(pairs)
        self._finish(lambda: self._comm.Ialltoall(pairs, found), pairs, found)
        return found

    @staging.through_host
    def raw_gather(self, array: Any, counts: Counts) -> Any:
        total = int(counts.sum())
        result = staging.empty(total, array)
        staging.settle(array)
        if total > self.part:
            lengths = np.full(self.size, array.size, np.int64)
            self._messages(array, np.zeros_like(lengths), lengths, result, counts)
            return result
        kind = self._type(array.itemsize)
        send = [staging.raw(array), array.size, kind]
        place = [staging.raw(result), (counts, starts(counts)), kind]
        self._finish(lambda: self._comm.Iallgatherv(send, place), array, result)
        return result

    @staging.through_host
    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        result = staging.empty(int(receives.sum()), array)
        staging.settle(array)
        if total > self.part:  # the same decision on all ranks
            self._messages(array, starts(sends), sends, result, receives)
            return result
        kind = self._type(array.itemsize)
        send = [staging.raw(array), (sends, starts(sends)), kind]
        place = [staging.raw(result), (receives, starts(receives)), kind]
        self._finish(lambda: self._comm.Ialltoallv(send, place), array, result)
        return result

    def _messages(
        self, array: Any, froms: Counts, sends: Counts, result: Any, receives: Counts
    ) -> None:
        """Send runs of `array`, receive runs into `result`; in parts, so of any length."""
        kind = self._type(array.itemsize)
        requests: list[Any] = []
        self._held = (requests, array, result)
        for step in range(1, self.size):  # each rank begins with another one
            source, goal = (self.rank - step) % self.size, (self.rank + step) % self.size
            start = int(receives[:source].sum())
            for run in self._parts(result, start, int(receives[source])):
                into = [staging.raw(run), run.size, kind]
                requests.append(self._comm.Irecv(into, source=source))
            for run in self._parts(array, int(froms[goal]), int(sends[goal])):
                requests.append(self._comm.Isend([staging.raw(run), run.size, kind], dest=goal))
        own, place = int(froms[self.rank]), int(receives[: self.rank].sum())
        length = int(sends[self.rank])
        result[place : place + length] = array[own : own + length]
        staging.settle(result)
        test = self._mpi.Request.Testall
        self.wait_until(lambda: test(requests))
        self._held = None

    def _parts(self, array: Any, start: int, length: int) -> list[Any]:
        end = start + length
        return [array[lo : min(lo + self.part, end)] for lo in range(start, end, self.part)]

    def raw_broadcast(self, array: Any, root: int) -> Any:
        head = header(array if self.rank == root else None)
        self._finish(lambda: self._comm.Ibcast(head, root=root), head)
        on_gpu, dtype, shape = described(head)
        direct = on_gpu and self.cuda_aware
        if self.rank == root:
            data = array.copy() if direct else staging.on_host(array)
        else:
            data = staging.place(shape, dtype, direct)
        staging.settle(data)
        kind, flat = self._type(dtype.itemsize), data.reshape(-1)
        self._finish_all(
            [
                self._comm.Ibcast([staging.raw(run), run.size, kind], root=root)
                for run in self._parts(flat, 0, flat.size)
            ],
            flat,
        )
        if self.rank == root and not direct:
            return array.copy()
        return engines.moved(data, "gpu") if on_gpu else data

    @staging.through_host
    def raw_allreduce(self, array: Any, op: str) -> Any:
        if self.size * array.nbytes > GATHERED_BYTES:
            return super().raw_allreduce(array, op)
        parts = staging.empty(self.size * array.size, array)
        staging.settle(array)
        kind = self._type(array.itemsize)
        send = [staging.raw(array), array.size, kind]
        place = [staging.raw(parts), array.size, kind]
        self._finish(lambda: self._comm.Iallgather(send, place), array, parts)
        return checks.reduced(parts.reshape(self.size, array.size), op)

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        # MPI has no split that can be polled, but all ranks are here, so this does not wait long.
        MPI = self._mpi
        self._splits += 1
        if color is None:
            self._comm.Split(MPI.UNDEFINED)
            return None
        found = self._comm.Split(ranks[0], ranks.index(self.rank))
        part = Mpi(
            found,
            [self.members[rank] for rank in ranks],
            self.threads,
            self._ear,
            (*self.path, self._splits, color),
            self.session,
            Traffic(self.traffic),
            self.part,
        )
        return among_neighbours(part) if self.session.hosts else part


def starts(counts: Counts) -> Counts:
    """Where each run begins, when they lie one after the other."""
    return np.cumsum(counts) - counts


def open_world(MPI: Any, patience: float) -> Mpi:
    """A communicator of all processes, and another for its notices.

    No notice can be sent before that is open, so a missing process is noticed only when the time is
    over.
    """
    comms = []
    for _ in range(2):
        comm, request = MPI.COMM_WORLD.Idup()
        deadline = time.monotonic() + patience
        while not request.Test():
            time.sleep(SLEEP_SECONDS)
            if time.monotonic() > deadline:
                text = f"not all processes came to world() within {patience:g} s"
                raise TimeoutError(f"{text} (MATCHWOOD_DIST_TIMEOUT)")
        comms.append(comm)
    control = MpiControl(MPI, comms[1])
    return Mpi(comms[0], range(comms[0].Get_size()), 1, control)

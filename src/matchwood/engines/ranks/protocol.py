"""What one rank sees of the others: a communicator.  All kinds have these operations.

This file checks arguments, counts traffic and announces errors; a kind of communicator supplies
the few functions at its end, which move the data: `Serial` below (one rank), threads.py (threads of
one process), and networks/ (MPI, NCCL, a group of torch.distributed).

Every public operation is collective: all ranks of the communicator call it, in the same order.
Where one of them raises instead, the others are notified and raise `RankFailed`.  The communicator
is closed then, together with all that were split from it.
"""

from __future__ import annotations

import abc
import copy
import functools
import os
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from matchwood.arguments import count, is_integer, shown
from matchwood.engines.ranks import checks
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.faults import failure_of
from matchwood.engines.ranks.placement import Place
from matchwood.errors import RankFailed

TIMEOUT_SECONDS = 600.0  # that a rank waits for the others; MATCHWOOD_DIST_TIMEOUT

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass
class Count:
    """The traffic of one kind of operation."""

    calls: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    messages: int = 0


@dataclass
class Traffic:
    """What one rank received from others and sent to others through a communicator.

    Bytes are those of the arrays, as an exchange without detours moves them: whatever a library
    does in between, the numbers are the same on every machine.

    ==================  ==================================================================
    reduce_scatter      (size - 1) x the rank's own elements
    allgather(v)        what the others had
    alltoallv           what the others had for this rank
    allreduce           2 (size - 1) / size x the elements
    broadcast           the elements, on all ranks but the root
    objects             the bytes of the pickled objects of the others
    ==================  ==================================================================

    Messages are those that the rank sends: one to each other rank it has something for, and one
    more to each where lengths are exchanged beforehand (alltoallv, allgatherv, objects).

    Attributes
    ----------
    bytes_received, bytes_sent, messages : int
        Sums over all operations, those of communicators that were split off included.
    by_operation : dict
        The same for each operation: a `Count`.
    """

    parent: Traffic | None = None
    bytes_received: int = 0
    bytes_sent: int = 0
    messages: int = 0
    by_operation: dict[str, Count] = field(default_factory=dict)

    def add(self, operation: str, received: int, sent: int, messages: int) -> None:
        """Count a call of `operation`, here and in the communicator this one was split from."""
        self.bytes_received += received
        self.bytes_sent += sent
        self.messages += messages
        count = self.by_operation.get(operation)
        if count is None:
            count = self.by_operation[operation] = Count()
        count.calls += 1
        count.bytes_received += received
        count.bytes_sent += sent
        count.messages += messages
        if self.parent is not None:
            self.parent.add(operation, received, sent, messages)

    def clear(self) -> None:
        """Count from zero again; what a split has counted in its parent is not taken back."""
        self.bytes_received = self.bytes_sent = self.messages = 0
        self.by_operation.clear()


class Session:
    """What a communicator and those split from it share, on one rank."""

    def __init__(self) -> None:
        self.timeout = timeout_seconds()
        self.debug = os.environ.get("MATCHWOOD_DIST_DEBUG", "") not in ("", "0")
        self.copies = os.environ.get("MATCHWOOD_DIST_COPY", "1") != "0"  # of whole graphs
        self.crowded = False  # more ranks than CPUs: who waits leaves its CPU at once
        self.resting = False  # another rank works for this one, however long that takes
        self.place: Place | None = None
        self.hosts: Sequence[object] = ()  # of all ranks; empty where nothing follows from them
        self.closed = False
        self.failure: RankFailed | None = None
        self.before: Callable[[Communicator, str], None] | None = None
        """Called before every collective: tests make ranks fail there."""


def timeout_seconds() -> float:
    """MATCHWOOD_DIST_TIMEOUT, else 600 seconds."""
    text = os.environ.get("MATCHWOOD_DIST_TIMEOUT")
    if text is None:
        return TIMEOUT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 1e9:
        raise ValueError(f"MATCHWOOD_DIST_TIMEOUT must be a positive number, got {text!r}")
    return seconds


def collective(method: Method) -> Method:
    """A method that all ranks call: an error in it, or before it, reaches the other ranks."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Communicator, *args: Any, **options: Any) -> Any:
        session = self.session
        if self.closed:
            raise too_late(name, session)
        try:
            if session.before is not None:
                session.before(self, name)
            return method(self, *args, **options)
        except BaseException as error:
            self.fail(error)
            raise

    return call  # type: ignore[return-value]


def too_late(operation: str, session: Session) -> Exception:
    """The error of a call after the communicator was closed."""
    if session.failure is not None:
        return copy.copy(session.failure)
    return ValueError(f"{operation}: the communicator is closed; world() gives a new one")


class MappedArrays:
    """Arrays on GPUs that all ranks read and write: ``arrays[rank]`` is the list of a rank.

    They stay mapped as long as this object is kept.
    """

    def __init__(self, arrays: list[list[Any]]) -> None:
        self.arrays = arrays


class Communicator(abc.ABC):
    """One rank's end of a group of ranks.

    Arrays are NumPy or CuPy arrays of numbers or bools, one-dimensional where nothing else is
    said, and results are new arrays.  Reductions run from rank 0 to the last, so a sum of floats
    is always the same.

    Attributes
    ----------
    rank, size : int
        This rank, and the number of ranks.
    kind : {"serial", "threads", "mpi", "nccl", "torch"}
    threads : int
        CPU threads of this rank.
    traffic : Traffic
        Bytes and messages so far.
    listener : callable or None
        Called by `report`: ``listener(round, active, traffic)``.
    """

    kind = "serial"

    def __init__(
        self, rank: int, size: int, threads: int, session: Session, traffic: Traffic | None = None
    ) -> None:
        self.rank = rank
        self.size = size
        self.threads = threads
        self.session = session
        self.traffic = Traffic() if traffic is None else traffic
        self.listener: Callable[[int, int | None, Traffic], None] | None = None
        self._ended = False

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<{self.kind} communicator: rank {self.rank} of {self.size}{state}>"

    @property
    def closed(self) -> bool:
        """Nothing more can be sent: `close` was called, or a rank failed."""
        return self._ended or self.session.closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.fail(error)

    @collective
    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A communicator of the ranks that give the same `color`, ordered by `key` and rank.

        A rank that gives None belongs to none, and gets None.  What the library holds for a split
        is given back when the communicator of all ranks ends, so keep a split and use it again.
        """
        if color is not None:
            color = count("split", "color", color)
        if not is_integer(key):
            raise TypeError(f"split: key must be an integer, got {shown(key)}")
        self.raw_compare("split")
        pairs = [pickle.loads(each) for each in self.raw_bytes(pickle.dumps((color, int(key))))]
        members = sorted(
            (their_key, r) for r, (their_color, their_key) in enumerate(pairs)
            if their_color == color
        )  # fmt: skip
        ranks = [r for _, r in members]
        return self.raw_split(color, ranks)

    @collective
    def barrier(self) -> None:
        """Return when all ranks have called this."""
        self.raw_compare("barrier")
        self.raw_barrier()
        self.traffic.add("barrier", 0, 0, (self.size - 1).bit_length())

    @collective
    def allreduce(self, array: Any, op: str = "sum") -> Any:
        """The arrays of all ranks, reduced element by element; an array of the same shape.

        `op` is one of "sum", "min", "max" and "or".
        """
        array = checks.vector("allreduce", array, None)
        op = checks.operation("allreduce", op, array.dtype)
        self.raw_compare("allreduce", array.dtype, array.shape, op)
        result = self.raw_allreduce(array.reshape(-1), op).reshape(array.shape)
        moved = -(-2 * (self.size - 1) * array.nbytes // self.size)
        self.traffic.add("allreduce", moved, moved, 2 * (self.size - 1))
        return result

    @collective
    def reduce_scatter(self, array: Any, counts: Any, op: str = "sum") -> Any:
        """My `counts[rank]` elements of the arrays of all ranks, reduced.

        `counts` are the same on all ranks, and add up to the length of the array.
        """
        array = checks.vector("reduce_scatter", array)
        op = checks.operation("reduce_scatter", op, array.dtype)
        given = checks.shares("reduce_scatter", counts, self.size, array.size)
        self.raw_compare("reduce_scatter", array.dtype, given, op)
        result = self.raw_reduce_scatter(array, given, op)
        sent = (array.size - result.size) * array.itemsize
        self.traffic.add("reduce_scatter", (self.size - 1) * result.nbytes, sent, self.size - 1)
        return result

    @collective
    def allgather(self, array: Any, borrowed: bool = False) -> Any:
        """The arrays of all ranks, which have one length, one after the other.

        What is `borrowed` may be memory that all ranks have: read it before the next operation of
        this communicator, and change nothing.
        """
        array = checks.vector("allgather", array)
        self.raw_compare("allgather", array.dtype, array.size)
        result = self.raw_allgather(array, borrowed)
        others = self.size - 1
        self.traffic.add("allgather", result.nbytes - array.nbytes, others * array.nbytes, others)
        return result

    @collective
    def allgatherv(self, array: Any) -> tuple[Any, Counts]:
        """The arrays of all ranks one after the other, and their lengths."""
        array = checks.vector("allgatherv", array)
        self.raw_compare("allgatherv", array.dtype)
        result, counts = self.raw_allgatherv(array)
        others = self.size - 1
        received = result.nbytes - array.nbytes
        self.traffic.add("allgatherv", received, others * array.nbytes, 2 * others)
        return result, counts

    @collective
    def alltoallv(self, array: Any, counts: Any) -> tuple[Any, Counts]:
        """Send the first `counts[0]` elements to rank 0, the next to rank 1, and so on.

        Returns what was received, by the rank that sent it, and how many elements from each.
        """
        array = checks.vector("alltoallv", array)
        sends = checks.shares("alltoallv", counts, self.size, array.size)
        self.raw_compare("alltoallv", array.dtype)
        result, receives = self.raw_alltoallv(array, sends)
        item, own = array.itemsize, int(sends[self.rank])
        messages = self.size - 1 + int(np.count_nonzero(sends)) - (own > 0)
        received, sent = (result.size - own) * item, (array.size - own) * item
        self.traffic.add("alltoallv", received, sent, messages)
        return result, receives

    @collective
    def broadcast(self, array: Any, root: int = 0) -> Any:
        """The array of rank `root`; the other ranks pass None."""
        root = checks.rank("broadcast", "root", root, self.size)
        if self.rank == root:
            array = checks.vector("broadcast", array, None)
        elif array is not None:
            kind = type(array).__name__
            raise TypeError(f"broadcast: array must be None except on rank {root}, got {kind}")
        self.raw_compare("broadcast", root)
        result = self.raw_broadcast(array, root)
        if self.rank == root:
            others = self.size - 1
            self.traffic.add("broadcast", 0, others * result.nbytes, others)
        else:
            self.traffic.add("broadcast", result.nbytes, 0, 0)
        return result

    @collective
    def objects(self, thing: Any) -> list[Any]:
        """The small Python objects of all ranks, by rank.

        For agreements and checks.  They are pickled, so every rank gets copies of its own.
        """
        text = pickle.dumps(thing)
        self.raw_compare("objects")
        texts = self.raw_bytes(text)
        received, others = sum(map(len, texts)) - len(text), self.size - 1
        self.traffic.add("objects", received, others * len(text), 2 * others)
        return [pickle.loads(each) for each in texts]

    def scratch(self, size: int, dtype: Any) -> Any:
        """An array to fill and to give to `reduce_scatter` as this communicator's next operation.

        It may lie where the others read it, so that nothing is copied.
        """
        return np.empty(size, dtype)

    def lend(self, arrays: Sequence[Any]) -> MappedArrays | None:
        """Arrays on GPUs, for all ranks to read and to write; collective.

        None on all ranks where they do not use one GPU together, or cannot see each other's memory.
        """
        return None

    def shared_array(self, nbytes: int) -> Any:
        """Bytes, all 0, that all ranks read and write; collective.

        None on all ranks where they have no memory in common.
        """
        return None

    @collective
    def rounds(self, step: Callable[[], bool], arrived: Callable[[], bool]) -> None:
        """Call `step` until it returns True: rounds of ranks that meet in a `shared_array`.

        It returns False where other ranks are late; `arrived` says that they are no more.  Here a
        rank learns that another one failed, and reacts to Ctrl-C.
        """
        self.raw_compare("rounds")
        while not step():
            self.wait_until(arrived)

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Return when `done()` is true; raise when a rank has failed or the time is over."""
        deadline = time.monotonic() + self.session.timeout
        while not done():
            self.look()
            if time.monotonic() > deadline:
                text = f"it waited for more than {self.session.timeout:g} s"
                raise RankFailed(self.rank, "TimeoutError", f"{text} (MATCHWOOD_DIST_TIMEOUT)")
            time.sleep(0)

    def look(self) -> None:  # noqa: B027  threads hear of each other in collectives alone
        """Raise where another rank has failed, and return at once where none has.

        For a rank that works while the others wait, where these are processes.
        """

    def report(self, round: int, active: int | None = None) -> None:
        """Call `listener`, where one was set: a round of an algorithm is over.

        Rounds count from 1; `active` is the number of active vertices, where it is known.
        """
        if self.listener is not None:
            self.listener(round, active, self.traffic)

    def close(self) -> None:
        """End this communicator; that of all ranks ends those split from it too.

        All ranks of a communicator that was not split off wait for each other.  So a rank that
        has finished still raises if another one fails.
        """
        if self.closed:
            return
        self._ended = True
        if self.traffic.parent is None:
            self.raw_close()

    def fail(self, error: BaseException) -> None:
        """Notify the other ranks that this one cannot go on, and close the communicator."""
        if not self.session.closed:
            self.raw_fail(error)

    # What a kind of communicator supplies: it moves data, and checks and counts nothing.
    # Arrays are contiguous, and `counts` are int64 arrays with one entry for each rank.

    @abc.abstractmethod
    def raw_compare(self, operation: str, *details: Any) -> None:
        """Raise `RankFailed` where ranks call different operations, or with other details."""

    @abc.abstractmethod
    def raw_barrier(self) -> None:
        """As `barrier`."""

    @abc.abstractmethod
    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        """The texts of all ranks."""

    @abc.abstractmethod
    def raw_lengths(self, length: int) -> Counts:
        """The numbers of all ranks."""

    @abc.abstractmethod
    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        """The elements received from each rank, and the sum of what all ranks send."""

    @abc.abstractmethod
    def raw_gather(self, array: Any, counts: Counts) -> Any:
        """The arrays of all ranks one after the other; their lengths are `counts`."""

    @abc.abstractmethod
    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        """Send runs of `array`, receive runs, by rank; all ranks send `total` elements."""

    @abc.abstractmethod
    def raw_broadcast(self, array: Any, root: int) -> Any:
        """As `broadcast`."""

    @abc.abstractmethod
    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        """The communicator of those ranks, this one among them; None where `color` is None."""

    def raw_allgather(self, array: Any, borrowed: bool = False) -> Any:
        return self.raw_gather(array, np.full(self.size, array.size, np.int64))

    def raw_allgatherv(self, array: Any) -> tuple[Any, Counts]:
        counts = self.raw_lengths(array.size)
        return self.raw_gather(array, counts), counts

    def raw_alltoallv(self, array: Any, sends: Counts) -> tuple[Any, Counts]:
        receives, total = self.raw_table(sends)
        return self.raw_exchange(array, sends, receives, total), receives

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        own = int(counts[self.rank])
        receives = np.full(self.size, own, np.int64)
        parts = self.raw_exchange(array, counts, receives, self.size * array.size)
        return checks.reduced(parts.reshape(self.size, own), op)

    def raw_allreduce(self, array: Any, op: str) -> Any:
        counts = checks.even_shares(array.size, self.size)
        return self.raw_gather(self.raw_reduce_scatter(array, counts, op), counts)

    def raw_close(self) -> None:
        self.session.closed = True

    def raw_fail(self, error: BaseException) -> None:
        self.session.closed = True


class Serial(Communicator):
    """One rank: what `world` gives a program that was started alone.  Results are copies."""

    kind = "serial"

    def __init__(
        self, threads: int = 1, session: Session | None = None, traffic: Traffic | None = None
    ) -> None:
        count("Serial", "threads", threads, 1)
        super().__init__(0, 1, threads, Session() if session is None else session, traffic)

    def raw_compare(self, operation: str, *details: Any) -> None:
        pass

    def raw_barrier(self) -> None:
        pass

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        return [text]

    def raw_lengths(self, length: int) -> Counts:
        return np.array([length], np.int64)

    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        return sends, int(sends[0])

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        return array.copy()

    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        return array.copy()

    def raw_broadcast(self, array: Any, root: int) -> Any:
        return array.copy()

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        return array.copy()

    def raw_allreduce(self, array: Any, op: str) -> Any:
        return array.copy()

    def raw_fail(self, error: BaseException) -> None:
        self.session.failure = failure_of(0, error)
        self.session.closed = True

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        if color is None:
            return None
        return Serial(self.threads, self.session, Traffic(self.traffic))

"""Start ranks that are threads, wait for them, and end them when one fails or at Ctrl-C."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from matchwood.arguments import at_most, count
from matchwood.engines import check_threads
from matchwood.engines.cpu.cpus import checked_threads
from matchwood.engines.ranks.faults import failure_of
from matchwood.engines.ranks.protocol import Session
from matchwood.engines.ranks.threads.communicator import Threads
from matchwood.engines.ranks.threads.hall import Hall
from matchwood.errors import EngineUnavailable, RankFailed

LOOKS = 0.05  # seconds between looks at the ranks, for systems whose locks do not hear Ctrl-C
MOST_RANKS = 4096  # threads of one process
PARTING_SECONDS = 0.05  # that ranks get to end after Ctrl-C


class _Rank(threading.Thread):
    """A thread that calls the function of one rank and keeps what it returns or raises."""

    def __init__(
        self,
        comm: Threads,
        hall: Hall,
        call: Callable[[Threads], Any],
        ended: threading.Semaphore,
    ) -> None:
        super().__init__(name=f"matchwood rank {comm.rank}", daemon=True)
        self.result: Any = None
        self.error: BaseException | None = None
        self._comm = comm
        self._hall = hall
        self._call = call
        self._ended = ended

    def run(self) -> None:
        try:
            self._work()
        except KeyboardInterrupt as error:  # of `_interrupt`: it may come at any point
            self.error = self.error or error
        finally:
            self._ended.release()

    def _work(self) -> None:
        try:
            self.result = self._call(self._comm)
        except BaseException as error:
            self.error = error
            self._hall.fail(failure_of(self._comm.rank, error))
        finally:
            self._hall.leave(self._comm.rank)


def run(function: Callable[..., Any], ranks: int = 4, *args: Any, threads: int = 1) -> list[Any]:
    """Call ``function(comm, *args)`` on several ranks, which are threads of this process.

    For trying and testing: a program that is right here is right under ``mpiexec``.

    Parameters
    ----------
    function : callable
        Gets a `Communicator` and `args`.
    ranks : int
        How many.
    *args
        The same objects for all ranks.
    threads : int
        CPU threads of each rank.

    Returns
    -------
    results : list
        What `function` returned, by rank.

    Raises
    ------
    RankFailed
        An exception was raised on one of the ranks; it is the cause of this one.  Where several
        raised, that of the smallest rank.  A rank that returns while others wait for it fails too.

    Examples
    --------
    >>> import matchwood as mw
    >>> import numpy as np
    >>> def total(comm):
    ...     return int(comm.allreduce(np.array([comm.rank]))[0])
    >>> mw.dist.run(total, 3)
    [3, 3, 3]
    """
    if not callable(function):
        raise TypeError(f"run: function must be callable, got {type(function).__name__}")
    ranks = at_most("run", "ranks", count("run", "ranks", ranks, 1), MOST_RANKS, "each is a thread")
    check_threads(threads)
    threads = checked_threads(threads)  # None is no number of them
    hall = Hall(ranks)
    ended = threading.Semaphore(0)
    workers = [
        _Rank(
            Threads(hall, hall.everybody, rank, threads, Session()),
            hall,
            lambda comm: function(comm, *args),
            ended,
        )
        for rank in range(ranks)
    ]
    try:
        for worker in workers:
            worker.start()
        for _ in workers:
            while not ended.acquire(timeout=LOOKS):
                pass
    except BaseException as error:
        _interrupt(hall, workers, error)
        begun = sum(worker.ident is not None for worker in workers)
        if isinstance(error, RuntimeError) and begun < ranks:  # of Python: no more threads
            raise EngineUnavailable(
                f"run: only {begun} of {ranks} ranks could be started; ask for fewer"
            ) from error
        raise
    return _results(workers, hall)


def _interrupt(hall: Hall, workers: Sequence[_Rank], error: BaseException) -> None:
    """End the ranks after Ctrl-C: those that wait hear of it in the hall, the others in Python."""
    hall.fail(failure_of(None, error))
    deadline = time.monotonic() + PARTING_SECONDS
    started = [worker for worker in workers if worker.ident is not None]
    for worker in started:
        if worker.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(worker.ident or 0), ctypes.py_object(KeyboardInterrupt)
            )
    for worker in started:
        worker.join(max(0.0, deadline - time.monotonic()))


def _results(workers: Sequence[_Rank], hall: Hall) -> list[Any]:
    for worker in workers:
        if worker.error is not None and not isinstance(worker.error, RankFailed):
            raise failure_of(int(worker.name.split()[-1]), worker.error) from worker.error
    if hall.failure is not None:
        raise hall.failure
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    return [worker.result for worker in workers]

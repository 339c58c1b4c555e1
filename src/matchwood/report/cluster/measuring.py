"""A call on all ranks: its time, the part of it that is spent in collectives, and the traffic."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from matchwood import engines

OPERATIONS = (
    "barrier", "allreduce", "reduce_scatter", "allgather", "allgatherv", "alltoallv", "broadcast",
    "objects",
)  # fmt: skip


def _nothing() -> None:
    pass


def settling(G: Any) -> Callable[[], None]:
    """What waits until the GPU of this rank has done its work, where the graph lies on one."""
    if G.engine != "gpu":
        return _nothing
    wait: Callable[[], None] = engines.cupy().cuda.get_current_stream().synchronize
    return wait


@dataclasses.dataclass
class Talk:
    """What a rank did in collectives."""

    seconds: float = 0.0  # waiting for others included
    steps: int = 0  # messages that wait for one another: log2(size) in a collective


@contextlib.contextmanager
def communicating(*communicators: Any, settle: Callable[[], None] = _nothing) -> Iterator[Talk]:
    """What this rank does in the collectives of these communicators, which grows.

    `settle` comes before each collective, so that what the GPU computes meanwhile does not count
    as talk.
    """
    talk = Talk()

    def timed(operation: Callable[..., Any], steps: int) -> Callable[..., Any]:
        @functools.wraps(operation)
        def call(*arguments: Any, **options: Any) -> Any:
            settle()
            start = time.perf_counter()
            try:
                return operation(*arguments, **options)
            finally:
                talk.seconds += time.perf_counter() - start
                talk.steps += steps

        return call

    for comm in communicators:
        for name in OPERATIONS:
            steps = (comm.size - 1).bit_length()
            setattr(comm, name, timed(getattr(comm, name), steps))  # hides that of the class
    try:
        yield talk
    finally:
        for comm in communicators:
            for name in OPERATIONS:
                delattr(comm, name)


def measure(G: Any, work: Callable[[Any], Any], repeats: int) -> dict[str, Any]:
    """Seconds of ``work(G)``, of the slowest rank; those in collectives; bytes and messages.

    All ranks call it.  One call more comes first, which prepares views and compiles.  Of the
    repeats the one of median time counts.
    """
    comm, rows, settle = G.comm, [], settling(G)
    work(G)
    for _ in range(repeats):
        settle()
        comm.barrier()
        comm.traffic.clear()
        with communicating(comm, G.exchange.row, G.exchange.column, settle=settle) as talk:
            start = time.perf_counter()
            work(G)
            settle()
            seconds = time.perf_counter() - start
        traffic = comm.traffic
        row = [
            seconds, seconds - talk.seconds, traffic.bytes_received, traffic.messages, talk.seconds,
            talk.steps,
        ]  # fmt: skip
        rows.append(comm.allreduce(np.array(row), "max").tolist())
    rows.sort()
    seconds, computing, received, messages, talking, steps = rows[len(rows) // 2]
    entries = G.comm.allreduce(np.array([G.undirected_pattern().nnz], np.int64), "max")
    return {
        "seconds": seconds,
        "computing": computing,  # of the rank that computes longest
        "communicating": max(0.0, seconds - computing),
        "in_collectives": talking,  # of the rank that is there longest: it waits for others too
        "received": int(received),
        "messages": int(messages),
        "steps": int(steps),
        "entries": int(entries[0]),  # of the rank that has most
    }

"""Random sequences of collectives in which one rank fails, for tests of faults."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.dist import Communicator

STEPS = 12  # collectives of a walk, after the splits
WAYS = ("raises before", "raises between", "raises inside", "returns", "closes", "exits")


class Boom(Exception):
    """The failure that tests make."""


def step(comm: Communicator, rng: random.Random, large: bool) -> None:
    """One collective; `rng` is in the same state on all ranks."""
    kind = rng.randrange(8)
    length = rng.choice((0, 1, 10, 20_000 if large else 100))
    array = np.full(length * comm.size, comm.rank, rng.choice((np.int32, np.float64)))
    if kind == 0:
        comm.allreduce(array)
    elif kind == 1:
        comm.reduce_scatter(array, [length] * comm.size)
    elif kind == 2:
        comm.allgather(array)
    elif kind == 3:
        comm.allgatherv(array[: comm.rank])
    elif kind == 4:
        comm.alltoallv(array, [length] * comm.size)
    elif kind == 5:
        comm.broadcast(array if comm.rank == 0 else None)
    elif kind == 6:
        comm.objects(kind)
    else:
        comm.barrier()


def walk(comm: Communicator, seed: int, fails: dict[str, Any]) -> Any:
    """Splits and collectives; rank `seed mod size` fails on the way, in a way that `seed` picks.

    `fails` gets the time of the failure.
    """
    rng = random.Random(seed)
    victim, way, at = seed % comm.size, rng.choice(WAYS), rng.randrange(STEPS + 2)
    pause = rng.choice((0.0, 0.0, 0.002))
    mine = comm.rank == victim
    calls = 0

    def failing() -> None:
        fails["at"] = time.monotonic()
        raise Boom(f"on purpose, {way}")

    def before(which: Communicator, operation: str) -> None:
        nonlocal calls
        calls += 1
        if mine and way == "raises before" and calls == at + 1:
            failing()

    comm.session.before = before
    across = comm.split(comm.rank % 2)
    down = comm.split(comm.rank // 2)
    for k in range(STEPS):
        if mine and k == min(at, STEPS - 1):
            time.sleep(pause)
            fails["at"] = time.monotonic()
            if way == "raises between":
                failing()
            elif way == "raises inside":
                comm.alltoallv(np.ones(3), [-1] * comm.size)
            elif way == "returns":
                return "early"
            elif way == "exits":
                raise SystemExit(3)
            elif way == "closes":
                comm.close()
        step(rng.choice((comm, comm, across, down)), rng, comm.kind == "threads")
    comm.barrier()  # the victim has failed before it comes here
    return "late"


def outcome(
    opened: Callable[[], Communicator], seed: int, fails: dict[str, Any]
) -> tuple[str, float]:
    """How a walk ends on this rank, and when.

    A rank may fail so early that others hear of it while they are still opening the communicator.
    """
    try:
        with opened() as comm:
            said = walk(comm, seed, fails)
    except BaseException as error:
        said = type(error).__name__
    return said, time.monotonic()

"""Cuthill-McKee in speculative batches on the GPU.  Kernels and the idea: batch.cu."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.patterns import not_symmetric

SOURCE = gpu.Source(
    __package__, "batch.cu", ("place_batches<I>", "reset_batches<I>", "own_starts<I>")
)

BLOCK = SOURCE.constant("BATCH_BLOCK")
MOST_PARENTS = SOURCE.constant("MOST_PARENTS")
SHARED_BYTES = SOURCE.constant("SHARED_BYTES")
EACH = dict(
    zip((4, 8), SOURCE.constants("ENTRIES_PER_THREAD", "ENTRIES_PER_THREAD_64"), strict=True)
)  # by bytes of an index
OVER, MADE, COUNTERS, STAGES, ALL_STAGES = SOURCE.constants(
    "OVER", "MADE", "COUNTERS", "STAGES", "ALL_STAGES"
)
CYCLES = COUNTERS + STAGES  # where the cycles of each stage begin
CONTROL_WORDS = CYCLES + ALL_STAGES
POLL_SECONDS = 50e-6  # seconds between two queries whether the device has ended
COUNTED = ("dequeued", "executed", "empty", "rediscoveries", "removed")
TIMED = ("discover", "sort", "rediscover", "signal", "output", "stall")


def place_batches(
    view: Any, starts: Any, total: int, *, stats: bool = False, blocks: int | None = None,
    delay: int = 0, caller: str = "reverse_cuthill_mckee",
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """As `leveled.place_levels`; `blocks` and `delay` (a seed) are for tests.

    Memory beside the result: three arrays of n, and the ring of batches, some 500 bytes for
    every 512 vertices and for every 3584 entries.
    """
    n, kind = view.n, view.indptr.dtype
    found = gpu.empty(n, kind, caller)
    slots = EACH[kind.itemsize] * BLOCK
    longest = int((view.indptr[starts + 1] - view.indptr[starts]).max())
    each = max(1, min(MOST_PARENTS, slots // longest))
    first = -(-starts.size // each)
    ring = ring_size(n, view.nnz, slots, first)
    space = gpu.workspace(
        caller,
        owner=(n, kind),
        spare=(2 * n, kind),
        words=((5, ring), np.uint32),
        wide=((3, ring), np.uint64),
        places=((2, ring), kind),
        control=(CONTROL_WORDS, np.uint64),
    )
    control = space.control
    control.data.memset_async(0, control.nbytes)
    found.data.memset_async(0xFF, found.nbytes)
    k = SOURCE.kernels(I=kind)
    k.reset_batches(
        max(n, ring),
        (n, starts, starts.size, each, found, space.owner, ring,
         space.words, space.wide, space.places),
    )  # fmt: skip
    k.own_starts(starts.size, (starts, starts.size, space.owner))
    most = k.place_batches.resident(BLOCK, SHARED_BYTES) if blocks is None else blocks
    k.place_batches(
        None,
        (n, view.indptr, view.indices, total, found, space.owner, space.spare, ring,
         space.words, space.wide, space.places, delay, stats, control),
        block=BLOCK,
        grid=most,
        shared_mem=SHARED_BYTES,
    )  # fmt: skip
    _wait(control)
    if total and int(found[total - 1]) < 0:  # some vertices were not reached
        raise not_symmetric(caller)
    return found, _counters(control.get()) if stats else {}


def _wait(control: Any) -> None:
    """Wait for the current stream; after Ctrl-C stop the kernel, and wait for its end."""
    cuda = engines.cupy().cuda
    done = cuda.Event(disable_timing=True)
    done.record()
    try:
        while not done.done:
            time.sleep(POLL_SECONDS)
    except BaseException:
        second = cuda.Stream(non_blocking=True)  # the current one waits for the kernel
        control[OVER : OVER + 1].data.memset_async(1, control.itemsize, second)
        done.synchronize()
        raise


def ring_size(n: int, nnz: int, slots: int, first: int) -> int:
    """Entries of the ring, a power of two: more than the batches that can be in use at once.

    Of `nodes` vertices whose rows have `value` entries (each counted as `slots` at most), at most
    ``1 + 2 long + short / (slots / 2) + nodes / MOST_PARENTS`` batches are made, where `long` rows
    are longer than half of `slots`: that is at most ``1 + 4 value / slots + nodes / MOST_PARENTS``.
    Unless no other batch is left, ``1 <= 2 value / slots + 2 nodes / MOST_PARENTS``: fewer are
    passed on.  Vertices of unfinished batches are distinct; empty batches count with those made
    together with them.  Blocks may hold batches that finish out of order; they are far fewer.
    A look back from an unfinished batch passes at most as many empty ones: twice that.
    """
    unfinished = 6 * (nnz // slots + 1) + 3 * (n // MOST_PARENTS + 1) + first
    return 1 << (2 * unfinished + 4096).bit_length()


def _counters(words: np.ndarray[Any, Any]) -> dict[str, Any]:
    counters: dict[str, Any] = {"generated": int(words[MADE])}
    counters |= {name: int(words[COUNTERS + i]) for i, name in enumerate(COUNTED)}
    cycles = words[CYCLES : CYCLES + len(TIMED)].astype(np.float64)
    shares = cycles / max(1.0, cycles.sum())
    return counters | {name: float(share) for name, share in zip(TIMED, shares, strict=True)}

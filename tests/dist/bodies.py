"""What ranks do in tests of communicators: called in threads, and by scripts under mpiexec.

A body is called on all ranks, and asserts what each operation must return.
"""

from __future__ import annotations

import pickle
from functools import reduce
from typing import Any

import numpy as np
import pytest

from matchwood.dist import Communicator
from matchwood.errors import CheckFailed

TYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128,
]  # fmt: skip
FOLDS = {"sum": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or}
ALLOWED = {"sum": "iufc", "min": "biuf", "max": "biuf", "or": "biu"}


def drawn(length: int, dtype: Any, *seed: int) -> np.ndarray:
    """Numbers that depend on the seed alone: every rank can make those of every other."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "fc":
        return rng.standard_normal(length).astype(dtype)
    return rng.integers(0, 100, length).astype(dtype)


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    if found.dtype == np.longdouble:
        assert (found == expected).all()  # it has bytes that mean nothing
    else:
        assert found.tobytes() == expected.tobytes()  # bit for bit: the order of a sum is fixed


def folded(arrays: list[np.ndarray], op: str) -> np.ndarray:
    return reduce(FOLDS[op], arrays).astype(arrays[0].dtype)


def reductions(comm: Communicator, dtypes: Any = TYPES, lengths: Any = (0, 1, 2, 7, 3000)) -> None:
    ranks = range(comm.size)
    for dtype in dtypes:
        for length in lengths:
            parts = [drawn(length, dtype, length, r) for r in ranks]
            counts = drawn(comm.size, np.int64, length, comm.size)
            counts = counts * length // max(1, int(counts.sum()))
            counts[comm.size // 2] += length - counts.sum()  # also empty shares
            lo = int(counts[: comm.rank].sum())
            for op in FOLDS:
                if np.dtype(dtype).kind not in ALLOWED[op]:
                    continue
                kept = parts[comm.rank].copy()
                expected = folded(parts, op)
                same(comm.allreduce(kept, op), expected)
                mine = expected[lo : lo + int(counts[comm.rank])]
                same(comm.reduce_scatter(kept, counts, op), mine)
                same(kept, parts[comm.rank])  # the input is as it was
    same(comm.allreduce(np.array(2)), np.array(2 * comm.size))  # no dimensions
    two = np.arange(6.0).reshape(2, 3) + comm.rank
    same(comm.allreduce(two, "max"), np.arange(6.0).reshape(2, 3) + comm.size - 1)


def gathers(comm: Communicator, dtypes: Any = TYPES, lengths: Any = (0, 1, 5, 2000)) -> None:
    ranks, r, p = range(comm.size), comm.rank, comm.size
    for dtype in dtypes:
        for length in lengths:
            parts = [drawn(length, dtype, 1, k) for k in ranks]
            same(comm.allgather(parts[r]), np.concatenate(parts))
            uneven = [drawn(k * length % 17, dtype, 2, k) for k in ranks]
            found, counts = comm.allgatherv(uneven[r])
            same(found, np.concatenate(uneven))
            assert counts.tolist() == [part.size for part in uneven]
            table = np.array([[(i * 5 + j * 3 + length) % 7 for j in ranks] for i in ranks])
            if length == 2000:
                table[p // 2] *= 300  # one rank sends much more than the others
            sent = [drawn(int(table[i].sum()), dtype, 3, i) for i in ranks]
            found, counts = comm.alltoallv(sent[r], table[r])
            runs = [np.split(sent[i], np.cumsum(table[i])[:-1])[r] for i in ranks]
            same(found, np.concatenate(runs))
            assert counts.tolist() == table[:, r].tolist()
            for root in {0, p - 1, p // 2}:
                array = parts[root]
                same(comm.broadcast(array if r == root else None, root), array)
    cube = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    same(comm.broadcast(cube if r == 0 else None), cube)


def strides(comm: Communicator) -> None:
    """Arrays that are not contiguous, or may not be written."""
    p = comm.size
    wide = np.arange(20) + comm.rank
    wide.flags.writeable = False
    for cut in (slice(None, None, 2), slice(None, None, -1), slice(3, 12, 3)):
        parts = [(np.arange(20) + k)[cut] for k in range(p)]
        same(comm.allreduce(wide[cut]), folded(parts, "sum"))
        same(comm.allgather(wide[cut]), np.concatenate(parts))
        same(comm.allgatherv(wide[cut])[0], np.concatenate(parts))
    every = np.arange(2 * p)[::2]
    found, counts = comm.alltoallv(every, [1] * p)
    assert found.tolist() == [2 * comm.rank] * p
    assert counts.tolist() == [1] * p
    twisted = np.arange(6).reshape(2, 3).T
    same(comm.broadcast(twisted if comm.rank == 0 else None), np.ascontiguousarray(twisted))


def results_are_new(comm: Communicator) -> None:
    """What a rank does to an array after a call reaches nobody."""
    for length in (3, 100_000):
        for _ in range(3):
            mine = np.full(length, comm.rank, np.int64)
            whole = comm.allgather(mine)
            total = comm.allreduce(mine)
            cast = comm.broadcast(mine if comm.rank == 0 else None)
            swapped, _ = comm.alltoallv(mine, _shares(length, comm.size))
            mine[:] = -1
            assert whole.min() == 0
            assert int(total[0]) == comm.size * (comm.size - 1) // 2
            assert not cast.any()
            assert swapped.size == 0 or swapped.min() == 0
            for array in (whole, total, cast, swapped):
                array[:] = -2
            comm.barrier()


def _shares(total: int, size: int) -> list[int]:
    return [total // size + (k < total % size) for k in range(size)]


def splits(comm: Communicator) -> None:
    r, p = comm.rank, comm.size
    halves = comm.split(r % 2, -r)
    assert halves.objects(r) == sorted((k for k in range(p) if k % 2 == r % 2), reverse=True)
    inner = halves.split(0 if halves.rank else 1)
    assert inner.size == (1 if halves.rank == 0 else halves.size - 1)
    reductions(inner, [np.float32], (5,))
    nobody = comm.split(None if r else 7)
    assert (nobody is None) == (r > 0)
    if nobody is not None:
        assert (nobody.rank, nobody.size) == (0, 1)
    for kept in (halves, inner):
        kept.close()
        kept.close()
    assert not comm.closed
    assert comm.objects("still here") == ["still here"] * p


def things(comm: Communicator) -> None:
    mine = {"rank": comm.rank, "text": "ä" * comm.rank, "array": np.arange(comm.rank)}
    found = comm.objects(mine)
    for k, each in enumerate(found):
        assert each["rank"] == k
        assert each["text"] == "ä" * k
        assert each["array"].tolist() == list(range(k))
    found[comm.rank]["rank"] = -1  # a copy
    assert mine["rank"] == comm.rank


def traffic(comm: Communicator) -> None:
    """Bytes and messages, by the definitions of `Traffic`."""
    r, p = comm.rank, comm.size

    def moved(call: Any) -> tuple[int, int, int]:
        before = comm.traffic.bytes_received, comm.traffic.bytes_sent, comm.traffic.messages
        call()
        after = comm.traffic.bytes_received, comm.traffic.bytes_sent, comm.traffic.messages
        return tuple(b - a for a, b in zip(before, after, strict=True))

    counts = np.arange(p) + 2
    total = int(counts.sum())
    assert moved(lambda: comm.reduce_scatter(np.ones(total, np.int32), counts)) == (
        (p - 1) * (r + 2) * 4, (total - r - 2) * 4, p - 1,
    )  # fmt: skip
    each = 6 * p
    assert moved(lambda: comm.allreduce(np.ones(each))) == (
        2 * (p - 1) * 6 * 8, 2 * (p - 1) * 6 * 8, 2 * (p - 1),
    )  # fmt: skip
    assert moved(lambda: comm.allgather(np.ones(5, np.int16))) == (
        (p - 1) * 10, (p - 1) * 10, p - 1,
    )  # fmt: skip
    assert moved(lambda: comm.allgatherv(np.ones(r, np.int8))) == (
        p * (p - 1) // 2 - r, (p - 1) * r, 2 * (p - 1),
    )  # fmt: skip
    assert moved(lambda: comm.alltoallv(np.ones(3 * p, np.float32), [3] * p)) == (
        (p - 1) * 12, (p - 1) * 12, 2 * (p - 1),
    )  # fmt: skip
    assert moved(lambda: comm.broadcast(np.ones(9) if r == 0 else None)) == (
        (0, (p - 1) * 72, p - 1) if r == 0 else (72, 0, 0)
    )  # fmt: skip
    assert moved(comm.barrier)[:2] == (0, 0)
    size = len(pickle.dumps("x"))
    assert moved(lambda: comm.objects("x"))[0] == (p - 1) * size
    half = comm.split(r % 2)
    others = half.size - 1
    assert moved(lambda: half.allgather(np.ones(4)))[0] == others * 32  # counts in its parent too
    assert half.traffic.bytes_received == others * 32
    assert half.traffic.by_operation["allgather"].calls == 1
    comm.traffic.clear()
    assert (comm.traffic.bytes_received, comm.traffic.messages) == (0, 0)
    assert comm.traffic.by_operation == {}


def everything(comm: Communicator, few: bool = False) -> None:
    """All of the above; `few` takes three types of numbers and short arrays only."""
    types = [np.bool_, np.int64, np.float32] if few else TYPES
    reductions(comm, types)
    gathers(comm, types)
    strides(comm)
    results_are_new(comm)
    splits(comm)
    things(comm)
    traffic(comm)


def refused(comm, work):
    """The class and text of the error that a call raises; the communicator goes on."""
    with pytest.raises((TypeError, ValueError, CheckFailed)) as caught:
        work()
    comm.barrier()
    return type(caught.value).__name__, str(caught.value)

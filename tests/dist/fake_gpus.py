"""GPUs, CUDA IPC and NCCL made of NumPy arrays and threads: for the host's side of both.

Every array counts as one of a GPU.  Pointers are addresses in this process, and ranks are threads,
so what one rank maps or receives is where the other has it.
"""

from __future__ import annotations

import ctypes
import queue
import threading
from itertools import chain, repeat
from typing import Any

import numpy as np

from matchwood.engines.ranks.networks.device import Cuda
from matchwood.engines.ranks.networks.nccl import NO_COLOR


class FakeCuda(Cuda):
    def is_there(self, array: Any) -> bool:
        return True

    def empty(self, shape: Any, dtype: Any) -> Any:
        found = np.empty(shape, dtype)
        found.reshape(-1).view(np.uint8)[:] = 85  # what was not written is seen
        return found

    def pointer(self, array: Any) -> int:
        return array.ctypes.data

    def stream(self) -> int:
        return 7

    def synchronize(self) -> None:
        pass

    def finished(self) -> Any:
        answers = chain([False], repeat(True))  # the first look is too early; the end stays one
        return lambda: next(answers)

    # Memory that other ranks map: this process has it anyway

    handles = 64  # bytes; memory is exported in units of so many, so most arrays begin within one

    def __init__(self, bus: str = "the GPU", fails: str = "") -> None:
        self._bus, self._fails = bus, fails
        self.maps: list[int] = []  # those that are open

    def errors(self) -> Any:
        return (OSError,)

    def bus(self) -> str:
        return self._bus

    def exported(self, array: Any) -> Any:
        if self._fails == "exported":
            raise OSError("no handle")
        begin = self.pointer(array) // self.handles * self.handles
        return begin.to_bytes(8, "little"), self.pointer(array) - begin

    def mapped(self, handle: bytes) -> int:
        if self._fails == "mapped":
            raise OSError("no mapping")
        self.maps.append(int.from_bytes(handle, "little"))
        return self.maps[-1]

    def unmapped(self, pointer: int) -> None:
        self.maps.remove(pointer)

    def array_at(self, pointer: int, size: int, dtype: Any) -> Any:
        nbytes = size * np.dtype(dtype).itemsize
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(pointer), dtype)


class FakeWindows:
    """Windows of `Ipc`."""

    def __init__(self, base: Any) -> None:
        self._base = base
        self._windows: list[Any] = []
        self.capacity = 0

    def grow(self, nbytes: int) -> None:
        self._windows = self._base._meet(np.full(nbytes, 170, np.uint8))
        self.capacity = nbytes

    def view(self, rank: int, offset: int, size: int, dtype: Any) -> Any:
        end = offset + size * np.dtype(dtype).itemsize
        assert end <= self.capacity
        return self._windows[rank][offset:end].view(dtype)

    def close(self) -> None:
        self._windows = []
        self.capacity = 0


class FakeNccl:
    """The module `cupy.cuda.nccl`; each rank has one."""

    NCCL_UINT8, NCCL_INT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64 = range(6)
    TYPES = ["uint8", "int8", "int32", "uint32", "int64", "uint64"]
    NCCL_SUM, NCCL_MIN, NCCL_MAX = range(3)
    FOLDS = [np.add, np.minimum, np.maximum]

    def __init__(self) -> None:
        self.waiting: list[Any] | None = None

    def groupStart(self) -> None:
        self.waiting = []

    def groupEnd(self) -> None:
        assert self.waiting is not None
        for receive in self.waiting:
            receive()
        self.waiting = None


class FakeNcclComm:
    """A communicator of NCCL: `shared` is one object for all its ranks."""

    def __init__(self, nccl: FakeNccl, rank: int, size: int, shared: dict[str, Any]) -> None:
        self.nccl, self.rank, self.size, self.shared = nccl, rank, size, shared
        self.calls: list[str] = []

    @staticmethod
    def room(size: int) -> dict[str, Any]:
        """What the ranks of a communicator share."""
        boxes = {(i, j): queue.Queue() for i in range(size) for j in range(size)}
        return {"boxes": boxes, "barrier": threading.Barrier(size), "slots": [None] * size}

    def _all(self, thing: Any) -> list[Any]:
        self.shared["slots"][self.rank] = thing
        self.shared["barrier"].wait(120)
        found = list(self.shared["slots"])
        self.shared["barrier"].wait(120)
        return found

    def check_async_error(self) -> None:
        pass

    def send(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        assert (kind, stream) == (self.nccl.NCCL_UINT8, 7)
        self.shared["boxes"][self.rank, peer].put(ctypes.string_at(pointer, count))

    def recv(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        def receive() -> None:
            text = self.shared["boxes"][peer, self.rank].get(timeout=120)
            assert len(text) == count
            ctypes.memmove(pointer, text, count)

        self.nccl.waiting.append(receive)

    def allGather(self, source: int, goal: int, count: int, kind: int, stream: int) -> None:
        self.calls.append("allGather")
        for rank, text in enumerate(self._all(ctypes.string_at(source, count))):
            ctypes.memmove(goal + rank * count, text, count)

    def bcast(self, pointer: int, count: int, kind: int, root: int, stream: int) -> None:
        self.calls.append("bcast")
        texts = self._all(ctypes.string_at(pointer, count))
        ctypes.memmove(pointer, texts[root], count)

    def _folded(self, source: int, count: int, kind: int, op: int) -> Any:
        dtype = np.dtype(self.nccl.TYPES[kind])
        texts = self._all(ctypes.string_at(source, count * dtype.itemsize))
        arrays = [np.frombuffer(text, dtype) for text in texts]
        return self.nccl.FOLDS[op].reduce(arrays[::-1], dtype=dtype)  # in an order of its own

    def allReduce(self, source: int, goal: int, count: int, kind: int, op: int, stream: int):
        self.calls.append("allReduce")
        text = self._folded(source, count, kind, op).tobytes()
        ctypes.memmove(goal, text, len(text))

    def reduceScatter(self, source: int, goal: int, count: int, kind: int, op: int, stream: int):
        self.calls.append("reduceScatter")
        whole = self._folded(source, count * self.size, kind, op)
        text = whole[self.rank * count : (self.rank + 1) * count].tobytes()
        ctypes.memmove(goal, text, len(text))

    def commSplit(self, color: int, key: int) -> FakeNcclComm | None:
        told = self._all((color, key))
        group = sorted((k, r) for r, (c, k) in enumerate(told) if c == color)
        ranks = [r for _, r in group]
        mine = self.room(len(ranks)) if ranks[0] == self.rank else None
        room = self._all(mine)[ranks[0]]
        if color == NO_COLOR:
            return None
        return FakeNcclComm(self.nccl, ranks.index(self.rank), len(ranks), room)

    def destroy(self) -> None:
        self.calls.append("destroy")

    def abort(self) -> None:
        self.calls.append("abort")

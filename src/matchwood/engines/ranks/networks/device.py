"""Arrays on GPUs beside a communicator of the host: what NCCL and CUDA IPC share.

The host's communicator (MPI or torch.distributed) carries lengths, objects and notices of failures.
Before the GPUs begin, all ranks have met there: so nobody waits for a missing rank in a call of
CUDA or NCCL, which cannot be interrupted.
"""

from __future__ import annotations

import abc
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks import checks
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.networks.staging import described, header
from matchwood.engines.ranks.protocol import Communicator


class Cuda:
    """The calls of CUDA that are needed here; tests have one that needs no GPU."""

    def is_there(self, array: Any) -> bool:
        return engines.location(array) == "gpu"

    def empty(self, shape: Any, dtype: Any) -> Any:
        return engines.cupy().empty(shape, dtype)

    def pointer(self, array: Any) -> int:
        return int(array.data.ptr)

    def stream(self) -> int:
        return int(engines.cupy().cuda.get_current_stream().ptr)

    def synchronize(self) -> None:
        engines.cupy().cuda.get_current_stream().synchronize()

    def finished(self) -> Callable[[], bool]:
        """A function: whether everything that is queued on the stream by now has ended."""
        event = engines.cupy().cuda.Event(disable_timing=True)
        event.record()
        return lambda: bool(event.done)

    # Memory that other processes map

    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions where memory cannot be mapped."""
        return (engines.cupy().cuda.runtime.CUDARuntimeError, OSError)

    def bus(self) -> str:
        """The GPU of this rank: the same text on ranks of one host that share it."""
        return str(engines.cupy().cuda.Device().pci_bus_id)

    def exported(self, array: Any) -> tuple[bytes, int]:
        """A handle of the memory in which an array lies, and the byte at which it begins there."""
        pointer = self.pointer(array)
        base = _beginning(pointer)
        return bytes(engines.cupy().cuda.runtime.ipcGetMemHandle(base)), pointer - base

    def mapped(self, handle: bytes) -> int:
        """Map memory of another process; its address here."""
        return int(engines.cupy().cuda.runtime.ipcOpenMemHandle(handle))

    def unmapped(self, pointer: int) -> None:
        engines.cupy().cuda.runtime.ipcCloseMemHandle(pointer)

    def array_at(self, pointer: int, size: int, dtype: Any) -> Any:
        """An array at an address, which it does not keep alive."""
        cupy, nbytes = engines.cupy(), size * np.dtype(dtype).itemsize
        memory = cupy.cuda.UnownedMemory(pointer, nbytes, None, cupy.cuda.Device().id)
        return cupy.ndarray(size, dtype, cupy.cuda.MemoryPointer(memory, 0))


def _beginning(pointer: int) -> int:
    """The first address of the allocation that holds an address: only the driver knows."""
    driver = ctypes.CDLL("libcuda.so.1")
    begin, size = ctypes.c_uint64(), ctypes.c_size_t()
    place = ctypes.c_uint64(pointer)
    code = driver.cuMemGetAddressRange_v2(ctypes.byref(begin), ctypes.byref(size), place)
    if code:
        raise OSError(f"cuMemGetAddressRange returned {code}")
    return begin.value


class OnDevice(Communicator):
    """A communicator that sends GPU arrays by another way than host arrays.

    A kind supplies `_gather_there`, `_exchange_there`, `_cast_there` and `_split_there`, and may do
    reductions better than by exchange.
    """

    def __init__(self, base: Communicator, cuda: Cuda) -> None:
        super().__init__(base.rank, base.size, base.threads, base.session, base.traffic)
        self.base = base
        self.cuda = cuda
        self._children: list[OnDevice] = []

    # The host's communicator

    def raw_compare(self, operation: str, *details: Any) -> None:
        self.base.raw_compare(operation, *details)

    def raw_barrier(self) -> None:
        self.base.raw_barrier()

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        return self.base.raw_bytes(text)

    def raw_lengths(self, length: int) -> Counts:
        return self.base.raw_lengths(length)

    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        return self.base.raw_table(sends)

    def raw_close(self) -> None:
        self._release_all()
        self.base.raw_close()

    def _release_all(self) -> None:
        """Give back what this communicator and those split from it hold; all ranks do so."""
        for child in self._children:
            child._release_all()
        self._release()

    def raw_fail(self, error: BaseException) -> None:
        self._abort()
        self.base.raw_fail(error)

    # GPU arrays

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        if not self.cuda.is_there(array):
            return self.base.raw_gather(array, counts)
        return self._gather_there(array, counts)

    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        if not self.cuda.is_there(array):
            return self.base.raw_exchange(array, sends, receives, total)
        return self._exchange_there(array, sends, receives)

    def raw_allgatherv(self, array: Any) -> tuple[Any, Counts]:
        if not self.cuda.is_there(array):
            return self.base.raw_allgatherv(array)
        return self._gatherv_there(array)

    def raw_alltoallv(self, array: Any, sends: Counts) -> tuple[Any, Counts]:
        if not self.cuda.is_there(array):
            return self.base.raw_alltoallv(array, sends)
        return self._alltoallv_there(array, sends)

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        if not self.cuda.is_there(array):
            return self.base.raw_reduce_scatter(array, counts, op)
        return self._reduce_scatter_there(array, counts, op)

    def raw_allreduce(self, array: Any, op: str) -> Any:
        if not self.cuda.is_there(array):
            return self.base.raw_allreduce(array, op)
        return self._allreduce_there(array, op)

    def raw_broadcast(self, array: Any, root: int) -> Any:
        mine = self.rank == root
        head = header(array if mine else None)
        head[0] = mine and self.cuda.is_there(array)
        head = self.base.raw_broadcast(head if mine else None, root)
        on_gpu, dtype, shape = described(head)
        if not on_gpu:
            return self.base.raw_broadcast(array, root)
        result = array.copy() if mine else self.cuda.empty(shape, dtype)
        if result.size:
            self._cast_there(result.reshape(-1), root)
        return result

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        made = self._split_there(color, ranks, self.base.raw_split(color, ranks))
        if made is not None:
            self._children.append(made)
        return made

    @abc.abstractmethod
    def _gather_there(self, array: Any, counts: Counts) -> Any:
        """As `raw_gather`."""

    @abc.abstractmethod
    def _exchange_there(self, array: Any, sends: Counts, receives: Counts) -> Any:
        """As `raw_exchange`."""

    @abc.abstractmethod
    def _cast_there(self, array: Any, root: int) -> None:
        """Fill `array` with that of the root."""

    @abc.abstractmethod
    def _split_there(
        self, color: int | None, ranks: Sequence[int], base: Communicator | None
    ) -> OnDevice | None:
        """The communicator of a color beside that of the host; None where that is None."""

    def _gatherv_there(self, array: Any) -> tuple[Any, Counts]:
        counts = self.base.raw_lengths(array.size)
        return self._gather_there(array, counts), counts

    def _alltoallv_there(self, array: Any, sends: Counts) -> tuple[Any, Counts]:
        receives, _ = self.base.raw_table(sends)
        return self._exchange_there(array, sends, receives), receives

    def _reduce_scatter_there(self, array: Any, counts: Counts, op: str) -> Any:
        own = int(counts[self.rank])
        parts = self._exchange_there(array, counts, np.full(self.size, own, np.int64))
        return checks.reduced(parts.reshape(self.size, own), op)

    def _allreduce_there(self, array: Any, op: str) -> Any:
        counts = checks.even_shares(array.size, self.size)
        return self._gather_there(self._reduce_scatter_there(array, counts, op), counts)

    @abc.abstractmethod
    def _release(self) -> None:
        """Give back what this communicator alone holds."""

    @abc.abstractmethod
    def _abort(self) -> None:
        """The same after a failure, without the other ranks."""

"""GPU arrays by NCCL.  Read device.py first.

Exact operations (integers) are NCCL's own.  For others the data are sent and reduced here in the
order of the ranks, since NCCL adds floats in an order of its own.  The end of an operation is
polled together with the notices of the other ranks; after a failure the NCCL communicator is
aborted, which ends the kernels that wait on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.networks.device import Cuda, OnDevice
from matchwood.engines.ranks.protocol import Communicator
from matchwood.errors import EngineUnavailable

EXACT = {
    "int8": "NCCL_INT8",
    "uint8": "NCCL_UINT8",
    "bool": "NCCL_UINT8",
    "int32": "NCCL_INT32",
    "uint32": "NCCL_UINT32",
    "int64": "NCCL_INT64",
    "uint64": "NCCL_UINT64",
}
"""Types whose sums and extremes are the same in any order, and their names in NCCL."""

NO_COLOR = -1  # NCCL_SPLIT_NOCOLOR, which CuPy does not name

OPERATIONS = {"sum": "NCCL_SUM", "min": "NCCL_MIN", "max": "NCCL_MAX"}


def library() -> Any:
    """CuPy's module for NCCL, or None where there is no NCCL."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy warns where the library is missing
        from cupy.cuda import nccl

    return nccl if nccl.available else None


def version() -> int:
    """The version of NCCL as it counts, 23004 for 2.30.4; 0 where it is missing."""
    found = library()
    return 0 if found is None else int(found.get_version())


class Nccl(OnDevice):
    """A rank with a GPU of its own."""

    kind = "nccl"
    transport = "nccl"

    def __init__(self, base: Communicator, nccl: Any, comm: Any, cuda: Cuda) -> None:
        super().__init__(base, cuda)
        self._nccl = nccl
        self._comm = comm

    def _finish(self, start: Callable[[int], None]) -> None:
        """Start an operation once all ranks are here, and wait for its end."""
        self.base.raw_barrier()
        start(self.cuda.stream())
        finished = self.cuda.finished()

        def done() -> bool:
            if finished():
                return True
            self._comm.check_async_error()
            return False

        self.base.wait_until(done)

    def _runs(
        self, array: Any, froms: Counts, sends: Counts, result: Any, receives: Counts
    ) -> None:
        """Send runs of `array` and receive runs into `result`, as bytes."""
        item, byte = array.itemsize, self._nccl.NCCL_UINT8
        source, goal = self.cuda.pointer(array), self.cuda.pointer(result)
        intos = np.cumsum(receives) - receives

        def start(stream: int) -> None:
            self._nccl.groupStart()
            for k in range(self.size):
                if sends[k]:
                    place = source + int(froms[k]) * item
                    self._comm.send(place, int(sends[k]) * item, byte, k, stream)
                if receives[k]:
                    place = goal + int(intos[k]) * item
                    self._comm.recv(place, int(receives[k]) * item, byte, k, stream)
            self._nccl.groupEnd()

        self._finish(start)

    def _gather_there(self, array: Any, counts: Counts) -> Any:
        result = self.cuda.empty(int(counts.sum()), array.dtype)
        if int(counts.min()) != int(counts.max()):
            same = np.full(self.size, array.size, np.int64)
            self._runs(array, np.zeros_like(same), same, result, counts)
            return result
        pointers = self.cuda.pointer(array), self.cuda.pointer(result)
        byte = self._nccl.NCCL_UINT8
        if array.size:
            self._finish(lambda s: self._comm.allGather(*pointers, array.nbytes, byte, s))
        return result

    def _exchange_there(self, array: Any, sends: Counts, receives: Counts) -> Any:
        result = self.cuda.empty(int(receives.sum()), array.dtype)
        self._runs(array, np.cumsum(sends) - sends, sends, result, receives)
        return result

    def _cast_there(self, array: Any, root: int) -> None:
        place, byte = self.cuda.pointer(array), self._nccl.NCCL_UINT8
        self._finish(lambda s: self._comm.bcast(place, array.nbytes, byte, root, s))

    def _exact(self, array: Any, op: str) -> tuple[int, int] | None:
        """NCCL's type and operation; None where the result would depend on its order."""
        name = array.dtype.name
        if op == "or" and name == "bool":
            op = "max"  # of bytes that are 0 or 1
        if name not in EXACT or op not in OPERATIONS:
            return None
        return getattr(self._nccl, EXACT[name]), getattr(self._nccl, OPERATIONS[op])

    def _allreduce_there(self, array: Any, op: str) -> Any:
        exact = self._exact(array, op)
        if exact is None or array.size == 0:
            return super()._allreduce_there(array, op)
        result = self.cuda.empty(array.size, array.dtype)
        pointers = self.cuda.pointer(array), self.cuda.pointer(result)
        self._finish(lambda s: self._comm.allReduce(*pointers, array.size, *exact, s))
        return result

    def _reduce_scatter_there(self, array: Any, counts: Counts, op: str) -> Any:
        exact, own = self._exact(array, op), int(counts[self.rank])
        if exact is None or own == 0 or int(counts.min()) != int(counts.max()):
            return super()._reduce_scatter_there(array, counts, op)
        result = self.cuda.empty(own, array.dtype)
        pointers = self.cuda.pointer(array), self.cuda.pointer(result)
        self._finish(lambda s: self._comm.reduceScatter(*pointers, own, *exact, s))
        return result

    def _split_there(
        self, color: int | None, ranks: Sequence[int], base: Communicator | None
    ) -> OnDevice | None:
        key = 0 if base is None else base.rank
        group = NO_COLOR if color is None else ranks[0]
        made = self._comm.commSplit(group, key)
        return None if base is None else Nccl(base, self._nccl, made, self.cuda)

    def _release(self) -> None:
        self._comm.destroy()

    def _abort(self) -> None:
        self._comm.abort()


def open_nccl(comm: Communicator) -> Nccl:
    """NCCL beside a communicator of the host; rank 0 makes the unique id."""
    nccl = library()
    if nccl is None:
        raise EngineUnavailable("world: transport 'nccl' needs NCCL, and CuPy does not find it")
    unique_id = comm.objects(nccl.get_unique_id() if comm.rank == 0 else None)[0]
    return Nccl(comm, nccl, nccl.NcclCommunicator(comm.size, unique_id, comm.rank), Cuda())

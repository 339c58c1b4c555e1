"""Where devices are: CUDA's, or simulated ones whose memory is that of the host.

A simulated device does what a device does, step by step, with the same plan, the same batches
through the same buffers, and the same limit on its memory.  So partitions, batches and lists are
tested without a GPU, and what would travel is counted.

The memory that a partition holds on its device is in a ledger: every array is counted, none is
forgotten.  The plan says before any work how many bytes there will be; the ledger sees that no more
are taken.  CUDA's allocator rounds up to 512 bytes, and so does the ledger, also for simulated
devices: what tests count there is what a device holds.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.devices.devices import Devices
from matchwood.errors import EngineUnavailable, OutOfMemory

RESERVED_PART = 16  # of the free memory 1 / RESERVED_PART is left to CUDA: modules, its allocator
ALIGNMENT = 512  # bytes


def aligned(nbytes: int) -> int:
    """Bytes that an allocation of so many takes."""
    return -(-max(int(nbytes), 1) // ALIGNMENT) * ALIGNMENT


class Ledger:
    """Arrays of one partition, made by `make(size, dtype)`, and the bytes that they take."""

    def __init__(self, make: Callable[[int, Any], Any], limit: int) -> None:
        self._make = make
        self.limit = limit
        self.taken = 0
        self.most = 0  # at any time

    def take(self, size: int, dtype: Any) -> Any:
        """An uninitialised array; `OutOfMemory` where it would exceed the limit."""
        self._count(size * np.dtype(dtype).itemsize)
        return self._make(size, dtype)

    def hold(self, array: Any) -> None:
        """An array that is there already counts like one that was taken."""
        self._count(array.nbytes)

    def _count(self, nbytes: int) -> None:
        nbytes = aligned(nbytes)
        if self.taken + nbytes > self.limit:
            raise OutOfMemory(
                f"a partition may hold {self.limit:,} bytes on its device and has "
                f"{self.taken:,}; {nbytes:,} more were asked for"
            )
        self.taken += nbytes
        self.most = max(self.most, self.taken)

    def give_back(self, array: Any) -> None:
        """The caller drops the array."""
        self.taken -= aligned(array.nbytes)


class Simulated(NamedTuple):
    """So many devices, each with so many bytes."""

    devices: int
    memory: int


_simulated: contextvars.ContextVar[Simulated | None] = contextvars.ContextVar(
    "matchwood_simulated_devices", default=None
)


@contextlib.contextmanager
def simulated(memory: int, *, count: int = 8) -> Iterator[None]:
    """Within, `Devices` are simulated on the host: `count` of them, of `memory` bytes each.

    For tests, and to see how much of a graph would travel.  In this thread or task only.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.engines.devices import simulated
    >>> A = matchwood.generators.grid((20, 20))
    >>> with simulated(1 << 20):
    ...     found = matchwood.weighted_matching(A, engine=matchwood.Devices((0, 1), batches=3))
    >>> found.cardinality == matchwood.weighted_matching(A).cardinality
    True
    """
    token = _simulated.set(Simulated(count, memory))
    try:
        yield
    finally:
        _simulated.reset(token)


class Machine:
    """The devices of a call.

    Attributes
    ----------
    engine : {"cpu", "gpu"}
        The file with the steps of a problem on these devices.
    limits : list of int
        The most bytes that each partition may hold.
    """

    def __init__(self, devices: Devices, caller: str) -> None:
        self.devices = devices
        found = _simulated.get()
        self.engine = "gpu" if found is None else "cpu"
        if found is None:
            self._cupy: Any = engines.cupy()
            present = int(self._cupy.cuda.runtime.getDeviceCount())
        else:
            present = found.devices
        for number in devices.devices:
            if number >= present:
                raise EngineUnavailable(
                    f"{caller}: there is no device {number}; this machine has {present}"
                )
        self.limits = self._limits(found, Counter())

    def count_again(self, kept: Counter[int]) -> None:
        """So many bytes of each device, kept by an earlier call, are used again by this one."""
        if any(kept.values()):
            self.limits = self._limits(_simulated.get(), kept)

    def again(self) -> Machine:
        """The same devices, with the memory that is free now."""
        return Machine(self.devices, "")

    def can_read(self, array: Any) -> bool:
        """Whether an array of a device can be used there, as it is.

        All partitions are on that device, and nothing is said of memory, batches or lists.
        """
        asked = self.devices
        free = asked.memory is None and asked.batches is None and asked.lists == "auto"
        here = self.engine == "gpu" and set(asked.devices) == {array.device.id}
        return free and here and array.dtype == np.int32

    def _limits(self, found: Simulated | None, kept: Counter[int]) -> list[int]:
        """Partitions on one device share what is free there; `memory` is what each may take."""
        sharing = Counter(self.devices.devices)
        limits = []
        for number in self.devices.devices:
            share = (self._free(number, found) + kept[number]) // sharing[number]
            asked = self.devices.memory
            limits.append(share if asked is None else min(asked, share))
        return limits

    def _free(self, number: int, found: Simulated | None) -> int:
        if found is not None:
            return found.memory
        from matchwood.engines import gpu

        with self._cupy.cuda.Device(number):
            free = gpu.free_bytes()
        return free - free // RESERVED_PART

    def ledger(self, partition: int) -> Ledger:
        """For the arrays of a partition on its device, which must be the current one."""
        make = np.empty if self.engine == "cpu" else self._empty
        return Ledger(make, self.limits[partition])

    def _empty(self, size: int, dtype: Any) -> Any:
        """CuPy keeps free memory by stream, so what one call leaves is found by the next one here.

        A call waits for its streams before it drops its arrays.
        """
        with self._cupy.cuda.Stream.null:
            return self._cupy.empty(size, dtype)


def require(devices: Devices, caller: str) -> Machine:
    """The machine of a call; `EngineUnavailable` where a device is missing."""
    return Machine(devices, caller)

"""`Devices`, by which a user names GPUs, and the machine behind it.

A ledger counts every array that a partition holds on its device.  The plan says before any work how
many bytes there will be; the ledger sees that no more are taken.  CUDA's allocator rounds up to 512
bytes, and so does the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import byte_size, count, flag, one_of, shown
from matchwood.errors import EngineUnavailable, OutOfMemory

TRANSPORTS = ("auto", "nccl", "peer", "device", "host")
LONGEST_LIST = 32  # edges: a warp holds a list in its registers, one edge in each lane
RESERVED_PART = 16  # of the free memory 1 / RESERVED_PART is left to CUDA: modules, its allocator
ALIGNMENT = 512  # bytes


@dataclass(frozen=True)
class Devices:
    """Which GPUs a call runs on, for graphs larger than one of them: a value for ``engine=``.

    The graph stays in the memory of the host.  Its vertices are cut into one partition for each
    device, and the rows of a partition travel to its device in batches, once; of each row the first
    few edges stay there, as a list.

    Parameters
    ----------
    devices : int or sequence of int
        The numbers of the devices.  A number may occur more than once: ``(0, 0)`` makes two
        partitions on one device.
    memory : int, str or None
        The most bytes that each partition may take on its device, all counted; as a number or as
        text, ``"8 GiB"``.  None takes what is free.
    batches : int or None
        Batches of a partition; None takes the fewest that fit.
    lists : int or "auto"
        The most edges of a row that stay on the device, 0 to 32.  ``"auto"`` takes what the memory
        allows.  With 0 every batch travels in every round, as in [1]_.
    transport : {"auto", "nccl", "peer", "device", "host"}
        How devices exchange data: by NCCL, by copies from one device to another, by copies within
        one device that occurs more than once, or through the memory of the host.
    stats : bool
        Measure the seconds of each round; the counts are there without it.

    Raises
    ------
    TypeError, ValueError
        If there is no device, a number is negative, `memory` cannot be read, or an argument is
        out of range.

    Notes
    -----
    `weighted_matching`, `degree_factor` and `connected_components` take it.  Their answers are the
    same integers as on one device and on the CPU.

    References
    ----------
    .. [1] M. Mandulak, S. Ghosh, S. M. Ferdous, M. Halappanavar, G. Slota. Efficient weighted
       graph matching on GPUs. SC 2024. doi:10.1109/SC41406.2024.00068

    Examples
    --------
    >>> import matchwood
    >>> matchwood.Devices((0, 0), memory="8 GiB").memory
    8589934592
    """

    ENGINE = "devices"  # the file of a problem with the engine for these values

    devices: Any = (0,)
    _: KW_ONLY
    memory: Any = None
    batches: int | None = None
    lists: Any = "auto"
    transport: str = "auto"
    stats: bool = False

    def __post_init__(self) -> None:
        caller = "Devices"
        object.__setattr__(self, "devices", _numbers(self.devices))
        if self.memory is not None:
            object.__setattr__(self, "memory", byte_size(caller, "memory", self.memory))
        if self.batches is not None:
            object.__setattr__(self, "batches", count(caller, "batches", self.batches, least=1))
        object.__setattr__(self, "lists", _lists(self.lists))
        one_of(caller, "transport", self.transport, TRANSPORTS)
        flag(caller, "stats", self.stats)
        different = len(set(self.devices))
        if self.transport == "nccl" and different < len(self.devices):
            raise ValueError(
                f"Devices: transport='nccl' needs devices that differ, got {self.devices}"
            )
        if self.transport == "device" and different > 1:
            raise ValueError(
                f"Devices: transport='device' needs one device, once or more, got {self.devices}"
            )

    @property
    def size(self) -> int:
        """Number of partitions."""
        return len(self.devices)


def _numbers(value: Any) -> tuple[int, ...]:
    several = hasattr(value, "__iter__") and getattr(value, "shape", None) != ()
    if isinstance(value, (str, bytes)) or not (several or _is_number(value)):
        raise TypeError(
            f"Devices: devices must be the number of a device or several, got {shown(value)}"
        )
    numbers = (value,) if _is_number(value) else tuple(value)
    if not numbers:
        raise ValueError("Devices: devices must name at least one device, got none")
    return tuple(count("Devices", "devices", number) for number in numbers)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__") and not hasattr(value, "__iter__")


def _lists(value: Any) -> Any:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"Devices: lists must be 'auto' or an integer, got {shown(value)}")
        return value
    k = count("Devices", "lists", value)
    if k > LONGEST_LIST:
        raise ValueError(f"Devices: lists must be at most {LONGEST_LIST}, got {k}")
    return k


# The memory of a partition


def aligned(nbytes: int) -> int:
    """The bytes that an allocation of `nbytes` bytes takes."""
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
        """Count an array that exists already, as if it had been taken here."""
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
        """Count the array no more; the caller drops it."""
        self.taken -= aligned(array.nbytes)


class Machine:
    """CUDA's devices of a call; `limits` are the most bytes that each partition may hold."""

    usual_engines = True  # the engines of one GPU run on these devices, too

    def __init__(self, devices: Devices, caller: str) -> None:
        self.devices = devices
        present = self._present()
        for number in devices.devices:
            if number >= present:
                raise EngineUnavailable(
                    f"{caller}: there is no device {number}; this machine has {present}"
                )
        self.limits = self._limits(Counter())

    def steps(self, package: str) -> Any:
        """The module with the steps of a problem, whose folder `devices` is the package."""
        return engines.load(package, "gpu")

    def count_again(self, kept: Counter[int]) -> None:
        """Raise the limits by kept[device] bytes, which an earlier call kept and this one uses."""
        if any(kept.values()):
            self.limits = self._limits(kept)

    def _limits(self, kept: Counter[int]) -> list[int]:
        """Partitions on one device share what is free there; `memory` is what each may take."""
        sharing, most = Counter(self.devices.devices), self.devices.memory
        shares = [(self._free(d) + kept[d]) // sharing[d] for d in self.devices.devices]
        return [share if most is None else min(most, share) for share in shares]

    def can_read(self, array: Any) -> bool:
        """Whether an array of a device can be used where it is, as it is.

        That is so if all partitions are on that device and `Devices` limits nothing.
        """
        asked = self.devices
        free = asked.memory is None and asked.batches is None and asked.lists == "auto"
        here = self.usual_engines and set(asked.devices) == {array.device.id}
        return free and here and array.dtype == np.int32

    def ledger(self, partition: int) -> Ledger:
        """The ledger of a partition, whose device must be the current one."""
        return Ledger(self._empty, self.limits[partition])

    def _present(self) -> int:
        return int(engines.cupy().cuda.runtime.getDeviceCount())

    def _free(self, number: int) -> int:
        from matchwood.engines import gpu

        with engines.cupy().cuda.Device(number):
            free = gpu.free_bytes()
        return free - free // RESERVED_PART

    def _empty(self, size: int, dtype: Any) -> Any:
        """An array of the null stream: CuPy keeps free memory by stream, and all calls look there.

        A call waits for its streams before it drops its arrays.
        """
        cupy = engines.cupy()
        with cupy.cuda.Stream.null:
            return cupy.empty(size, dtype)


# What makes the machine of a call; tests set one whose devices are simulated on the host.
machine_of: ContextVar[Callable[[Devices, str], Machine]] = ContextVar("machine", default=Machine)


def require(devices: Devices, caller: str) -> Machine:
    """The machine of a call; `EngineUnavailable` where a device is missing."""
    return machine_of.get()(devices, caller)

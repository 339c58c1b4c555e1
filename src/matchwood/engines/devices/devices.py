"""`Devices`: a value that says on which GPUs a call runs, and with how much of their memory."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from matchwood.arguments import byte_size, count, flag, one_of, shown

TRANSPORTS = ("auto", "nccl", "peer", "device", "host")
LONGEST_LIST = 32  # edges: a warp holds a list in its registers, one edge in each lane


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
        How devices tell each other: by NCCL, by copies from one device to another, by copies within
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

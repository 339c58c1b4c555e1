"""Statistics of traffic: the nine quantities, histograms, their fit.

Read on in result.py (what is returned), reference.py and check.py (the definition), cpu.py,
gpu/__init__.py; gpu/batches.py is for more packets than fit into a device, and several devices.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.applications.sensing.packets import packet_arrays
from matchwood.applications.sensing.statistics.result import (
    Fit,
    Histogram,
    Histograms,
    Statistics,
    Windows,
)
from matchwood.applications.sensing.traffic import TrafficMatrix, traffic_matrix
from matchwood.applications.sensing.traffic.result import moved
from matchwood.arguments import count, shown

__all__ = [
    "Fit",
    "Histogram",
    "Histograms",
    "Statistics",
    "Windows",
    "device_list",
    "traffic_histograms",
    "traffic_statistics",
]


def traffic_statistics(
    traffic: Any,
    *,
    batches: int = 1,
    devices: Any = None,
    engine: str | None = None,
    threads: int | None = None,
) -> Statistics:
    """The nine quantities of traffic, and how often each maximum is attained.

    With A(i, j) packets from source i to destination j: packets (sum of A), links (entries of A),
    sources (rows) and destinations (columns) that have an entry, and the largest link, row sum,
    row length, column sum and column length [1]_.

    Parameters
    ----------
    traffic : TrafficMatrix, or arrays (src, dst)
        Packets as arrays need no matrix to be made.  Not changed.
    batches : int
        For packets: in how many parts each device works on its share, for more packets than fit
        into its memory.  Arrays in pinned memory are copied while other parts are sorted.
    devices : list of int, optional
        For packets: the GPUs that share them; one may be named several times.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the traffic lives.
    threads : int or None
        CPU only.

    Returns
    -------
    Statistics

    Raises
    ------
    TypeError, ValueError
        If `traffic` is something else, or a matrix is given with `batches` or `devices`.

    Notes
    -----
    All numbers are integers, the same on every engine at any number of threads, and no bijection
    of the addresses changes them.  A matrix keeps the sums of its destinations, so that a second
    call takes only passes over its arrays.  Packets are sorted once as 64-bit links, then the
    destinations of links once as 32-bit keys.

    In batches, every part is sorted on its device and copied back in fewer bytes; then ranges of
    sources are counted, and last ranges of destinations.  A source must fit into a device with
    its links.  No part is made smaller than 2^20 packets: that would only cost time.

    References
    ----------
    .. [1] H. Jananthan et al., "Anonymized Network Sensing Graph Challenge", IEEE HPEC 2024,
       doi:10.1109/HPEC62836.2024.10938475.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import traffic_statistics
    >>> found = traffic_statistics((np.array([1, 1, 1, 2]), np.array([2, 2, 3, 1])))
    >>> found.valid_packets, found.unique_links, found.max_source_fan_out
    (4, 3, 2)
    """
    caller = "traffic_statistics"
    parts = count(caller, "batches", batches, 1)
    if isinstance(traffic, TrafficMatrix):
        chosen = engines.resolve(traffic.engine, engine, caller, threads)
        device_list(caller, devices, chosen)
        if parts > 1 or devices is not None:
            named = "batches" if parts > 1 else "devices"
            raise ValueError(f"{caller}: {named} share out packets, and traffic is a matrix")
        found = engines.load(__name__, chosen).matrix_statistics(
            moved(traffic, engines.home(chosen)), threads=threads
        )
    else:
        src, dst = _packets(caller, traffic)
        chosen = engines.resolve(engines.location(src), engine, caller, threads)
        shared = device_list(caller, devices, chosen)
        if parts > 1 or shared is not None:
            batched = engines.load(__name__, chosen).batched_statistics
            return batched(src, dst, parts, shared, threads=threads)  # type: ignore[no-any-return]
        home = engines.home(chosen)
        found = engines.load(__name__, chosen).packet_statistics(
            engines.moved(src, home), engines.moved(dst, home), threads=threads
        )
    return found  # type: ignore[no-any-return]


def traffic_histograms(
    traffic: Any, *, engine: str | None = None, threads: int | None = None
) -> Histograms:
    """Five histograms of traffic: how many links, sources, destinations have each value.

    Parameters
    ----------
    traffic : TrafficMatrix, or arrays (src, dst)
        Not changed.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the traffic lives.
    threads : int or None
        CPU only.

    Returns
    -------
    Histograms
        Packets and fan-out of sources, packets of links, fan-in and packets of destinations, on the
        CPU.  Each has `values`, `counts`, `cumulative()`, `log_binned()` and `fit()`.

    Raises
    ------
    TypeError
        If `traffic` is something else.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import traffic_histograms
    >>> found = traffic_histograms((np.array([1, 1, 1, 2]), np.array([2, 2, 3, 1])))
    >>> found.link_packets.values.tolist(), found.link_packets.counts.tolist()
    ([1, 2], [2, 1])
    """
    caller = "traffic_histograms"
    whole = isinstance(traffic, TrafficMatrix)
    src, dst = (None, None) if whole else _packets(caller, traffic)
    where = traffic.engine if whole else engines.location(src)
    chosen = engines.resolve(where, engine, caller, threads)
    if not whole:
        traffic = traffic_matrix(src, dst, engine=engine, threads=threads)
    histograms = engines.load(__name__, chosen).matrix_histograms
    return histograms(moved(traffic, engines.home(chosen)), threads=threads)  # type: ignore[no-any-return]


def _packets(caller: str, traffic: Any) -> tuple[Any, Any]:
    if not isinstance(traffic, (tuple, list)) or len(traffic) < 2:
        raise TypeError(
            f"{caller}: traffic must be a TrafficMatrix or arrays (src, dst), "
            f"got {type(traffic).__name__}"
        )
    return packet_arrays(caller, traffic[0], traffic[1])


def device_list(caller: str, devices: Any, engine: str) -> tuple[int, ...] | None:
    """The numbers of the GPUs that share a call; None where none are named."""
    if devices is None:
        return None
    if engine != "gpu":
        raise ValueError(f"{caller}: devices are for the GPU engine, got engine {engine!r}")
    if isinstance(devices, (str, bytes)) or not hasattr(devices, "__iter__"):
        raise TypeError(f"{caller}: devices must be a list of numbers, got {shown(devices)}")
    found = tuple(count(caller, "devices", number) for number in devices)
    most = int(engines.cupy().cuda.runtime.getDeviceCount())
    if not found or max(found) >= most:
        raise ValueError(f"{caller}: devices must be numbers below {most}, got {list(found)}")
    return found

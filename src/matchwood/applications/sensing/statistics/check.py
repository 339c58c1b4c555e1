"""Whether statistics and histograms of a traffic matrix are right."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.applications.sensing.packets import packet_arrays
from matchwood.applications.sensing.statistics.result import (
    EXTREMES,
    HISTOGRAMS,
    NAMES,
    QUANTITIES,
    Histogram,
    Histograms,
    Statistics,
)
from matchwood.applications.sensing.traffic import TrafficMatrix
from matchwood.errors import CheckFailed
from matchwood.primitives.sort import radix_sort, sort_keys


def check_statistics(traffic: Any, statistics: Any) -> None:
    """Raise `CheckFailed` unless these are the statistics of a TrafficMatrix or of packets.

    Every number is worked out from its definition by sums over rows and columns, in NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.check import check_statistics
    >>> from matchwood.sensing import traffic_statistics
    >>> packets = np.array([1, 1, 2]), np.array([2, 2, 3])
    >>> check_statistics(packets, traffic_statistics(packets))
    """
    if not isinstance(statistics, Statistics):
        raise TypeError(
            f"check_statistics: statistics must be Statistics, got {type(statistics).__name__}"
        )
    values = _values("check_statistics", traffic)
    expected = {
        "valid_packets": int(values["link_packets"].sum()),
        "unique_links": int(values["link_packets"].size),
        "unique_sources": int(values["source_packets"].size),
        "unique_destinations": int(values["destination_packets"].size),
    }
    for (largest, attained), name in zip(EXTREMES, QUANTITIES, strict=True):
        most = int(values[name].max(initial=0))
        expected[largest] = most
        expected[attained] = int((values[name] == most).sum())
    for name in NAMES:
        found = getattr(statistics, name)
        whole = isinstance(found, (int, np.integer)) and not isinstance(found, (bool, np.bool_))
        if not whole or found != expected[name]:
            raise CheckFailed(f"statistics: {name} is {expected[name]}, got {found!r}")


def check_histograms(traffic: Any, histograms: Any) -> None:
    """Raise `CheckFailed` unless these are the histograms of a TrafficMatrix or of packets.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.check import check_histograms
    >>> from matchwood.sensing import traffic_histograms
    >>> packets = np.array([1, 1, 2]), np.array([2, 2, 3])
    >>> check_histograms(packets, traffic_histograms(packets))
    """
    if not isinstance(histograms, Histograms):
        raise TypeError(
            f"check_histograms: histograms must be Histograms, got {type(histograms).__name__}"
        )
    caller = "check_histograms"
    values = _values(caller, traffic)
    for name in HISTOGRAMS:
        found = getattr(histograms, name)
        expected = Histogram(*_different(values[name]))
        if not isinstance(found, Histogram):
            raise TypeError(f"{caller}: {name} must be a Histogram, got {type(found).__name__}")
        for part in ("values", "counts"):
            right, what = getattr(expected, part), f"{name}.{part}"
            given = getattr(found, part)
            given = answers.integers(caller, "histograms", what, given, right.shape, "cpu")
            if (given != right).any():
                at = int((given != right).argmax())
                raise CheckFailed(f"histograms: {what}[{at}] is {right[at]}, got {given[at]}")


def _values(caller: str, traffic: Any) -> dict[str, Any]:
    """The five quantities of every link, source and destination."""
    if isinstance(traffic, TrafficMatrix):
        source, destination, counts = (engines.moved(x, "cpu") for x in traffic.tocoo())
    elif isinstance(traffic, tuple) and len(traffic) == 2:
        src, dst = (engines.moved(x, "cpu") for x in packet_arrays(caller, *traffic))
        keys = (src.astype(np.uint64) << np.uint64(32)) | dst
        links, counts = _different(keys)
        source, destination = links >> np.uint64(32), links & np.uint64(0xFFFFFFFF)
    else:
        raise TypeError(
            f"{caller}: traffic must be a TrafficMatrix or arrays (src, dst), "
            f"got {type(traffic).__name__}"
        )
    found = {"link_packets": counts}
    for side, addresses, fan in (
        ("source", source, "source_fan_out"),
        ("destination", destination, "destination_fan_in"),
    ):
        ordered, amounts = radix_sort(addresses, counts)
        starts = _starts(ordered)
        found[fan] = np.diff(np.append(starts, ordered.size))
        found[f"{side}_packets"] = np.add.reduceat(amounts, starts) if starts.size else amounts
    return found


def _starts(ordered: Any) -> Any:
    """Where numbers in order change."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: ordered.size])


def _different(numbers: Any) -> tuple[Any, Any]:
    """The different numbers, and how often each occurs."""
    ordered = sort_keys(np.ascontiguousarray(numbers).view(np.uint64)).view(numbers.dtype)
    starts = _starts(ordered)
    return ordered[starts], np.diff(np.append(starts, ordered.size))

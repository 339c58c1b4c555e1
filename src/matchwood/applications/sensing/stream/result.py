"""What `sense` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matchwood.applications.sensing.statistics import Histograms, Statistics, Windows
from matchwood.applications.sensing.traffic import TrafficMatrix


@dataclass(frozen=True)
class Sensing:
    """The result of `sense`.

    Attributes
    ----------
    statistics : Statistics
        The nine quantities of all packets.
    windows : Windows
        Those of each window.
    matrix : TrafficMatrix
        The sum of all windows.  Where it was larger than the memory allowed, its arrays are memory
        maps of files that go with it.
    histograms : Histograms
        Of the sum.
    blocks : dict or None
        Statistics of the traffic from a range to a range, by (name, name); None without `ranges`.
    capture : dict
        What was read: `packets`, `bytes`, `skipped` (reason to number), `dropped` (packets of a
        window that was not complete, or with an address that `compat` leaves out).
    seconds : dict
        Seconds by phase: `read`, `anonymize`, `windows`, `sums`, `total`.
    """

    statistics: Statistics
    windows: Windows
    matrix: TrafficMatrix
    histograms: Histograms
    blocks: dict[tuple[str, str], Statistics] | None
    capture: dict[str, Any]
    seconds: dict[str, float]

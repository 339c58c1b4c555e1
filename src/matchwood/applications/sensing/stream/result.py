"""What `sense` returns."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Literal

from matchwood.applications.sensing.packets import AddressTable
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
    addresses : AddressTable or None
        Of IPv6: the addresses in `matrix` are numbers of this table.
    compat : bool
        Whether addresses in `matrix` have their four bytes reversed, as `compat` reads them from
        files.
    """

    statistics: Statistics
    windows: Windows
    matrix: TrafficMatrix
    histograms: Histograms
    blocks: dict[tuple[str, str], Statistics] | None
    capture: dict[str, Any]
    seconds: dict[str, float]
    addresses: AddressTable | None = None
    compat: bool = False

    def maxima(self) -> dict[str, list[Any]]:
        """The addresses, as text, that attain each maximum; see `TrafficMatrix.maxima`.

        Of `max_link_packets` pairs (source, destination).  There are as many as `statistics` says,
        which may be all; `matrix.maxima()` has them as numbers.
        """
        found: dict[str, list[Any]] = {}
        for name, numbers in self.matrix.maxima().items():
            texts = self._texts(numbers.reshape(-1).tolist())
            pairs = numbers.ndim == 2
            found[name] = list(zip(texts[::2], texts[1::2], strict=True)) if pairs else texts
        return found

    def top_talkers(self, k: int = 10) -> list[tuple[str, int, int]]:
        """(address, packets, fan-out) of the k sources that sent most packets, most first.

        Sources of as many packets are in the order of their addresses (or numbers, of IPv6).
        """
        sources, packets, fan_out = self.matrix.top_talkers(k)
        texts = self._texts(sources.tolist())
        return list(zip(texts, packets.tolist(), fan_out.tolist(), strict=True))

    def _texts(self, numbers: list[int]) -> list[str]:
        if self.addresses is not None:
            return self.addresses.texts(numbers)
        order: Literal["little", "big"] = "little" if self.compat else "big"
        return [str(ipaddress.IPv4Address(number.to_bytes(4, order))) for number in numbers]

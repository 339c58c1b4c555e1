"""Histograms of traffic: how many links or addresses have each number of packets or partners."""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics.fit import Fit, fit_zipf_mandelbrot
from matchwood.applications.sensing.traffic.matrix import MOST_PACKETS, packets_of, require_sum
from matchwood.arguments import at_most, integers, same_size


class Histogram:
    """n(d): how many have the value d.

    Attributes
    ----------
    values : (k,) int64 array
        The values d that occur, ascending; all at least 1.
    counts : (k,) int64 array
        How many have each; at most 2^63 - 1 in all.

    The arrays are copies of those given, and cannot be written to.
    """

    def __init__(self, values: Any, counts: Any) -> None:
        most = np.iinfo(np.int64).max
        values = integers("Histogram", "values", values, low=1, high=most).astype(np.int64)
        counts = integers("Histogram", "counts", counts, low=1, high=most).astype(np.int64)
        same_size("Histogram", "counts", counts, "values", values)
        if bool((values[1:] <= values[:-1]).any()):
            raise ValueError("Histogram: values must ascend")
        require_sum("Histogram", "counts", packets_of(counts), "entities")
        self.values, self.counts = (engines.frozen(x) for x in (values, counts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return np.array_equal(self.values, other.values) and np.array_equal(
            self.counts, other.counts
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def __repr__(self) -> str:
        most = int(self.values[-1]) if self.values.size else 0
        return f"Histogram({self.total} entities, values up to {most})"

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @property
    def weight(self) -> int:
        """The sum of all values; exact, whatever its size."""
        if self.values.size == 0 or int(self.values[-1]) * self.total <= MOST_PACKETS:
            return int((self.values * self.counts).sum())
        return sum(map(operator.mul, self.values.tolist(), self.counts.tolist()))

    def probability(self) -> Any:
        """p(d) = n(d) / sum of n, for the values that occur."""
        return self.counts / max(1, self.total)

    def cumulative(self) -> Any:
        """P(d), the part with values up to d, for the values that occur."""
        return np.cumsum(self.counts) / max(1, self.total)

    def log_binned(self) -> tuple[Any, Any]:
        """(d_i, D_i) with d_i = 2^i and D_i = P(d_i) - P(d_(i - 1)): bins of doubling width.

        ValueError if a value is above 2^62: the next power of two does not fit into int64.
        """
        if self.values.size == 0:
            return np.empty(0, np.int64), np.empty(0)
        at_most("log_binned", "values", int(self.values[-1]), 1 << 62, "the last bin of int64")
        bins = (int(self.values[-1]) - 1).bit_length() + 1
        edges = np.array([1 << i for i in range(bins)], np.int64)
        ends = np.searchsorted(self.values, edges, side="right")
        sums = np.concatenate([[0], np.cumsum(self.counts)])[ends]
        return edges, np.diff(sums, prepend=0) / self.total

    def fit(self) -> Fit | None:
        """The Zipf-Mandelbrot curve of largest likelihood; None where all have one value."""
        return fit_zipf_mandelbrot(self.values, self.counts)


@dataclass(frozen=True)
class Histograms:
    """The five histograms of a traffic matrix."""

    source_packets: Histogram  # packets from each source
    source_fan_out: Histogram  # destinations of each source
    link_packets: Histogram  # packets of each link
    destination_fan_in: Histogram  # sources of each destination
    destination_packets: Histogram  # packets to each destination

    def as_dict(self) -> dict[str, Histogram]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


NAMES = tuple(field.name for field in fields(Histograms))

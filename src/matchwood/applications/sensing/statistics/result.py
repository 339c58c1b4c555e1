"""Results about traffic: the nine quantities, the histograms and the curve that fits one."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.traffic.result import MOST_PACKETS, packets_of, require_sum
from matchwood.arguments import at_most, integers, numbers, plain, same_size


@dataclass(frozen=True)
class Statistics:
    """The nine quantities of traffic, and how often each maximum is attained.

    With A(i, j) packets from source i to destination j.  An empty matrix has zeros only.
    """

    valid_packets: int = 0  # sum of A
    unique_links: int = 0  # entries of A
    max_link_packets: int = 0  # largest A(i, j)
    unique_sources: int = 0  # rows with an entry
    max_source_packets: int = 0  # largest sum of a row
    max_source_fan_out: int = 0  # most entries of a row
    unique_destinations: int = 0  # columns with an entry
    max_destination_packets: int = 0  # largest sum of a column
    max_destination_fan_in: int = 0  # most entries of a column
    links_at_max_packets: int = 0
    sources_at_max_packets: int = 0
    sources_at_max_fan_out: int = 0
    destinations_at_max_packets: int = 0
    destinations_at_max_fan_in: int = 0

    def nine(self) -> dict[str, int]:
        """The nine quantities by name."""
        return {name: getattr(self, name) for name in NINE}

    def as_dict(self) -> dict[str, int]:
        """All numbers by name."""
        return {name: getattr(self, name) for name in NAMES}


NAMES = tuple(field.name for field in fields(Statistics))
NINE = NAMES[:9]
EXTREMES = (  # a maximum, and how often it is attained
    ("max_link_packets", "links_at_max_packets"),
    ("max_source_packets", "sources_at_max_packets"),
    ("max_source_fan_out", "sources_at_max_fan_out"),
    ("max_destination_packets", "destinations_at_max_packets"),
    ("max_destination_fan_in", "destinations_at_max_fan_in"),
)
QUANTITIES = (  # whose maxima those are: of each link, source or destination
    "link_packets", "source_packets", "source_fan_out", "destination_packets",
    "destination_fan_in",
)  # fmt: skip
PLACE = {name: k for k, name in enumerate(NAMES)}


def from_extremes(
    packets: int, links: int, sources: int, destinations: int, extremes: Iterable[Any]
) -> Statistics:
    """Statistics from four numbers and, in the order of EXTREMES, pairs (maximum, how often)."""
    found = {name: n for names, pair in zip(EXTREMES, extremes, strict=True)
             for name, n in zip(names, pair, strict=True)}  # fmt: skip
    return Statistics(
        valid_packets=packets, unique_links=links, unique_sources=sources,
        unique_destinations=destinations, **found,
    )  # fmt: skip


def combined(parts: Any) -> Statistics:
    """Statistics of traffic whose parts share no link, source or destination (rows of a table)."""
    table = np.asarray(parts, np.int64).reshape(-1, len(NAMES))
    values = table.sum(axis=0)
    for largest, attained in EXTREMES:
        column, many = table[:, PLACE[largest]], table[:, PLACE[attained]]
        most = column.max(initial=0)
        values[PLACE[largest]] = most
        values[PLACE[attained]] = many[column == most].sum()
    return Statistics(*values.tolist())


class Windows:
    """The nine quantities of every window: columns by name, windows by number.

    Attributes
    ----------
    table : (windows, 14) int64 array
        A row for each window, a column for each name of `Statistics`.
    first : (windows, ) int64 array
        The number of the window's first packet.
    time : (windows, ) int64 array or None
        The time of the window's first packet in nanoseconds, where packets have one.

    The arrays are copies of those given, and cannot be written to.
    """

    def __init__(self, table: Any, first: Any, time: Any = None) -> None:
        rows = plain("Windows", "table", table)
        if rows.ndim != 2 or rows.shape[1] != len(NAMES):
            raise ValueError(
                f"Windows: table must have {len(NAMES)} columns, got shape {rows.shape}"
            )
        self.table = _copied("table", rows.reshape(-1)).reshape(-1, len(NAMES))
        self.first = _copied("first", first, len(rows))
        self.time = None if time is None else _copied("time", time, len(rows))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, window: int) -> Statistics:
        return Statistics(*self.table[window].tolist())

    def __iter__(self) -> Iterator[Statistics]:
        return (self[k] for k in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        if name not in PLACE:
            raise AttributeError(f"Windows has no attribute {name!r}")
        return self.table[:, PLACE[name]]

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *NAMES})

    def __repr__(self) -> str:
        return f"Windows({len(self)} windows, {sum(self.valid_packets.tolist())} packets)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Windows):
            return NotImplemented
        return np.array_equal(self.table, other.table) and np.array_equal(self.first, other.first)

    __hash__ = None  # type: ignore[assignment]  # holds arrays


def _copied(name: str, value: Any, size: int | None = None) -> Any:
    """A read-only copy, as int64."""
    limits = np.iinfo(np.int64)
    array = integers("Windows", name, value, size=size, low=limits.min, high=limits.max)
    return engines.frozen(engines.moved(array, "cpu").astype(np.int64))


def as_row(statistics: Statistics) -> list[int]:
    return list(astuple(statistics))


# The Zipf-Mandelbrot curve of largest likelihood.
#
#     p(d; alpha, delta) = (d + delta)^-alpha / sum over k = 1 .. d_max of (k + delta)^-alpha
#
# with d_max the largest value seen, alpha in (0, 8], delta in (-1, 10^4].  The best of a fixed grid
# of starts is improved by Newton steps in double precision.  Sums over k beyond 10^6 are integrals
# with the first terms of Euler and Maclaurin's correction.

SUMMED = 10**6  # terms added one by one
ROUGHLY_SUMMED = 10**4  # terms added one by one to choose a start
NODES = 96  # nodes of Gauss and Legendre's rule, in the logarithm of k
ALPHAS = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
DELTAS = (-0.9, -0.5, 0.0, 1.0, 10.0, 100.0, 1000.0)
BOUNDS = ((1e-9, 8.0), (-1 + 1e-9, 1e4))  # ranges of alpha and delta
LEAST, GREATEST = (np.array(ends) for ends in zip(*BOUNDS, strict=True))
STEPS = 60
CLOSE = 1e-10  # a smaller relative step ends the iteration


@dataclass(frozen=True)
class Fit:
    """A fitted curve.

    `alpha_error` and `delta_error` are standard errors from the second derivatives of the
    likelihood, NaN where the best curve lies at a bound.  `distance` is the largest distance of the
    two cumulative curves.
    """

    alpha: float
    delta: float
    alpha_error: float
    delta_error: float
    distance: float
    largest: int  # d_max

    def probability(self, values: Any) -> Any:
        """p(d) of the curve."""
        given = plain("probability", "values", values)
        numbers("probability", "values", given.reshape(-1))
        sums = _Sums(self.largest)
        scale = sums.of(self.alpha, self.delta, 0, 0)
        return (given.astype(np.float64) + self.delta) ** -self.alpha / scale


class _Sums:
    """Sums over k = 1 .. most of ln(k + delta)^j (k + delta)^-s."""

    def __init__(self, most: int, summed: int = SUMMED) -> None:
        self._k = np.arange(1.0, min(most, summed) + 1)
        self._most, self._summed = most, summed
        self._nodes, self._weights = np.polynomial.legendre.leggauss(NODES)

    def at(self, delta: float) -> tuple[Any, Any]:
        x = self._k + delta
        return x, np.log(x)

    def of(self, alpha: float, delta: float, more: int, j: int) -> float:
        logs = self.at(delta)[1]
        s = alpha + more
        return float((np.exp(-s * logs) * logs**j).sum()) + self.tail(s, delta, j, self._most)

    def tail(self, s: float, delta: float, j: int, end: int) -> float:
        """The terms beyond those added one by one, up to `end`."""
        if end <= self._summed:
            return 0.0
        a, b = self._summed + delta, end + delta
        low, high = math.log(a), math.log(b)
        t = 0.5 * (high - low) * (self._nodes + 1) + low
        integral = 0.5 * (high - low) * float((self._weights * np.exp((1 - s) * t) * t**j).sum())

        def term(x: float) -> float:
            return float(x**-s * math.log(x) ** j)

        def slope(x: float) -> float:
            log = math.log(x)
            return float(x ** (-s - 1) * ((j * log ** (j - 1) if j else 0.0) - s * log**j))

        return integral + (term(b) - term(a)) / 2 + (slope(b) - slope(a)) / 12

    def derivatives(self, alpha: float, delta: float) -> tuple[float, Any, Any]:
        """ln Z with its first and second derivatives by (alpha, delta)."""
        x, logs = self.at(delta)
        power = np.exp(-alpha * logs)
        first = power / x
        most = self._most

        def total(terms: Any, s: float, j: int) -> float:
            return float(terms.sum()) + self.tail(s, delta, j, most)

        z = total(power, alpha, 0)
        z_a = -total(power * logs, alpha, 1)
        z_aa = total(power * logs * logs, alpha, 2)
        flat = total(first, alpha + 1, 0)
        z_d = -alpha * flat
        z_ad = alpha * total(first * logs, alpha + 1, 1) - flat
        z_dd = alpha * (alpha + 1) * total(first / x, alpha + 2, 0)
        gradient = np.array([z_a, z_d]) / z
        second = np.array([[z_aa, z_ad], [z_ad, z_dd]]) / z - np.outer(gradient, gradient)
        return math.log(z), gradient, second


class _Likelihood:
    """-ln(likelihood) / N, and its derivatives."""

    def __init__(self, values: Any, counts: Any, summed: int = SUMMED) -> None:
        self.whole = values
        self.values = values.astype(np.float64)
        self.part = counts / counts.sum()
        self.total = float(counts.sum())
        self.sums = _Sums(int(values[-1]), summed)

    def at(self, alpha: float, delta: float) -> tuple[float, Any, Any]:
        x = self.values + delta
        logs, inverse = np.log(x), 1 / x
        mean_log, mean = float(self.part @ logs), float(self.part @ inverse)
        z, gradient, second = self.sums.derivatives(alpha, delta)
        value = alpha * mean_log + z
        gradient = gradient + np.array([mean_log, alpha * mean])
        curved = float(self.part @ inverse**2)
        second = second + np.array([[0, mean], [mean, -alpha * curved]])
        return value, gradient, second


def fit_zipf_mandelbrot(values: Any, counts: Any) -> Fit | None:
    """Fit a histogram; None where fewer than two values occur."""
    if values.size < 2:
        return None
    rough = _Likelihood(values, counts, ROUGHLY_SUMMED)
    starts = [(a, d) for a in ALPHAS for d in DELTAS]
    point = np.array(min(starts, key=lambda start: rough.at(*start)[0]))
    goal = _Likelihood(values, counts)
    value, gradient, second = goal.at(*point)
    for _ in range(STEPS):
        step = _step(point, gradient, second)
        length = 1.0
        while length > 1e-12:
            trial = np.clip(point + length * step, LEAST, GREATEST)
            found = goal.at(*trial)
            if found[0] < value or np.array_equal(trial, point):
                break
            length /= 2
        moved = float(np.abs(trial - point).max() / (1 + np.abs(point).max()))
        if found[0] >= value:
            break
        point, (value, gradient, second) = trial, found
        if moved < CLOSE:
            break
    return _finished(goal, point, second)


def _step(point: Any, gradient: Any, second: Any) -> Any:
    """Newton's step; where the surface is not convex, along its curvature's absolute values.

    A coordinate at its bound whose gradient points outwards stays there.
    """
    free = [
        not ((x <= lo and g > 0) or (x >= hi and g < 0))
        for x, g, (lo, hi) in zip(point, gradient, BOUNDS, strict=True)
    ]
    step = np.zeros(2)
    index = np.flatnonzero(free)
    if index.size:
        eigen, basis = np.linalg.eigh(second[np.ix_(index, index)])
        eigen = np.maximum(np.abs(eigen), 1e-12)
        step[index] = -basis @ ((basis.T @ gradient[index]) / eigen)
    return step


def _finished(goal: _Likelihood, point: Any, second: Any) -> Fit:
    alpha, delta = (float(x) for x in point)
    errors = np.full(2, math.nan)
    inside = all(lo < x < hi for x, (lo, hi) in zip(point, BOUNDS, strict=True))
    if inside and np.linalg.eigvalsh(second)[0] > 0:
        errors = np.sqrt(np.diag(np.linalg.inv(second * goal.total)))
    return Fit(
        alpha, delta, float(errors[0]), float(errors[1]),
        _distance(goal, alpha, delta), int(goal.whole[-1]),
    )  # fmt: skip


def _distance(goal: _Likelihood, alpha: float, delta: float) -> float:
    """The largest distance, at values that occur and just before the next; elsewhere smaller."""
    logs = goal.sums.at(delta)[1]
    low = np.cumsum(np.exp(-alpha * logs))
    scale = float(low[-1]) + goal.sums.tail(alpha, delta, 0, int(goal.whole[-1]))

    def model(d: int) -> float:
        if d < 1:
            return 0.0
        if d <= SUMMED:
            return float(low[d - 1]) / scale
        return (float(low[-1]) + goal.sums.tail(alpha, delta, 0, d)) / scale

    seen = np.cumsum(goal.part)
    places = goal.whole.tolist()
    here = [abs(float(p) - model(d)) for p, d in zip(seen, places, strict=True)]
    before = [abs(float(p) - model(d - 1)) for p, d in zip([0, *seen], places, strict=False)]
    return max(*here, *before)


# Histograms


class Histogram:
    """n(d): the number of links, sources or destinations with the value d.

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
        """The sum of the counts."""
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


HISTOGRAMS = tuple(field.name for field in fields(Histograms))


def histograms_of(made: Mapping[str, tuple[Any, Any]]) -> Histograms:
    """Histograms from (values, counts) by name."""
    return Histograms(**{name: Histogram(*parts) for name, parts in made.items()})

"""The HTML page of `matchwood sense`, its plots, its part of the demo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from matchwood import engines
from matchwood.report import page
from matchwood.report.sketches import Sketch
from matchwood.report.svg import INK, MAIN, QUIET, SECOND, Svg

# Pictures of traffic: quantities over windows, histograms on two logarithmic axes.


Array = np.ndarray[Any, Any]

WIDTH, HEIGHT = 420, 240
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 34  # margins of the frame, in units
POINTS = 400  # points of a curve: of more windows the largest of each stretch is shown


def over_windows(values: Any) -> Svg:
    """A quantity of each window, from 0 up."""
    values = np.asarray(values, np.float64)
    picture = Svg(WIDTH, HEIGHT, "a quantity of each window")
    most = float(values.max(initial=0)) or 1.0
    top = _round_up(most)
    _frame(picture)
    for part in (0, 0.5, 1):
        y = _down(part)
        picture.text(LEFT - 6, y + 4, f"{part * top:,.4g}", anchor="end", color=QUIET)
    places = np.arange(values.size)
    if values.size > POINTS:
        starts = np.linspace(0, values.size, POINTS, endpoint=False).astype(np.int64)
        values, places = np.maximum.reduceat(values, starts), starts
    last = max(int(places[-1]) if places.size else 0, 1)
    x = LEFT + places / last * (WIDTH - LEFT - RIGHT)
    points = np.column_stack((x, _down(values / top)))
    picture.line(points, color=MAIN)
    if values.size < 60:
        picture.dots(points, color=MAIN, radius=2)
    picture.text(LEFT, HEIGHT - 16, "0", color=QUIET)
    picture.text(WIDTH - RIGHT, HEIGHT - 16, f"{last:,}", anchor="end", color=QUIET)
    picture.text((LEFT + WIDTH) / 2, HEIGHT - 4, "window", anchor="middle")
    return picture


def log_log(values: Any, counts: Any, fit: Any) -> Svg:
    """The share of each value, and the fitted curve through it."""
    values = np.asarray(values, np.float64)
    share = np.asarray(counts, np.float64)
    share = share / max(share.sum(), 1)
    picture = Svg(WIDTH, HEIGHT, "how many have each value")
    _frame(picture)
    right = max(1, math.ceil(math.log10(float(values.max(initial=1)))))
    low = min(-1, math.floor(math.log10(float(share[share > 0].min(initial=1)))))

    def at(x: Array, y: Array) -> Array:
        across = LEFT + np.log10(x) / right * (WIDTH - LEFT - RIGHT)
        return np.column_stack((across, _down(1 - np.log10(y) / low)))

    for power in range(0, right + 1, max(1, right // 5)):
        x = LEFT + power / right * (WIDTH - LEFT - RIGHT)
        picture.text(x, HEIGHT - 18, _power(power), anchor="middle", color=QUIET)
    for power in range(0, low - 1, -max(1, -low // 4)):
        y = _down(1 - power / low)
        picture.text(LEFT - 6, float(y) + 4, _power(power), anchor="end", color=QUIET)
    picture.dots(at(values, share), color=MAIN, radius=1.8, opacity=0.8)
    if fit is not None:
        grid = np.unique(np.round(np.logspace(0, math.log10(fit.largest), 120)))
        model = np.asarray(fit.probability(grid), np.float64)
        kept = model > 10.0**low
        picture.line(at(grid[kept], model[kept]), color=SECOND, width=1.6)
    picture.text((LEFT + WIDTH) / 2, HEIGHT - 4, "value", anchor="middle")
    return picture


def _power(power: int) -> str:
    return f"{10**power:,}" if 0 <= power <= 4 else f"1e{power}"


def _frame(picture: Svg) -> None:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    picture.line(np.array([(LEFT, TOP), (LEFT, bottom), (right, bottom)]), color=INK, width=1)


def _down(part: Any) -> Any:
    """The y coordinate of a part 0..1 of the frame's height."""
    return HEIGHT - BOTTOM - np.asarray(part) * (HEIGHT - BOTTOM - TOP)


def _round_up(value: float) -> float:
    """The next number with one or two digits: 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power."""
    scale = 10.0 ** math.floor(math.log10(value))
    return next(scale * k for k in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if scale * k >= value)


# The page of `matchwood sense --html`: numbers and pictures, and not one address.


WORDS = {
    "valid_packets": "packets",
    "unique_links": "links",
    "max_link_packets": "most packets of a link",
    "unique_sources": "sources",
    "max_source_packets": "most packets of a source",
    "max_source_fan_out": "most destinations of a source",
    "unique_destinations": "destinations",
    "max_destination_packets": "most packets to a destination",
    "max_destination_fan_in": "most sources of a destination",
}
HISTOGRAMS = {
    "source_packets": "packets of a source",
    "source_fan_out": "destinations of a source",
    "link_packets": "packets of a link",
    "destination_fan_in": "sources of a destination",
    "destination_packets": "packets to a destination",
}


def traffic_page(found: Any, captures: Sequence[str], method: str | None) -> str:
    """The whole page for what `sense` returned."""
    names = ", ".join(Path(name).name or name for name in captures)
    hidden = f"Addresses were made anonymous by {method}." if method else "Addresses as captured."
    sections = [
        page.heading(
            "Network traffic", f"{names}: {found.statistics.valid_packets:,} packets in "
            f"{len(found.windows):,} windows. {hidden}", level=1,
        ),
        page.heading("All packets"),
        _quantities(found.statistics),
        page.heading("What was read"),
        _reading(found),
    ]  # fmt: skip
    if len(found.windows):
        sections += [
            page.heading("Windows", "Each quantity of each window, in order."),
            page.cards(_over_windows(found.windows)),
            page.heading(
                "Histograms", "The share of links and addresses that have each value, on "
                "logarithmic axes, and the Zipf-Mandelbrot curve p(d) ~ 1 / (d + delta)^alpha that "
                "fits best.",
            ),
            page.cards(_histograms(found.histograms)),
        ]  # fmt: skip
    if found.blocks is not None:
        sections += [
            page.heading("Between ranges", "Traffic from a range of addresses to a range, by the "
                         "original addresses."),
            _blocks(found.blocks),
        ]  # fmt: skip
    return page.page(f"traffic of {names}", sections)


def _quantities(statistics: Any) -> str:
    from matchwood.applications.sensing.statistics.result import EXTREMES

    attained = dict(EXTREMES)
    rows = []
    for name, value in statistics.nine().items():
        many = f"{getattr(statistics, attained[name]):,}" if name in attained else ""
        rows.append((WORDS[name], f"{value:,}", many))
    return page.table(("quantity", "value", "attained by"), rows, numbers=(1, 2))


def _reading(found: Any) -> str:
    capture = found.capture
    rows = [("bytes", f"{capture['bytes']:,}"), ("packets", f"{capture['packets']:,}")]
    rows += [(f"skipped: {reason}", f"{count:,}") for reason, count in capture["skipped"].items()]
    rows += [("packets dropped", f"{capture['dropped']:,}")]
    rows += [(f"seconds: {name}", f"{value:,.3f}") for name, value in found.seconds.items()]
    return page.table(("", ""), rows, numbers=(1,))


def _over_windows(windows: Any) -> list[str]:
    figures = []
    for name, words in WORDS.items():
        values = getattr(windows, name)
        low, high = int(values.min()), int(values.max())
        caption = f"from {low:,} to {high:,}" if low < high else f"always {low:,}"
        figures.append(page.figure(over_windows(values).markup(), caption, words))
    return figures


def _histograms(histograms: Any) -> list[str]:
    figures = []
    for name, one in histograms.as_dict().items():
        fit = one.fit()
        caption = "one value only, so there is no fit"
        if fit is not None:
            caption = (
                f"alpha {fit.alpha:.3f} (error {fit.alpha_error:.2g}), delta {fit.delta:.3f} "
                f"(error {fit.delta_error:.2g}), largest distance {fit.distance:.3f}"
            )
        picture = log_log(one.values, one.counts, fit).markup()
        figures.append(page.figure(picture, caption, HISTOGRAMS[name]))
    return figures


def _blocks(blocks: Any) -> str:
    rows = [
        (a, b, *(f"{value:,}" for value in one.nine().values())) for (a, b), one in blocks.items()
    ]
    heads = ("from", "to", *WORDS.values())
    return page.table(heads, rows, numbers=tuple(range(2, len(heads))))


# Network traffic in the demo: entries of a matrix as packets from their row to their column.


TOGETHER = 3  # rows and columns that are one host, so that links have more than one packet


def sent(A: Any) -> tuple[Any, Any]:
    """(sources, destinations) of the packets."""
    view = (A if isinstance(A, matchwood.Graph) else matchwood.graph(A)).directed_pattern()
    xp = engines.xp(view.indices)
    ends = xp.arange(1, view.indices.size + 1)
    rows = xp.searchsorted(view.indptr[1:], ends, side="left")
    return tuple((part // TOGETHER).astype(xp.uint32) for part in (rows, view.indices))  # type: ignore[return-value]


def ours(A: Any, threads: int | None) -> tuple[Any, ...]:
    """The arrays of a traffic matrix."""
    found = matchwood.traffic_matrix(*sent(A), threads=threads)
    return found.sources, found.indptr, found.destinations, found.counts


def peer(A: Any) -> Any:
    """The same by SciPy: duplicates are summed, and the addresses are small enough for its rows."""
    import scipy.sparse as sp

    src, dst = (part.astype(np.int64) for part in sent(A))
    return sp.coo_array((np.ones(src.size, np.int64), (src, dst))).tocsr()


def check(A: Any, found: Any) -> None:
    matchwood.check.check_traffic_matrix(*sent(A), matchwood.TrafficMatrix(*found))


def say(found: Any) -> str:
    return f"{int(found[-1].sum()):,} packets, {found[-1].size:,} links"


def sketch(n: int = 200_000) -> Sketch:
    """Packets of a few busy hosts and many quiet ones."""
    src, dst = matchwood.generators.packets(n, "zipf", hosts=5000, exponent=1.3, rng=2)
    found = matchwood.sense((src, dst), window=n // 40)
    one = found.histograms.source_packets
    fit = one.fit()
    alpha = "" if fit is None else f" The curve that fits has alpha {fit.alpha:.2f}."
    return Sketch(
        (
            over_windows(found.windows.unique_links),
            log_log(one.values, one.counts, fit),
        ),
        f"{n:,} packets between hosts of which few send most, in {len(found.windows)} windows. "
        f"Left: links of each window. Right: how many sources sent how many packets, on "
        f"logarithmic axes.{alpha}",
    )

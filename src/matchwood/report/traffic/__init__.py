"""The page of `matchwood sense --html`: numbers and pictures, and not one address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matchwood.report import page
from matchwood.report.traffic import plots

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
        page.heading("Windows", "Each quantity of each window, in order."),
        page.cards(_over_windows(found.windows)),
        page.heading(
            "Histograms", "The share of links and addresses that have each value, on logarithmic "
            "axes, and the Zipf-Mandelbrot curve p(d) ~ 1 / (d + delta)^alpha that fits best.",
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
    rows += [(f"seconds: {name}", f"{value:.4g}") for name, value in found.seconds.items()]
    return page.table(("", ""), rows, numbers=(1,))


def _over_windows(windows: Any) -> list[str]:
    figures = []
    for name, words in WORDS.items():
        values = getattr(windows, name)
        low, high = (int(values.min()), int(values.max())) if len(windows) else (0, 0)
        caption = f"from {low:,} to {high:,}"
        figures.append(page.figure(plots.over_windows(values).markup(), caption, words))
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
        picture = plots.log_log(one.values, one.counts, fit).markup()
        figures.append(page.figure(picture, caption, HISTOGRAMS[name]))
    return figures


def _blocks(blocks: Any) -> str:
    rows = [
        (a, b, *(f"{value:,}" for value in one.nine().values())) for (a, b), one in blocks.items()
    ]
    heads = ("from", "to", *WORDS.values())
    return page.table(heads, rows, numbers=tuple(range(2, len(heads))))

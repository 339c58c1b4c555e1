"""Network traffic in the demo: entries of a matrix as packets from their row to their column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import matchwood
from matchwood import engines
from matchwood.report.drawings.sketches import Sketch
from matchwood.report.traffic import plots

TOGETHER = 3  # rows and columns that are one host, so that links have more than one packet


@dataclass(frozen=True)
class Traffic:
    """The arrays of a traffic matrix, for comparing."""

    sources: Any
    indptr: Any
    destinations: Any
    counts: Any


def sent(A: Any) -> tuple[Any, Any]:
    """(sources, destinations) of the packets."""
    view = (A if isinstance(A, matchwood.Graph) else matchwood.graph(A)).directed_pattern()
    xp = engines.xp(view.indices)
    ends = xp.arange(1, view.indices.size + 1)
    rows = xp.searchsorted(view.indptr[1:], ends, side="left")
    return tuple((part // TOGETHER).astype(xp.uint32) for part in (rows, view.indices))  # type: ignore[return-value]


def ours(A: Any, threads: int | None) -> Traffic:
    found = matchwood.traffic_matrix(*sent(A), threads=threads)
    return Traffic(found.sources, found.indptr, found.destinations, found.counts)


def peer(A: Any) -> Any:
    """The same by SciPy: duplicates are summed, and the addresses are small enough for its rows."""
    import scipy.sparse as sp

    src, dst = (part.astype(np.int64) for part in sent(A))
    return sp.coo_array((np.ones(src.size, np.int64), (src, dst))).tocsr()


def check(A: Any, found: Traffic) -> None:
    matrix = matchwood.TrafficMatrix(*vars(found).values())
    matchwood.check.check_traffic_matrix(*sent(A), matrix)


def say(found: Traffic) -> str:
    return f"{int(found.counts.sum()):,} packets, {found.counts.size:,} links"


def sketch(n: int = 200_000) -> Sketch:
    """Packets of a few busy hosts and many quiet ones."""
    src, dst = matchwood.generators.packets(n, "zipf", hosts=5000, exponent=1.3, rng=2)
    found = matchwood.sense((src, dst), window=n // 40)
    one = found.histograms.source_packets
    fit = one.fit()
    alpha = "" if fit is None else f" The curve that fits has alpha {fit.alpha:.2f}."
    return Sketch(
        (
            plots.over_windows(found.windows.unique_links),
            plots.log_log(one.values, one.counts, fit),
        ),
        f"{n:,} packets between hosts of which few send most, in {len(found.windows)} windows. "
        f"Left: links of each window. Right: how many sources sent how many packets, on "
        f"logarithmic axes.{alpha}",
    )

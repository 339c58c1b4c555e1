"""The HTML page of `matchwood order`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from matchwood.report import page
from matchwood.report.pictures import spy
from matchwood.report.svg import MAIN, QUIET, SECOND, Svg

CELLS = 100  # rows and columns of cells in the picture of a matrix
BITS = 40  # a gap of 2^40 is in the last column
WORDS = {
    "bandwidth": "largest distance of an entry from the diagonal",
    "profile": "distances of the first entries of rows from the diagonal, added up",
    "max_wavefront": "rows that a solver holds at once, at most",
    "rms_wavefront": "rows that a solver holds at once, on average (root of mean squares)",
    "linear_arrangement": "lengths of edges, added up",
    "log_arrangement": "bits of the lengths of edges, added up",
    "linear_gap": "jumps between neighbours of a vertex, added up",
    "log_gap": "bits of these jumps, added up",
    "entries": "entries of L, the factor of elimination",
    "operations": "multiplications of elimination, about",
    "height": "steps of elimination that wait for each other",
}


def page_of(name: str, method: str, A: Any, B: Any, found: Any) -> str:
    """The whole page; `B` is `A` in the order of `found`."""
    chosen = found.counters.get("method", method)
    by = method if method in (chosen, "rcm", "cm") else f"{chosen}, chosen by {method}"
    title = f"Order of {Path(name).name or name}"
    seconds = f"; {sum(found.seconds.values()):.3g} s" if found.seconds else ""
    sections = [
        page.heading(
            title,
            f"{A.shape[0]:,} vertices, {A.nnz:,} entries; method {by}{seconds}.",
            level=1,
        ),
        page.cards(
            [
                page.figure(spy(matrix, CELLS).markup(), words, when)
                for when, matrix, words in (
                    ("Before", A, "The entries as they came."),
                    ("After", B, "The same entries in the new order."),
                )
            ],
            "pair",
        ),
        page.heading("Measures"),
        _measures(asdict(found.before), asdict(found.after)),
        page.heading(
            "Jumps between neighbours",
            "How many gaps between consecutive neighbours of a vertex have each number of bits. "
            "The further to the left, the nearer lie the values that a vertex reads.",
        ),
        page.figure(gap_bits(A, B).markup(), "Outlined: before. Filled: after."),
    ]
    if "tried" in found.counters:
        tried = found.counters["tried"]
        rows = [(one, f"{bits:,.0f}") for one, bits in sorted(tried.items(), key=lambda t: t[1])]
        sections += [
            page.heading("Tried on a part of the graph"),
            page.table(("method", "log gap"), rows, numbers=(1,)),
        ]
    return page.page(title, sections)


def _measures(before: dict[str, float], after: dict[str, float]) -> str:
    rows = [
        (
            name.replace("_", " "), f"{value:,.0f}", f"{after[name]:,.0f}",
            f"{value / after[name]:.3g}" if after[name] else "", WORDS[name],
        )
        for name, value in before.items()
    ]  # fmt: skip
    return page.table(("", "before", "after", "ratio", ""), rows, numbers=(1, 2, 3))


def gap_bits(A: Any, B: Any) -> Svg:
    """Gaps by the number of their bits, before and after."""
    counts = [_bits(matrix) for matrix in (A, B)]
    last = max(int(np.flatnonzero(both).max(initial=0)) for both in counts) + 1
    most = max(int(both.max(initial=0)) for both in counts) or 1
    picture = Svg(440, 220, "gaps by their bits")
    wide = 400 / max(last, 8)
    for both, color in zip(counts, (SECOND, MAIN), strict=True):
        heights = 160 * both[:last] / most
        if color == MAIN:
            boxes = [(22 + wide * k, 180 - h, wide - 4, h) for k, h in enumerate(heights.tolist())]
            picture.boxes([box for box in boxes if box[3] > 0], color=color, opacity=0.75)
            continue
        for k, h in enumerate(heights.tolist()):
            left, right = 21 + wide * k, 19 + wide * (k + 1)
            corners = [(left, 180.0), (left, 180 - h), (right, 180 - h), (right, 180.0)]
            picture.line(np.array(corners), color=color, width=1.5)
    for k in range(0, last, max(1, last // 10)):
        picture.text(20 + wide * (k + 0.5), 197, str(k), anchor="middle", color=QUIET)
    picture.text(220, 214, "bits of a gap", anchor="middle")
    picture.text(20, 14, f"most: {most:,}", color=QUIET)
    return picture


def _bits(A: Any) -> Any:
    """How many gaps have 0, 1, ... bits."""
    view = matchwood.graph(A).undirected_pattern()
    gaps = np.diff(view.indices.astype(np.int64))
    inside = np.ones(gaps.size, bool)
    starts = view.indptr[1:-1]
    inside[starts[(starts > 0) & (starts <= gaps.size)] - 1] = False
    bits = np.log2(np.maximum(gaps[inside], 1)).astype(np.int64)
    return np.bincount(np.minimum(bits, BITS), minlength=BITS + 1)

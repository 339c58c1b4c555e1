"""The drawings of the demo: a graph on points, the pattern of a matrix, distributions, ratios.

All take plain arrays and return an `Svg`; none computes an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood.report import svg
from matchwood.report.svg import FAINT, INK, MAIN, SECOND, Svg

Array = np.ndarray[Any, Any]

SIDE = 360  # units; the width of every square picture
LEGEND = 28  # units below a drawing on points
MARGIN = 12  # units
SHADES = 6  # steps of opacity in `spy`; few of them keep the file small


def placed(points: Array) -> Array:
    """Points of any range scaled into the picture, y upwards as in a plot."""
    low = points.min(axis=0)
    span = float((points.max(axis=0) - low).max()) or 1.0
    unit = (points - low) / span
    inside = SIDE - 2 * MARGIN
    return np.column_stack((MARGIN + unit[:, 0] * inside, SIDE - MARGIN - unit[:, 1] * inside))


def upper_edges(A: Any) -> tuple[Array, Array]:
    """Each undirected edge of a sparse matrix once, u < v."""
    coo = A.tocoo()
    keep = coo.row < coo.col
    return np.asarray(coo.row[keep]), np.asarray(coo.col[keep])


def on_points(points: Array, A: Any, title: str) -> tuple[Svg, Array]:
    """A picture with the edges of a graph, faint, and the places of its vertices."""
    picture = Svg(SIDE, SIDE + LEGEND, title)
    at = placed(points)
    u, v = upper_edges(A)
    picture.segments(at[u], at[v], color=FAINT, width=0.5, opacity=0.45)
    return picture, at


def mesh_levels(points: Array, A: Any, level: Array, parent: Array) -> Svg:
    """Vertices and tree edges in the colour of their level; other edges faint."""
    picture, at = on_points(points, A, "breadth-first levels")
    reached = np.flatnonzero(level >= 0)
    step, shades = svg.steps(level[reached])
    for k, shade in enumerate(shades):
        mine = reached[step == k]
        children = mine[parent[mine] != mine]
        children = children[parent[children] >= 0]
        picture.segments(at[children], at[parent[children]], color=shade, width=1.3)
        picture.dots(at[mine], color=shade, radius=1.9)
    sources = np.flatnonzero(level == 0)
    picture.dots(at[sources], color=svg.CATEGORIES[3], radius=5)
    deepest = int(level.max()) if level.size else 0
    _ramp_legend(picture, SIDE + 8, shades, "level 0", f"level {deepest}")
    return picture


def _ramp_legend(picture: Svg, y: float, shades: Sequence[str], first: str, last: str) -> None:
    left, right = 70.0, SIDE - 70.0
    each = (right - left) / len(shades)
    for k, shade in enumerate(shades):
        picture.boxes([(left + k * each, y, each + 0.3, 9)], color=shade)
    picture.text(left - 6, y + 9, first, anchor="end")
    picture.text(right + 6, y + 9, last)


def coloured_parts(points: Array, A: Any, label: Array, title: str = "components") -> Svg:
    """Vertices and edges in the colour of their part; the eight largest parts stand out."""
    picture = Svg(SIDE, SIDE + LEGEND, title)
    at = placed(points)
    u, v = upper_edges(A)
    sizes = np.bincount(label)
    order = np.argsort(-sizes, kind="stable")
    named = order[: len(svg.CATEGORIES)]
    shown = np.isin(label, named)
    rest_edges = ~shown[u]
    picture.segments(at[u[rest_edges]], at[v[rest_edges]], color=FAINT, width=0.8)
    picture.dots(at[~shown], color=FAINT, radius=1.3)
    for k, part in enumerate(named.tolist()):
        mine = label[u] == part
        picture.segments(at[u[mine]], at[v[mine]], color=svg.CATEGORIES[k], width=0.9)
        picture.dots(at[label == part], color=svg.CATEGORIES[k], radius=1.9)
    picture.text(
        SIDE / 2,
        SIDE + 16,
        f"{sizes.size} parts; largest {', '.join(str(size) for size in sizes[named[:5]].tolist())}",
        anchor="middle",
    )
    return picture


def matched_edges(points: Array, A: Any, mate: Array) -> Svg:
    """Matched edges and their ends in colour; free vertices stand out."""
    picture, at = on_points(points, A, "matching")
    ends = np.flatnonzero(mate > np.arange(mate.size))
    picture.segments(at[ends], at[mate[ends]], color=MAIN, width=2.2)
    picture.dots(at[mate >= 0], color=MAIN, radius=1.9)
    picture.dots(at[mate < 0], color=svg.CATEGORIES[3], radius=2.6)
    text = f"{ends.size} edges, {int((mate < 0).sum())} vertices free"
    picture.text(SIDE / 2, SIDE + 16, text, anchor="middle")
    return picture


def spy(A: Any, cells: int = 60, title: str = "where the entries are") -> Svg:
    """The pattern of a matrix in coarse cells: the darker a cell, the more entries lie in it.

    Shades run from the least to the largest count of a cell that has any entries, so entries spread
    at random look speckled.
    """
    side = 200.0
    picture = Svg(side, side, title)
    rows, cols = A.shape
    cells = max(1, min(cells, rows, cols))
    coo = A.tocoo()
    place = (coo.row.astype(np.int64) * cells // rows) * cells + (
        coo.col.astype(np.int64) * cells // cols
    )
    count = np.bincount(place, minlength=cells * cells)
    frame = [(1.0, 1.0, side - 2, side - 2)]
    picture.boxes(frame, color=FAINT, opacity=0.12)
    filled = np.flatnonzero(count)
    if filled.size:
        shade = np.log(count[filled])
        span = float(shade.max() - shade.min())
        depth = np.full(filled.size, SHADES - 1)
        if span > 0:
            depth = ((shade - shade.min()) / span * (SHADES - 1)).round().astype(int)
        each = (side - 2) / cells
        for k in range(SHADES):
            boxes = [
                (1 + (p % cells) * each, 1 + (p // cells) * each, each, each)
                for p in filled[depth == k].tolist()
            ]
            picture.boxes(boxes, color=MAIN, opacity=0.25 + 0.75 * k / (SHADES - 1))
    return picture


def distribution(
    values: Array, across: str, up: str, title: str, width: float = 300, height: float = 200
) -> Svg:
    """How many of the positive integers `values` are 1, 2, 3, ...; both axes logarithmic."""
    picture = Svg(width, height, title)
    count = np.bincount(values)
    x = np.flatnonzero(count)
    y = count[x]
    positive = x > 0
    x, y = x[positive], y[positive]
    left, right, top, bottom = 40.0, width - 10, 10.0, height - 30
    picture.line(np.array([(left, top), (left, bottom), (right, bottom)]), color=FAINT, width=1)
    picture.text((left + right) / 2, height - 4, across, anchor="middle")
    picture.text(11, (top + bottom) / 2, up, anchor="middle", turned=True)
    if x.size == 0:
        return picture
    place_x = _log_axis(picture, x, left + 8, right - 8, bottom, vertical=False)
    place_y = _log_axis(picture, y, bottom - 6, top + 4, left, vertical=True)
    at = np.column_stack((place_x(x), place_y(y)))
    radius = 3.5 if x.size < 40 else 2.4 if x.size < 200 else 1.7
    picture.dots(at, color=MAIN, radius=radius, opacity=0.8)
    return picture


def _log_axis(
    picture: Svg, values: Array, start: float, end: float, edge: float, *, vertical: bool
) -> Any:
    """Label the powers of ten (or the two ends) along an axis; returns value -> position."""
    low, high = float(values.min()), float(values.max())
    span = np.log10(high / low) or 1.0

    def place(value: Any) -> Any:
        return start + (end - start) * np.log10(np.asarray(value) / low) / span

    powers = [10.0**k for k in range(13) if low <= 10.0**k <= high]
    ticks = powers if len(powers) >= 2 else sorted({low, high})
    for tick in ticks:
        p, words = float(place(tick)), _compact(tick)
        if vertical:
            picture.text(edge - 4, p + 4, words, size=9, anchor="end")
        else:
            picture.text(p, edge + 12, words, size=9, anchor="middle")
    return place


def _compact(value: float) -> str:
    """1000 -> 1k, 2000000 -> 2M; small numbers as they are."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.3g}"


def level_sizes(level: Array) -> Svg:
    """One bar for each level of a search, as high as the level is large."""
    height = SIDE + LEGEND
    picture = Svg(SIDE, height, "vertices in each level")
    left, right, top, bottom = 44.0, SIDE - 10, 14.0, height - 30
    sizes = np.bincount(level[level >= 0])
    picture.line(np.array([(left, top), (left, bottom), (right, bottom)]), color=FAINT, width=1)
    picture.text((left + right) / 2, height - 4, "level", anchor="middle")
    picture.text(11, (top + bottom) / 2, "vertices", anchor="middle", turned=True)
    each = (right - left) / sizes.size
    highest = float(sizes.max())
    step, shades = svg.steps(np.arange(sizes.size))
    boxes: list[list[tuple[float, float, float, float]]] = [[] for _ in shades]
    for k, size in enumerate(sizes.tolist()):
        tall = (bottom - top) * size / highest
        boxes[step[k]].append((left + k * each, bottom - tall, max(0.3, each * 0.86), tall))
    for shade, mine in zip(shades, boxes, strict=True):
        picture.boxes(mine, color=shade)
    picture.text(left - 4, top + 4, _compact(highest), size=9, anchor="end")
    picture.text(left, bottom + 12, "0", size=9, anchor="middle")
    picture.text(right, bottom + 12, str(sizes.size - 1), size=9, anchor="end")
    return picture


def ratios(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]], title: str) -> Svg:
    """Bars of "times as fast as SciPy": a group for each problem, a bar for each graph.

    A line at 1 is where both take the same time.  The axis is logarithmic, so that twice as fast
    and half as fast are equally long.
    """
    bars = sum(len(group) for _, group in rows)
    bar, gap, left, width = 17.0, 26.0, 190.0, 640.0
    height = bars * bar + len(rows) * gap + 26
    picture = Svg(width, height, title)
    values = [value for _, group in rows for _, value in group] or [1.0]
    low, high = min(0.5, *values), max(2.0, *values) * 1.25
    span = np.log(high / low)

    def across(value: float) -> float:
        return left + (width - left - 40) * float(np.log(value / low) / span)

    for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500):
        if low <= tick <= high:
            x = across(tick)
            mark = np.array([(x, 4.0), (x, height - 20)])
            picture.line(mark, color=INK if tick == 1 else FAINT, width=1.2 if tick == 1 else 0.4)
            picture.text(x, height - 6, f"{tick:g}x", size=10, anchor="middle")
    y = 4.0
    for k, (problem, group) in enumerate(rows):
        picture.text(2, y + 14, problem, size=12)
        y += gap - 6
        for name, value in group:
            x, one = across(value), across(1.0)
            picture.boxes(
                [(min(x, one), y + 2, abs(x - one), bar - 5)],
                color=(MAIN, SECOND)[k % 2],
            )
            picture.text(left - 8, y + 11.5, name, size=10.5, anchor="end")
            picture.text(max(x, one) + 4, y + 11.5, f"{value:.1f}x", size=10)
            y += bar
        y += 6
    return picture

"""Pictures of traffic: quantities over windows, histograms on two logarithmic axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood.report.drawings.svg import FAINT, INK, MAIN, SECOND, Svg

Array = np.ndarray[Any, Any]

WIDTH, HEIGHT = 420, 240
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 34  # of the frame
POINTS = 400  # of a curve: more windows are shown by the largest of each stretch


def over_windows(values: Any) -> Svg:
    """A quantity of each window, from 0 up."""
    values = np.asarray(values, np.float64)
    picture = Svg(WIDTH, HEIGHT, "a quantity of each window")
    most = float(values.max(initial=0)) or 1.0
    top = _round_up(most)
    _frame(picture)
    for part in (0, 0.5, 1):
        y = _down(part)
        picture.text(LEFT - 6, y + 4, f"{part * top:,.4g}", anchor="end", color=FAINT)
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
    picture.text(LEFT, HEIGHT - 16, "0", color=FAINT)
    picture.text(WIDTH - RIGHT, HEIGHT - 16, f"{last:,}", anchor="end", color=FAINT)
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
        picture.text(x, HEIGHT - 18, _power(power), anchor="middle", color=FAINT)
    for power in range(0, low - 1, -max(1, -low // 4)):
        y = _down(1 - power / low)
        picture.text(LEFT - 6, float(y) + 4, _power(power), anchor="end", color=FAINT)
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
    """From 0..1 of the frame's height to a place."""
    return HEIGHT - BOTTOM - np.asarray(part) * (HEIGHT - BOTTOM - TOP)


def _round_up(value: float) -> float:
    """The next number with one or two digits: 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power."""
    scale = 10.0 ** math.floor(math.log10(value))
    return next(scale * k for k in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if scale * k >= value)

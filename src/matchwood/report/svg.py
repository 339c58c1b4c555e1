"""A small writer of SVG, enough for meshes, scatter plots, bars and axes, without matplotlib.

Everything of one colour goes into one path, so that a mesh of ten thousand edges stays a small
file.  Colours of text and axes are CSS variables with a fallback, so that a picture inside a page
follows the page's light or dark theme, and one on its own is readable too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

INK = "var(--ink, #445)"
FAINT = "var(--faint, #99a)"  # of lines
QUIET = "var(--quiet, #667)"  # of text
MAIN = "var(--main, #0b74b8)"
SECOND = "var(--second, #0a9468)"


class Svg:
    """A picture of `width` x `height` units; x grows to the right, y downwards."""

    def __init__(self, width: float, height: float, title: str = "") -> None:
        self.width = width
        self.height = height
        self.title = title
        self._parts: list[str] = []

    def segments(
        self, start: Array, end: Array, *, color: str = FAINT, width: float = 1, opacity: float = 1
    ) -> None:
        """Straight lines from ``start[k]`` to ``end[k]``, both (m, 2)."""
        if len(start) == 0:
            return
        path = "".join(
            f"M{_short(x)} {_short(y)}L{_short(u)} {_short(v)}"
            for (x, y), (u, v) in zip(start.tolist(), end.tolist(), strict=True)
        )
        self._path(path, color, width, opacity)

    def dots(self, at: Array, *, color: str = INK, radius: float = 2, opacity: float = 1) -> None:
        """Filled circles at the (m, 2) points `at`: a path of lines without length, round ends."""
        if len(at) == 0:
            return
        path = "".join(f"M{_short(x)} {_short(y)}h0" for x, y in at.tolist())
        self._path(path, color, 2 * radius, opacity, cap="round")

    def line(self, points: Array, *, color: str = INK, width: float = 1.5) -> None:
        """One line through the (m, 2) points."""
        if len(points) == 0:
            return
        path = "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in points.tolist())
        self._path(path, color, width, 1)

    def boxes(self, boxes: Iterable[Sequence[float]], *, color: str, opacity: float = 1) -> None:
        """Filled rectangles (x, y, width, height)."""
        path = "".join(
            f"M{_short(x)} {_short(y)}h{_short(w)}v{_short(h)}h{_short(-w)}z"
            for x, y, w, h in boxes
        )
        if path:
            self._parts.append(f'<path d="{path}" fill="{color}"{_opacity(opacity)}/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 11,
        anchor: str = "start",
        color: str = INK,
        turned: bool = False,
    ) -> None:
        """A line of text whose baseline starts, centres or ends (`anchor`) at x, y."""
        turn = f' transform="rotate(-90 {_short(x)} {_short(y)})"' if turned else ""
        self._parts.append(
            f'<text x="{_short(x)}" y="{_short(y)}" font-size="{_short(size)}" '
            f'text-anchor="{anchor}" fill="{color}"{turn}>{escape(words)}</text>'
        )

    def markup(self) -> str:
        """The picture as one <svg> element, to put into a page."""
        title = f"<title>{escape(self.title)}</title>" if self.title else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {_short(self.width)} {_short(self.height)}" '
            f'font-family="system-ui, sans-serif">{title}{"".join(self._parts)}</svg>'
        )

    def save(self, path: str | Path) -> None:
        """Write the picture as a file of its own, all of it or nothing."""
        from matchwood.io.files import replacing

        with replacing(path) as stream:
            stream.write((self.markup() + "\n").encode())

    def _path(self, path: str, color: str, width: float, opacity: float, cap: str = "butt") -> None:
        ends = f' stroke-linecap="{cap}"' if cap != "butt" else ""
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{color}" '
            f'stroke-width="{_short(width)}"{ends}{_opacity(opacity)}/>'
        )


def _opacity(opacity: float) -> str:
    return "" if opacity >= 1 else f' opacity="{_short(opacity)}"'


def _short(value: float) -> str:
    """A number with at most two decimals and no trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# Colours that are readable on light and on dark ground


# From deep blue over green to yellow, evenly spaced in lightness, so that order is visible
# without colour vision too.
_RAMP = np.array(
    [(82, 62, 158), (62, 96, 172), (34, 122, 168), (30, 157, 160), (58, 188, 132), (138, 212, 92),
     (226, 226, 72)],
    dtype=float,
)  # fmt: skip

# Eight colours that stay apart for the common kinds of colour blindness (Okabe and Ito 2008,
# with the black one replaced, which would vanish on dark ground).
CATEGORIES = (
    "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#0072b2", "#b8a800", "#8c6bb1",
)  # fmt: skip


def ramp(position: float) -> str:
    """Colour at `position` in 0..1 of the ramp from dark to light."""
    place = float(np.clip(position, 0, 1)) * (len(_RAMP) - 1)
    low = min(int(place), len(_RAMP) - 2)
    mixed = _RAMP[low] + (place - low) * (_RAMP[low + 1] - _RAMP[low])
    red, green, blue = (round(float(part)) for part in mixed)
    return f"#{red:02x}{green:02x}{blue:02x}"


def steps(values: Any, count: int = 24) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Sort `values` into at most `count` steps from least to largest; a colour for each step."""
    values = np.asarray(values, dtype=float)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    count = max(1, min(count, int(high - low) + 1))
    scaled = (values - low) / (high - low if high > low else 1.0)
    step = np.minimum((scaled * count).astype(int), count - 1)
    return step, [ramp(k / max(1, count - 1)) for k in range(count)]

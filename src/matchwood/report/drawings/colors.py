"""Two sets of colours that are readable on light and on dark ground."""

from __future__ import annotations

from typing import Any

import numpy as np

# From deep blue over green to yellow, evenly spaced in lightness, so that order is visible
# without colour vision too.
_RAMP = np.array(
    [
        (82, 62, 158),
        (62, 96, 172),
        (34, 122, 168),
        (30, 157, 160),
        (58, 188, 132),
        (138, 212, 92),
        (226, 226, 72),
    ],
    dtype=float,
)

# Eight colours that stay apart for the common kinds of colour blindness (Okabe and Ito 2008,
# with the black one replaced, which would vanish on dark ground).
CATEGORIES = (
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#0072b2",
    "#b8a800",
    "#8c6bb1",
)


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

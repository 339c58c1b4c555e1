"""A matrix and its mirror in one: of two values the one that counts is kept."""

from __future__ import annotations

from typing import Any

from matchwood.primitives.symmetrize import cpu as symmetrize


def merge(view: Any, mirror: Any, maximum: bool) -> tuple[Any, Any, Any]:
    """The union of both without the diagonal; of two values the lighter, or the heavier."""
    how = symmetrize.GREATEST if maximum else symmetrize.LEAST
    return symmetrize.merge(view, mirror, how)

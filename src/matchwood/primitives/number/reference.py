"""Roots numbered one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np


def number_roots(root: Any) -> tuple[int, Any]:
    """How many roots there are, and for each vertex how many come before its root."""
    roots = [v for v in range(len(root)) if root[v] == v]
    number = {v: i for i, v in enumerate(roots)}
    return len(roots), np.array([number[int(v)] for v in root], root.dtype)


def number_labels(labels: Any, *, threads: int | None = None) -> tuple[int, Any]:
    numbers: dict[int, int] = {}
    found = [numbers.setdefault(int(c), len(numbers)) for c in labels]
    return len(numbers), np.array(found, labels.dtype)

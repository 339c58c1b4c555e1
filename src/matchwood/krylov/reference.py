"""Flexible conjugate gradients as Notay defines them, with dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def fcg(A: Array, b: Array, M: Any, steps: int) -> Array:
    """The vector that `steps` iterations from 0 lead to; `M` is a function of the residual."""
    x, r = np.zeros_like(b), b.copy()
    p: Any = None
    for _ in range(steps):
        z = M(r)
        p = z if p is None else z - (z @ (A @ p)) / (p @ (A @ p)) * p
        step = (p @ r) / (p @ (A @ p))
        x, r = x + step * p, r - step * (A @ p)
    return x

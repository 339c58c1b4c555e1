"""The definition: ../reference.py, whose equations may come from blocks."""

from __future__ import annotations

from matchwood.tridiagonal.reference import solve

__all__ = ["solve"]

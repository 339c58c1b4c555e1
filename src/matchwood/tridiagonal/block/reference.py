"""The definition: ../plain/reference.py, whose equations may come from blocks."""

from __future__ import annotations

from matchwood.tridiagonal.plain.reference import solve

__all__ = ["solve"]

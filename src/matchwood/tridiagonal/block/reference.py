"""The definition: ../plain/reference.py, which also takes blocks."""

from __future__ import annotations

from matchwood.tridiagonal.plain.reference import solve

__all__ = ["solve"]

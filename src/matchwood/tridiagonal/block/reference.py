"""The definition: ../definition.py, whose equations may come from blocks."""

from __future__ import annotations

from matchwood.tridiagonal.definition import solve

__all__ = ["solve"]

"""The definition: ../definition.py."""

from __future__ import annotations

from matchwood.tridiagonal.definition import solve

__all__ = ["solve"]

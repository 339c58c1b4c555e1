"""The scans of scans.py, on arrays of CuPy."""

from __future__ import annotations

from matchwood.forests.doubling.scans import forest as forest

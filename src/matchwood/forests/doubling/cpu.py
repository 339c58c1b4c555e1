"""The scans of scans.py, on arrays of NumPy."""

from __future__ import annotations

from matchwood.forests.doubling.scans import forest as forest

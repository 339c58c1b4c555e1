"""The pairs of a join by (left, right), with their scores.  Read on in cpu.py, reference.py.

An engine finds pairs in the order in which its members come to them; those of the GPU are sorted by
CPU threads too.  A pair's key is
``left << shift | right``: to sort by it is to sort by both rows.
"""

from __future__ import annotations

__all__ = ["shift_of"]


def shift_of(columns: int) -> int:
    """Bits of a key that the row on the right takes, of so many rows there."""
    return max(columns - 1, 1).bit_length()

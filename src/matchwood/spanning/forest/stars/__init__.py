"""Awerbuch's and Shiloach's method: trees of height one ("stars") hook along their first edge.

Between two rounds of hooks every parent becomes the grandparent, so trees grow flat.  No list of
edges is needed: a round is a product of the matrix with the vector of parents.  The papers: [3] and
[4] in ../__init__.py.
"""

from __future__ import annotations


def round_limit(n: int) -> int:
    """A bound on the rounds: only a pattern that is not symmetric takes more."""
    return 2 * n.bit_length() + 8

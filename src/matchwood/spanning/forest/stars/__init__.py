"""Awerbuch's and Shiloach's method: trees of height one ("stars") hook along their first edge.

Between two rounds of hooks every parent becomes the grandparent, so trees grow flat.  No list of
edges is needed: a round is a product of the matrix with the vector of parents.

B. Awerbuch, Y. Shiloach. New connectivity and MSF algorithms for shuffle-exchange network and PRAM.
IEEE Trans. Comput. C-36(10), 1987.
T. Baer, R. Kanakagiri, E. Solomonik. Parallel minimum spanning forest computation using sparse
matrix kernels. SIAM PP 2022.
"""

from __future__ import annotations


def round_limit(n: int) -> int:
    """A bound on the rounds: only a pattern that is not symmetric takes more."""
    return 2 * n.bit_length() + 8

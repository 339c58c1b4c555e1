"""Orders of the vertices: where the entries of a matrix lie.

    reverse_cuthill_mckee     entries near the diagonal; for solvers and for caches
    cuthill_mckee             the same, not reversed
    pseudo_peripheral_vertex  a vertex at the rim, where such an order starts

    permute                   the matrix in another order
    bandwidth, profile, max_wavefront, rms_wavefront    how good an order is

    is_rcm_order, check_rcm_order     is this the order that the definition asks for?

Everywhere ``perm[new] = old`` and ``place[old] = new``.
"""

from matchwood.ordering.measure import (
    Measures,
    bandwidth,
    max_wavefront,
    measures,
    profile,
    rms_wavefront,
)
from matchwood.ordering.permutation import permute
from matchwood.ordering.rcm import (
    Ordering,
    cuthill_mckee,
    pseudo_peripheral_vertex,
    reverse_cuthill_mckee,
)
from matchwood.ordering.rcm.check import check_rcm_order, is_rcm_order

__all__ = [
    "Measures",
    "Ordering",
    "bandwidth",
    "check_rcm_order",
    "cuthill_mckee",
    "is_rcm_order",
    "max_wavefront",
    "measures",
    "permute",
    "profile",
    "pseudo_peripheral_vertex",
    "reverse_cuthill_mckee",
    "rms_wavefront",
]

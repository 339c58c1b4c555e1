"""Orders of the vertices: where the entries of a matrix lie.

    reverse_cuthill_mckee     entries near the diagonal; for solvers and for caches
    cuthill_mckee             the same, not reversed
    rcm_ordering              both, with measures, counters and times
    pseudo_peripheral_vertex  a vertex at the rim, where such an order starts

    permute                   the matrix in another order
    order_measures            how good an order is, in four numbers; one at a time:
    bandwidth, matrix_profile, max_wavefront, rms_wavefront

    is_rcm_order, check_rcm_order     is this the order that the definition asks for?

Everywhere ``perm[new] = old`` and ``place[old] = new``.
"""

from matchwood._lazy import old_names
from matchwood.ordering.measure import (
    Measures,
    bandwidth,
    matrix_profile,
    max_wavefront,
    order_measures,
    rms_wavefront,
)
from matchwood.ordering.permutation import permute
from matchwood.ordering.rcm import (
    Ordering,
    cuthill_mckee,
    pseudo_peripheral_vertex,
    rcm_ordering,
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
    "matrix_profile",
    "max_wavefront",
    "order_measures",
    "permute",
    "pseudo_peripheral_vertex",
    "rcm_ordering",
    "reverse_cuthill_mckee",
    "rms_wavefront",
]

# names of the last release: they still work, with a DeprecationWarning
__getattr__ = old_names(__name__, {"measures": "order_measures", "profile": "matrix_profile"})

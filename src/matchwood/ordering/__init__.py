"""Orders of the vertices: where the entries of a matrix lie.

    reverse_cuthill_mckee     entries near the diagonal; for solvers and for caches
    cuthill_mckee             the same, not reversed
    rcm_ordering              both, with measures, counters and times
    pseudo_peripheral_vertex  a vertex at the edge of the graph, where such an order starts

    rabbit_order              communities within communities lie together
    shingle_order             vertices with common neighbours lie together
    layered_label_propagation_order     labels at many resolutions
    degree_order, hub_order   vertices of large degree first
    refine_order              an order made better by swaps
    locality_ordering         any of these by its name, with gaps before and after

    nested_dissection         little fill: separators are eliminated last
    minimum_degree            little fill: the fewest neighbours first
    elimination_order         the better of both
    fill, elimination_tree    what elimination in an order costs

    permute                   the matrix in another order
    order_measures            how good an order is, in four numbers; one at a time:
    bandwidth, matrix_profile, max_wavefront, rms_wavefront

    gaps                      how far apart neighbours lie, in four numbers; one at a time:
    linear_arrangement, log_arrangement, linear_gap, log_gap

    is_rcm_order, check_rcm_order     is this the order that the definition asks for?

Everywhere ``perm[new] = old`` and ``place[old] = new``.
"""

from matchwood._lazy import old_names
from matchwood.ordering.degree import degree_order, hub_order
from matchwood.ordering.dissection import (
    Dissection,
    EliminationOrder,
    elimination_order,
    nested_dissection,
)
from matchwood.ordering.elimination import Fill, elimination_tree, fill
from matchwood.ordering.gap import (
    Gaps,
    gaps,
    linear_arrangement,
    linear_gap,
    log_arrangement,
    log_gap,
)
from matchwood.ordering.llp import Layers, layered_label_propagation_order
from matchwood.ordering.locality import LocalityOrdering, locality_ordering
from matchwood.ordering.measure import (
    Measures,
    bandwidth,
    matrix_profile,
    max_wavefront,
    order_measures,
    rms_wavefront,
)
from matchwood.ordering.minimum_degree import minimum_degree
from matchwood.ordering.permutation import permute
from matchwood.ordering.rabbit import JoinTree, rabbit_order
from matchwood.ordering.rcm import (
    Ordering,
    cuthill_mckee,
    pseudo_peripheral_vertex,
    rcm_ordering,
    reverse_cuthill_mckee,
)
from matchwood.ordering.rcm.check import check_rcm_order, is_rcm_order
from matchwood.ordering.refine import Refinement, refine_order
from matchwood.ordering.shingle import shingle_order

__all__ = [
    "Dissection",
    "EliminationOrder",
    "Fill",
    "Gaps",
    "JoinTree",
    "Layers",
    "LocalityOrdering",
    "Measures",
    "Ordering",
    "Refinement",
    "bandwidth",
    "check_rcm_order",
    "cuthill_mckee",
    "degree_order",
    "elimination_order",
    "elimination_tree",
    "fill",
    "gaps",
    "hub_order",
    "is_rcm_order",
    "layered_label_propagation_order",
    "linear_arrangement",
    "linear_gap",
    "locality_ordering",
    "log_arrangement",
    "log_gap",
    "matrix_profile",
    "max_wavefront",
    "minimum_degree",
    "nested_dissection",
    "order_measures",
    "permute",
    "pseudo_peripheral_vertex",
    "rabbit_order",
    "rcm_ordering",
    "refine_order",
    "reverse_cuthill_mckee",
    "rms_wavefront",
    "shingle_order",
]

# Names of the last release still work, with a DeprecationWarning
__getattr__ = old_names(__name__, {"measures": "order_measures", "profile": "matrix_profile"})

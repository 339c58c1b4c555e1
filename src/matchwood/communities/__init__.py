"""Groups of vertices that are tied to each other more than to the rest.

louvain              communities of high modularity, by moving vertices and contracting
leiden               the same with parts that are well connected; better and slower
label_propagation    each vertex takes the heaviest label around it; the fastest
modularity           how good communities are

is_communities, is_label_propagation
                     is this answer right?
"""

from matchwood.communities.louvain_leiden import leiden, louvain
from matchwood.communities.louvain_leiden.check import is_communities
from matchwood.communities.propagation import label_propagation
from matchwood.communities.propagation.check import is_label_propagation
from matchwood.communities.quality import modularity
from matchwood.communities.result import Communities

__all__ = [
    "Communities",
    "is_communities",
    "is_label_propagation",
    "label_propagation",
    "leiden",
    "louvain",
    "modularity",
]

"""Graphs cut into parts.

partition                 blocks of bounded weight with few edges between them
refine_partition          the same from blocks that exist already: never worse
vertex_separator          few vertices between two halves
minimum_vertex_cover      fewest vertices that touch every edge of a bipartite graph

is_partition              is this answer right?
"""

from matchwood.partitioning.cover import Cover, minimum_vertex_cover
from matchwood.partitioning.kway import partition, refine_partition
from matchwood.partitioning.kway.check import is_partition
from matchwood.partitioning.kway.result import Partition
from matchwood.partitioning.separator import vertex_separator

__all__ = [
    "Cover",
    "Partition",
    "is_partition",
    "minimum_vertex_cover",
    "partition",
    "refine_partition",
    "vertex_separator",
]

"""Walking through a graph from given vertices.

bfs       levels and parents by breadth-first search, from one vertex or from many
is_bfs    are these the levels and parents?
"""

from matchwood.traversal.breadth_first import BFS, bfs
from matchwood.traversal.breadth_first.check import is_bfs

__all__ = ["BFS", "bfs", "is_bfs"]

"""Walking through a graph from given vertices.

bfs    levels and parents by breadth-first search, from one vertex or from many
"""

from matchwood.traversal.breadth_first import BFS, bfs

__all__ = ["BFS", "bfs"]

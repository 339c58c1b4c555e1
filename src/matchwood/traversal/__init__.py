"""Walking through a graph from given vertices, and up its trees.

bfs                levels and parents by breadth-first search, from one vertex or from many
forest_roots       the root of every vertex of a forest, by pointer jumping

is_bfs, is_forest_roots
                   is this answer right?
"""

from matchwood.traversal.breadth_first import BFS, bfs
from matchwood.traversal.breadth_first.check import is_bfs
from matchwood.traversal.pointer_jumping import forest_roots
from matchwood.traversal.pointer_jumping.check import is_forest_roots

__all__ = ["BFS", "bfs", "forest_roots", "is_bfs", "is_forest_roots"]

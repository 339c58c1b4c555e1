"""Spanning trees of least total weight.

minimum_spanning_forest    the lightest edges that join each connected component; or the heaviest
is_spanning_forest         are these the edges?
"""

from matchwood.spanning.forest import Forest, minimum_spanning_forest
from matchwood.spanning.forest.check import is_spanning_forest

__all__ = ["Forest", "is_spanning_forest", "minimum_spanning_forest"]

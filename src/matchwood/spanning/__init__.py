"""Trees that join all that can be joined, as light as possible.

minimum_spanning_forest    the lightest edges that join each connected component; or the heaviest
"""

from matchwood.spanning.forest import Forest, minimum_spanning_forest

__all__ = ["Forest", "minimum_spanning_forest"]

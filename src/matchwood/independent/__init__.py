"""Which vertices can be taken together, no two of them neighbours.

maximal_independent_set    one to which no vertex can be added
"""

from matchwood.independent.maximal import maximal_independent_set

__all__ = ["maximal_independent_set"]

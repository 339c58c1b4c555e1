"""Which vertices can be taken together, no two of them neighbours.

maximal_independent_set       one to which no vertex can be added
is_maximal_independent_set    is it one?
"""

from matchwood.independent.maximal import maximal_independent_set
from matchwood.independent.maximal.check import is_maximal_independent_set

__all__ = ["is_maximal_independent_set", "maximal_independent_set"]

"""Matching in one pass over the edges.  Read on in reference.py, check.py, cpu.py.

Every vertex has a potential.  An edge that is heavier than the potentials of its ends together is
pushed onto a stack, and raises them; any other edge is dropped.  At the end the edges are popped
from the stack, and each whose ends are both free is taken.  The exact rule, its bound and the
papers: `streaming_matching` (matching/weighted.py).
"""

EPSILON = 0.05  # the default: keeps a few edges per vertex (bench/matching/weighted.py)

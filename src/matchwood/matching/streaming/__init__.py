"""Matching in one pass over the edges.  Read on in reference.py, check.py, cpu.py.

Every vertex has a potential.  An edge that is heavier than the potentials of its ends allow is put
on a stack, and raises them; any other is forgotten.  In the end the stack is unwound, and an edge
taken whose ends are free.  The rule, its bound and the papers: `streaming_matching`
(matching/streamed.py).
"""

EPSILON = 0.05  # the default: memory of a few edges a vertex (bench/matching/weighted.py)

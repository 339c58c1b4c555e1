"""Vertices in random order: each takes its heaviest free neighbour.  See reference.py, cpu.py.

Algorithm 1 of Fagginger Auer and Bisseling with weights.  The order of vertices is that of
hash2(v, 0, seed); of edges, that of primitives/edge_order.  `maximal_matching` with
``method="serial", weighted=True`` is the same.  A vertex depends on all before it, so only the
order is computed by several threads.
"""

"""Locally dominant matching: pointing and matching.  Read on in reference.py, check.py, cpu.py.

An edge that comes before all edges it shares an end with, in the order of primitives/edge_order,
is in the greedy matching.  Each free vertex points along its first edge to a free neighbour; two
vertices that point at each other have found such an edge.  They are matched, and the vertices that
pointed at them point again.
"""

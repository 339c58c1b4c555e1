"""Suitor matching: proposals with displacement.  Read on in reference.py, check.py, cpu.py.

Each vertex proposes along its first edge, in the order of primitives/edge_order, that comes before
the best proposal that the other end has.  A vertex whose proposal is replaced proposes again.  When
no vertex has anything left to propose, proposals are mutual, and they are the greedy matching.
"""

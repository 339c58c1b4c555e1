"""Suitor matching: proposals with displacement.  Read on in reference.py, check.py, cpu.py.

Each vertex proposes along its first edge, in the order of primitives/edge_order, that beats the
offer its other end holds; who is displaced proposes anew.  When nobody has anything to propose,
offers are mutual, and they are the greedy matching.
"""

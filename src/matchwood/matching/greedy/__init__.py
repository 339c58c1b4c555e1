"""Greedy matching: edges from the heaviest to the lightest.  See reference.py, check.py, cpu.py.

Take each edge, in the order of primitives/edge_order, whose ends are both free.  The dominant and
the suitor method find the same matching in other ways.
"""

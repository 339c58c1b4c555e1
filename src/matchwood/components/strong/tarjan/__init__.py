"""Tarjan's method: one depth-first search by one thread, in which each arc is read once.

A vertex remembers the earliest open vertex that it is known to reach.  When the search leaves a
vertex that reaches nothing earlier than itself, this vertex and all that were left behind since are
a component.  The rest of "auto" and of "multistep" on the CPU is done in this way too.

R. E. Tarjan. Depth-first search and linear graph algorithms. SIAM J. Comput. 1(2), 1972.
"""

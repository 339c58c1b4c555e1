"""Where a component starts: the vertex from which its order is likely to have a small bandwidth.

The rule is in the docstring of `pseudo_peripheral_vertex`, after A. George, J. W. H. Liu. An
implementation of a pseudoperipheral node finder. ACM TOMS 5(3), 1979. doi:10.1145/355841.355845

Large graphs search breadth first from vertex to vertex, as long as the levels become narrower.
Small graphs try four vertices and keep the one whose order has the least bandwidth (trial.py).
"""

"""Propagation, for the GPU: the largest hashed value spreads along all arcs, both ways.

Where the largest value that reaches a vertex is the largest value that it reaches, they come from
one vertex of its component.  Vertices that differ are parted, and the next round begins.  gpu.cu
also numbers the components.  There is no CPU engine: a team does better with multistep/.

G. Alabandi, W. Sands, G. Biros, M. Burtscher. A GPU algorithm for detecting strongly connected
components. SC 2023.
"""

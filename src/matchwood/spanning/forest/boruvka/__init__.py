"""Boruvka's method: every tree takes its first edge, all at once, round by round.

Trees joined along these edges are the trees of the next round; at most log2(n) rounds are needed.
Where there are many edges for each vertex the light ones go first, which join nearly everything.

O. Boruvka. O jistem problemu minimalnim. Prace Moravske prirodovedecke spolecnosti 3, 1926.
A. Fallin, A. Gonzalez, J. Seo, M. Burtscher. A high-performance MST implementation for GPUs.
SC 2023.
"""

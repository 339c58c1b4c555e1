"""Boruvka's method: every tree takes its first edge, all at once, round by round.

Trees joined along these edges are the trees of the next round; at most log2(n) rounds are needed.
Where there are many edges for each vertex the light ones go first, which join nearly everything.
The papers: [1] and [2] in ../__init__.py.
"""

"""Numbers for the roots of trees: 0, 1, 2, ... in the order of the vertices.

Where every vertex knows the root of its tree, the roots are counted and numbered, and each vertex
gets the number of its root.  Where the root is the smallest vertex of a tree, trees are numbered by
their smallest vertex.  A step of connected and strong components, and of Boruvka's rounds.

    check.py       are these the numbers?
    cpu.py         `flatten` hangs every vertex under its root, `number_roots` numbers; on a team
    number.cuh     the same numbering for the blocks of a grid
"""

"""The weight of each label in a row: how strongly a vertex is linked to each community around it.

    K(v, c) = sum of a[v, u] over the neighbours u of v that have label c

A step of moving vertices between communities, of label propagation, and of `contract`.  It is
called by kernels, row by row, and has no function of its own for whole graphs.

    cpu.py        dense places for each member of a team: one word for each label; and sums by label
                  that a team makes together
    tally.cuh     a hash table for each row: in shared memory, or for hubs in global memory
    reference.py  a dictionary
"""

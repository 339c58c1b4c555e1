"""The values of a matrix along the paths of a forest: a tridiagonal matrix, as three arrays.

One pass over the entries, row by row.  The vertices before and after a vertex in its path are among
its neighbours in the factor; their positions tell which is which.  The three values are written to
the place of the vertex in the order.

CPU: cpu.py, a range of rows for each thread.  GPU: gpu.cu, a few lanes for each row.
"""

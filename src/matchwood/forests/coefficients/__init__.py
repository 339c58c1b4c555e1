"""The values of a matrix along the paths of a forest: a tridiagonal matrix, as three arrays.

One pass over the entries, row by row.  Who comes before and after a vertex in its path is asked of
its neighbours in the factor; the three values are written where the vertex has its place.

CPU: cpu.py, a range of rows for each thread.  GPU: gpu.cu, a few lanes for each row.
"""

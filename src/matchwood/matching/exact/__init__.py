"""The heaviest matching, for small graphs.  Read on in reference.py, check.py, cpu.py.

Bipartite graphs go to SciPy, others to rustworkx.  Both are sequential, and both take time that
grows with the square of the graph at best; graphs that would take more than an hour are refused.
"""

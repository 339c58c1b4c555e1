"""The heaviest matching, for small graphs.  Read on in reference.py, check.py, cpu.py.

Bipartite graphs are solved by SciPy, others by rustworkx.  Both are sequential, and both take at
least quadratic time; graphs that would take more than an hour are refused.
"""

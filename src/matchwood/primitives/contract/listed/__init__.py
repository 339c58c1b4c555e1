"""Contraction without the diagonal: entries between groups are listed, sorted and added up.

Of a symmetric matrix only the entries above the diagonal are listed, and their sums are mirrored.
Values may be left out: then only the pattern is made.  Read on in cpu.py and gpu.py.
"""

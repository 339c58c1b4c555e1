"""Contraction with the diagonal: the rows of each group are added up in a table of labels.

The table of a row (primitives/tally) holds the label of the row itself too, so the diagonal costs
nothing more.  Every entry is read, on both sides of the diagonal.  The GPU sorts the
entries between groups instead, and only takes integers.  Read on in cpu.py, gpu.py and gpu.cu.
"""

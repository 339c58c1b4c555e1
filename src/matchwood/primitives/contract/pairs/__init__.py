"""Contraction of pairs of mates, as `coarsen` needs it; numbers the pairs too.

The CPU numbers them and goes on with listed/.  On the GPU a row of the result is the union of two
rows at most, so each is sorted on its own.  Read on in cpu.py, gpu.py and gpu.cu.
"""

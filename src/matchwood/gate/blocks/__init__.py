"""Blocks of a matrix that is spread over ranks: how entries come to their rank, and views of them.

The gate of such matrices is distributed.py.  Read given.py (what a rank may be given), order.py
(vertices renumbered by a computed permutation), collecting.py (entries travel to the rank that
keeps them), views.py (the rules of csr.py for a block), cpu.py.
"""

"""Spanning forests of graphs that are spread over ranks: the steps that dist.py and check.py share.

rounds.py     Boruvka's rounds: components choose their first edge and hook along it
cpu.py        the loops over a rank's block and its edges
checking.py   is this the forest?  cpu_checking.py has its loops
"""

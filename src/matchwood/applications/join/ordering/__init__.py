"""The pairs of a join by (left, right), with scores.  Read on in reference.py, check.py, cpu.py.

In: parts of pairs in no order (`Raw`), and the sizes of all records.  Out: left, right and score as
arrays; the list of parts is emptied meanwhile, so that pairs are held once.

The pairs of the GPU are sorted by CPU threads too.  A pair's key is ``left << shift | right``: to
sort by it is to sort by both rows.
"""

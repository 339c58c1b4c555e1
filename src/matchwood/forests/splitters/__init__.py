"""Linear forests by splitters: many walks along paths at once.

Walks start at the ends of paths and at sampled vertices ("nodes"), so that one long path is the
work of many.  A walk leaves at each vertex its own number and how many steps it has taken.  Where
two walks meet, the distance between their starts is known.  This leaves a short list of nodes,
which is ranked.  Then every vertex computes its position from its mark and the record of that walk.
Cycles that no walk has reached are walked afterwards.

CPU: cpu.py, and a file for each stage.  GPU: gpu.cu.
"""

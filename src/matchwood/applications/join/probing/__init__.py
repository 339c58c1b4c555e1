"""Left records probed against the index: each candidate is settled, refined or verified at once.

In: both sides with their index (`Corpus`), the order of probing and a `Rule`.  Out: pairs that
reach the threshold with the weights of their matchings, in no order; or only the best partners of
each left record.  Candidates are never stored.

    settle     equal elements, nearest neighbours and small rests decide most candidates at once
    decided    else the filters of ../candidates, then ../verification

cpu.py has the kernels; those of the GPU are in ../gpu.cu.
"""
